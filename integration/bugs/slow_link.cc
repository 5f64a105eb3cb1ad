#include "integration/bugs/slow_link.h"

#include <utility>

#include "common/runtime/random.h"

namespace deut::bugs {

class SlowLink::Stream final : public ApplyLogStream {
 public:
  Stream(SlowLink& link, std::unique_ptr<ApplyLogStream> stream) : link_(link), stream_(std::move(stream)) {}
  Status Send(const LogBatch& batch, Deadline deadline) override {
    link_.Travel();
    return stream_->Send(batch, deadline);
  }

 private:
  SlowLink& link_;
  const std::unique_ptr<ApplyLogStream> stream_;
};

void SlowLink::Release() {
  held_.store(0);
  RealRuntime().WakeAll(held_);
}

void SlowLink::Travel() {
  while (held_.load() != 0) RealRuntime().Wait(held_, 1, kNoDeadline);
  const Duration longest(longest_.load(std::memory_order_relaxed));
  if (longest <= Duration(0)) return;
  Runtime& runtime = RealRuntime();
  Random random(runtime.RandomSeed());
  if (random.OneIn(2)) return;
  runtime.SleepUntil(runtime.Now() + Duration(random.Below(static_cast<uint64_t>(longest.count()))));
}

Result<HelloAnswer> SlowLink::Hello(const HelloRequest& request, Deadline deadline) {
  Travel();
  return dc_.Hello(request, deadline);
}

void SlowLink::Submit(absl::Span<DataRequest* const> requests) {
  Travel();
  dc_.Submit(requests);
}

Result<std::unique_ptr<ScanStream>> SlowLink::OpenScan(const Sender& sender, const ScanSpec& spec, Deadline deadline) {
  Travel();
  return dc_.OpenScan(sender, spec, deadline);
}

Result<std::unique_ptr<ApplyLogStream>> SlowLink::OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                               Deadline deadline) {
  Travel();
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<ApplyLogStream> stream, dc_.OpenApplyLog(sender, listener, deadline));
  return std::unique_ptr<ApplyLogStream>(std::make_unique<Stream>(*this, std::move(stream)));
}

Result<std::vector<std::string>> SlowLink::Partition(const Sender& sender, TableId table, uint32_t n,
                                                     Deadline deadline) {
  Travel();
  return dc_.Partition(sender, table, n, deadline);
}

Result<Position> SlowLink::Checkpoint(const Sender& sender, Position up_to, Deadline deadline) {
  Travel();
  return dc_.Checkpoint(sender, up_to, deadline);
}

Result<std::vector<TableInfo>> SlowLink::Tables(const Sender& sender, Deadline deadline) {
  Travel();
  return dc_.Tables(sender, deadline);
}

}  // namespace deut::bugs
