#include "integration/bugs/link.h"

#include <utility>

#include "common/runtime/random.h"
#include "protocol/wire/convert_data_component.h"
#include "protocol/wire/data_component.pb.h"
#include "protocol/wire/namespace.h"

namespace deut::bugs {

namespace {

Result<LogBatch> SendDamaged(const LogBatch& batch, Random& random) {
  wire::ApplyLogBatch message;
  ToWire(batch, &message);
  std::string bytes = message.SerializeAsString();
  bytes[random.Below(bytes.size())] ^= static_cast<char>(1 << random.Below(8));
  message.Clear();
  if (!message.ParseFromString(bytes)) return DEUT_ERROR(kUnavailable, "a message that cannot be read");
  LogBatch received;
  DEUT_RETURN_IF_ERROR(FromWire(&message, &received));
  return received;
}

}  // namespace

class Link::Stream final : public ApplyLogStream {
 public:
  Stream(Link& link, std::unique_ptr<ApplyLogStream> stream) : link_(link), stream_(std::move(stream)) {}

  Status Send(const LogBatch& batch, Deadline deadline) override {
    link_.Travel();
    const uint64_t one_in = link_.corrupt_one_in_.load(std::memory_order_relaxed);
    if (one_in == 0 || !random_.OneIn(one_in)) return stream_->Send(batch, deadline);
    const Result<LogBatch> received = SendDamaged(batch, random_);
    if (received.ok()) return stream_->Send(*received, deadline);
    stream_.reset();
    return received.status();
  }

 private:
  Link& link_;
  std::unique_ptr<ApplyLogStream> stream_;  // null: the stream has ended
  Random random_{RealRuntime().RandomSeed()};
};

void Link::Release() {
  held_.store(0);
  RealRuntime().WakeAll(held_);
}

void Link::Travel() {
  const Duration longest(longest_.load(std::memory_order_relaxed));
  Runtime& runtime = RealRuntime();
  Random random(runtime.RandomSeed());
  if (longest > Duration(0) && random.OneIn(2)) {
    runtime.SleepUntil(runtime.Now() + Duration(random.Below(static_cast<uint64_t>(longest.count()))));
  }
  while (held_.load() != 0) runtime.Wait(held_, 1, kNoDeadline);
}

Result<HelloAnswer> Link::Hello(const HelloRequest& request, Deadline deadline) {
  Travel();
  return dc_.Hello(request, deadline);
}

void Link::Submit(absl::Span<DataRequest* const> requests) {
  Travel();
  dc_.Submit(requests);
}

Result<std::unique_ptr<ScanStream>> Link::OpenScan(const Sender& sender, const ScanSpec& spec, Deadline deadline) {
  Travel();
  return dc_.OpenScan(sender, spec, deadline);
}

Result<std::unique_ptr<ApplyLogStream>> Link::OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                           Deadline deadline) {
  Travel();
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<ApplyLogStream> stream, dc_.OpenApplyLog(sender, listener, deadline));
  return std::unique_ptr<ApplyLogStream>(std::make_unique<Stream>(*this, std::move(stream)));
}

Result<std::vector<std::string>> Link::Partition(const Sender& sender, TableId table, uint32_t n, Deadline deadline) {
  Travel();
  return dc_.Partition(sender, table, n, deadline);
}

Result<std::vector<TableInfo>> Link::Tables(const Sender& sender, Deadline deadline) {
  Travel();
  return dc_.Tables(sender, deadline);
}

}  // namespace deut::bugs
