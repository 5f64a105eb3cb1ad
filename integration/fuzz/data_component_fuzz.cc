// A hostile transaction component. An input is a sequence of calls and messages to the gRPC service of a data
// component, in any order, on several streams at once: Hello of any epoch, reads and scans, log batches with wrong
// epochs, positions, gaps and tables, invalid grants, and restarts of the DC in between. No input may crash the
// process or block a call beyond its time. Afterwards a well-behaved TC must be served.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/blocking_hook.h"
#include "common/runtime/runtime.h"
#include "dc/server/data_component_server.h"
#include "grpcpp/client_context.h"
#include "integration/fuzz/input.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/data/in_process_data_component.h"
#include "protocol/data_component.h"
#include "protocol/log_batch.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/wire/data_component.grpc.pb.h"
#include "protocol/wire/namespace.h"

namespace deut::fuzz {
namespace {

// No call may take this many seconds; one that does counts as hanging.
constexpr int kHangs = 20;
constexpr int kMaxSteps = 60;
// Above every epoch in an input, so that the well-behaved TC is the newer one.
constexpr TcEpoch kLateEpoch{uint64_t{1} << 40};
constexpr uint64_t kEpochMask = 0xFFFF, kCommitMask = (uint64_t{1} << 48) - 1;
constexpr TableId kHealth{1'000'000};
constexpr uint32_t kTableMask = 0xFFFF;

void SetTime(grpc::ClientContext* context) {
  context->set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(kHangs, GPR_TIMESPAN)));
}

// A stream of a peer that obeys gRPC but no rule above it. A thread of its own reads, because a peer that does not
// read would block a server in this process. `see` is called with each answer, and returns its number of answers that
// Settle waits for.
template <typename Request, typename Answer>
class Stream {
 public:
  using Calls = std::unique_ptr<grpc::ClientReaderWriter<Request, Answer>>;
  Stream(const std::function<Calls(grpc::ClientContext*)>& open, std::function<uint32_t(const Answer&)> see)
      : see_(std::move(see)) {
    SetTime(&context_);
    stream_ = open(&context_);
    reader_ = RealRuntime().StartThread("reader", [this] { Read(); });
  }
  ~Stream() {
    stream_->WritesDone();
    reader_.reset();
    DEUT_CHECK(stream_->Finish().error_code() != grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  void Send(const Request& request, uint32_t answers) {
    if (stream_->Write(request)) sent_ += answers;
  }
  void Settle() {
    for (;;) {
      const uint32_t received = received_.load();
      if (received == kEnded || received >= sent_) return;
      RealRuntime().Wait(received_, received, kNoDeadline);
    }
  }
  void Cancel() { context_.TryCancel(); }

 private:
  static constexpr uint32_t kEnded = UINT32_MAX;
  void Read() {
    Answer answer;
    while (stream_->Read(&answer)) {
      received_.fetch_add(see_(answer));
      RealRuntime().WakeAll(received_);
    }
    received_.store(kEnded);
    RealRuntime().WakeAll(received_);
  }

  const std::function<uint32_t(const Answer&)> see_;
  grpc::ClientContext context_;
  Calls stream_;
  std::atomic<uint32_t> received_{0};
  uint32_t sent_ = 0;
  std::unique_ptr<Thread> reader_;
};

class Target {
 public:
  Target()
      : dc_(RealRuntime(),
            [this]() -> Result<std::unique_ptr<DataComponent>> {
              dc::DataComponentOptions options;
              options.directory = "/dc";
              DEUT_ASSIGN_OR_RETURN(std::unique_ptr<DataComponent> dc,
                                    dc::DataComponentServer::Open(options, *storage_, runtime_));
              return dc;
            }),
        service_(RealRuntime(), dc_, {}) {
    server_ = RpcServer::Start(RealRuntime(), RpcServerOptions(), {service_.service()}).value();
    const auto peer = RpcPeer::Create("the server", "--dc", server_->address(), nullptr, /*insecure=*/false);
    stub_ = wire::DataComponent::NewStub(peer.value()->NewChannel(RpcTraffic::kShort));
  }

  // Replaces the DC by a new, empty one.
  void Renew() {
    dc_.Kill();
    storage_ = NewMemoryStorage(RealRuntime());
    DEUT_CHECK(dc_.Start().ok());
  }
  void Restart() {
    dc_.Kill();
    DEUT_CHECK(dc_.Start().ok());
  }
  wire::DataComponent::Stub& stub() { return *stub_; }

  // Checks that a well-behaved TC can say Hello, create a table, write and read.
  void CheckServed();

 private:
  BlockingHookRuntime runtime_{RealRuntime()};
  std::unique_ptr<Storage> storage_;
  InProcessDataComponent dc_;
  GrpcDataComponentService service_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<wire::DataComponent::Stub> stub_;
};

class Acks final : public ApplyLogListener {
 public:
  void OnAck(const ApplyAck& ack) override { applied = ack.applied; }
  void OnClosed(const Status&) override {}
  Position applied;
};

void Must(const Status& status, const char* what) {
  if (!status.ok()) std::fprintf(stderr, "a TC is not served: %s: %s\n", what, status.ToString().c_str());
  DEUT_CHECK(status.ok());
}

void Target::CheckServed() {
  const Deadline deadline = RealRuntime().Now() + seconds(kHangs);
  const auto hello = dc_.Hello({.tc = TcId(99), .epoch = kLateEpoch, .nonce = 99}, deadline);
  // A DC belongs to one TC for good, which may be the hostile one.
  if (hello.status() == ErrorCode::kFenced || hello.status() == ErrorCode::kWrongState) return;
  Must(hello.status(), "Hello");
  const Sender sender{TcId(99), kLateEpoch, 99, hello->incarnation};
  Acks acks;
  auto stream = dc_.OpenApplyLog(sender, &acks, deadline);
  Must(stream.status(), "OpenApplyLog");
  const uint64_t commit = hello->applied.commit.value;
  LogBatch batch{.from = hello->applied, .to = {Lsn(commit + 2), 1}, .entries = {}};
  batch.Append({.kind = LogEntryKind::kCreateTable,
                .position = {Lsn(commit + 1), 1},
                .timestamp = Timestamp(commit + 1),
                .table = kHealth,
                .key = "health",
                .value = {}});
  batch.Append({.kind = LogEntryKind::kPut,
                .position = {Lsn(commit + 2), 1},
                .timestamp = Timestamp(commit + 2),
                .table = kHealth,
                .key = "key",
                .value = "value"});
  Must((*stream)->Send(batch, deadline), "a batch");
  DEUT_CHECK(acks.applied == batch.to);
  DataRequest read;
  read.sender = sender;
  read.table = kHealth;
  read.key = "key";
  DataRequest* const requests[] = {&read};
  dc_.Submit(requests);
  DEUT_CHECK(read.done.Wait(RealRuntime(), deadline));
  Must(read.status, "a read");
  DEUT_CHECK(read.answer.size() == 1);
}

// The state and the calls of the hostile TC.
class Peer {
 public:
  Peer(Target& target, Input& input) : target_(target), input_(input) {}

  // Says Hello, opens a log stream and creates three tables with some records, as a TC does at first.
  void Begin() {
    Hello();
    wire::ApplyLogRequest request;
    OpenLog(&request);
    LogBatch batch{.from = position_, .to = {}, .entries = {}};
    uint64_t commit = position_.commit.value;
    for (uint32_t table = 1; table <= 3; ++table) {
      const std::string name = Concat("table", table);
      batch.Append({.kind = LogEntryKind::kCreateTable,
                    .position = {Lsn(++commit), 1},
                    .timestamp = Timestamp(commit),
                    .table = TableId(table),
                    .key = name,
                    .value = {}});
      for (const char* key : {"a", "b", "cc", "d", "ee", "f"}) {
        batch.Append({.kind = LogEntryKind::kPut,
                      .position = {Lsn(++commit), 1},
                      .timestamp = Timestamp(commit),
                      .table = TableId(table),
                      .key = key,
                      .value = "a value of some length"});
      }
    }
    batch.to = {Lsn(commit), 1};
    request.Clear();
    SetMessage(batch, request.mutable_batch());
    request.mutable_batch()->set_crc32c(batch.Checksum());
    position_ = batch.to;
    log_->Send(request, 0);
    // Waits until the batch is applied, so that the next request finds the tables.
    log_.reset();
  }

  void Step() {
    switch (input_.Below(16)) {
      case 0:
        Hello();
        break;
      case 1:
        Control();
        break;
      case 2:
        if (input_.OneIn(4)) target_.Restart();
        break;
      case 3:
        End();
        break;
      case 4:
      case 5:
      case 6:
        Data();
        break;
      case 7:
      case 8:
      case 9:
        Scan();
        break;
      default:
        ApplyLog();
    }
  }

 private:
  using DataStream = Stream<wire::DataRequests, wire::DataAnswers>;
  using LogStream = Stream<wire::ApplyLogRequest, wire::ApplyLogAnswer>;
  using ScanCalls = Stream<wire::ScanRequest, wire::ScanAnswer>;

  void Hello() {
    wire::HelloRequest request;
    request.set_protocol_version(input_.OneIn(16) ? input_.Byte() : kProtocolVersion);
    request.set_tc(input_.OneIn(16) ? input_.Number() : 99);
    request.set_epoch(input_.OneIn(2) ? epoch_ + 1 : input_.Number() & kEpochMask);
    request.set_nonce(1 + input_.Below(2));
    grpc::ClientContext context;
    SetTime(&context);
    wire::HelloAnswer answer;
    DEUT_CHECK(target_.stub().Hello(&context, request, &answer).ok());
    if (answer.incarnation() == 0) return;
    tc_ = request.tc();
    epoch_ = request.epoch();
    nonce_ = request.nonce();
    incarnation_ = answer.incarnation();
    position_ = {Lsn(answer.applied().commit_lsn()), answer.applied().sequence()};
  }

  void SetSender(wire::Sender* sender) {
    const uint32_t wrong = input_.Below(32);
    sender->set_tc(wrong == 31 ? input_.Number() : tc_);
    sender->set_epoch(wrong == 30 ? input_.Number() : epoch_);
    sender->set_nonce(wrong == 29 ? input_.Number() : nonce_);
    sender->set_incarnation(wrong == 28 ? input_.Number() : incarnation_);
  }
  uint32_t AnyTable() {
    const uint32_t known = input_.Below(16);
    return known < 14 ? 1 + known % 3 : static_cast<uint32_t>(input_.Number()) & kTableMask;
  }

  void Control() {
    grpc::ClientContext context;
    SetTime(&context);
    wire::PartitionRequest partition;
    wire::TablesRequest tables;
    wire::PartitionAnswer keys;
    wire::TablesAnswer listed;
    wire::CountersAnswer counters;
    switch (input_.Below(3)) {
      case 0:
        SetSender(partition.mutable_sender());
        partition.set_table(AnyTable());
        partition.set_pieces(static_cast<uint32_t>(input_.Number()));
        DEUT_CHECK(target_.stub().Partition(&context, partition, &keys).ok());
        break;
      case 1:
        SetSender(tables.mutable_sender());
        DEUT_CHECK(target_.stub().Tables(&context, tables, &listed).ok());
        break;
      default:
        DEUT_CHECK(target_.stub().Counters(&context, {}, &counters).ok());
    }
  }

  void End() {
    const uint32_t which = input_.Below(6);
    if (which == 0) data_.reset();
    if (which == 1) log_.reset();
    if (which == 2) scan_.reset();
    if (which == 3 && data_) data_->Cancel();
    if (which == 4 && log_) log_->Cancel();
    if (which == 5 && scan_) scan_->Cancel();
  }

  void Data() {
    if (data_ == nullptr) {
      data_ = std::make_unique<DataStream>(
          [this](grpc::ClientContext* context) { return target_.stub().Data(context); },
          [](const wire::DataAnswers& answers) -> uint32_t { return static_cast<uint32_t>(answers.items_size()); });
    }
    wire::DataRequests requests;
    if (input_.OneIn(32)) {
      if (!requests.ParseFromString(input_.Text(255))) return;
    } else {
      SetSender(requests.mutable_sender());
      for (uint32_t i = input_.Below(5); i > 0; --i) AddItem(requests.add_items());
      if (input_.OneIn(64) && requests.items_size() > 0) {
        while (requests.items_size() < 256 + static_cast<int>(input_.Below(2)))
          *requests.add_items() = requests.items(0);
      }
    }
    data_->Send(requests, static_cast<uint32_t>(requests.items_size()));
    if (input_.OneIn(2)) data_->Settle();
  }
  void AddItem(wire::DataItem* item) {
    item->set_id(input_.Number());
    const uint32_t kind = input_.Below(16);
    item->set_kind(static_cast<wire::DataKind>(kind < 15 ? 1 + kind % 2 : input_.Byte()));
    item->set_table(AnyTable());
    item->set_key(input_.Key());
    if (input_.OneIn(2)) item->set_low(input_.Key());
    if (input_.OneIn(2)) item->set_high(input_.Key());
    item->set_direction(static_cast<wire::Direction>(input_.Below(3)));
    item->set_limit_records(static_cast<uint32_t>(input_.Number()));
    item->set_limit_bytes(input_.OneIn(4) ? static_cast<uint32_t>(input_.Number()) : 1000);
  }

  void Scan() {
    wire::ScanRequest request;
    if (scan_ == nullptr) {
      scan_ = std::make_unique<ScanCalls>([this](grpc::ClientContext* context) { return target_.stub().Scan(context); },
                                          [](const wire::ScanAnswer&) -> uint32_t { return 1; });
      wire::ScanOpen* const open = request.mutable_open();
      SetSender(open->mutable_sender());
      open->set_table(AnyTable());
      if (input_.OneIn(2)) open->set_low(input_.Key());
      if (input_.OneIn(2)) open->set_high(input_.Key());
      open->set_direction(static_cast<wire::Direction>(input_.Below(3)));
      open->set_batch_bytes(input_.OneIn(4) ? static_cast<uint32_t>(input_.Number()) : 30);
      if (!input_.OneIn(16)) {
        scan_->Send(request, 1);
        scan_->Settle();
      }
      if (!input_.OneIn(8)) return;
    }
    request.Clear();
    if (!input_.OneIn(32)) {
      if (input_.OneIn(2)) request.mutable_grant()->set_bound(input_.Key());
      request.mutable_grant()->set_bytes(input_.Number());
    }
    scan_->Send(request, 0);
  }

  void ApplyLog() {
    wire::ApplyLogRequest request;
    if (log_ == nullptr) return OpenLog(&request);
    if (!input_.OneIn(32)) SetBatch(request.mutable_batch());
    log_->Send(request, 0);
  }

  void OpenLog(wire::ApplyLogRequest* request) {
    log_ = std::make_unique<LogStream>(
        [this](grpc::ClientContext* context) { return target_.stub().ApplyLog(context); },
        [](const wire::ApplyLogAnswer& answer) -> uint32_t { return answer.has_opened() ? 1 : 0; });
    SetSender(request->mutable_open()->mutable_sender());
    if (input_.OneIn(16)) return;
    log_->Send(*request, 1);
    log_->Settle();
  }

  static void SetMessage(const LogBatch& batch, wire::ApplyLogBatch* out) {
    out->mutable_from()->set_commit_lsn(batch.from.commit.value);
    out->mutable_from()->set_sequence(batch.from.sequence);
    out->mutable_to()->set_commit_lsn(batch.to.commit.value);
    out->mutable_to()->set_sequence(batch.to.sequence);
    out->set_entries(batch.entries);
  }

  // Mostly puts. Drops are rare, so that tables last for some time.
  LogEntryKind AnyKind() {
    constexpr LogEntryKind kKinds[] = {LogEntryKind::kPut,    LogEntryKind::kPut,         LogEntryKind::kPut,
                                       LogEntryKind::kDelete, LogEntryKind::kCreateTable, LogEntryKind::kLowWater};
    const uint32_t kind = input_.Below(32);
    if (kind < 30) return kKinds[kind % std::size(kKinds)];
    return kind == 30 ? LogEntryKind::kDropTable : static_cast<LogEntryKind>(input_.Byte());
  }
  void SetBatch(wire::ApplyLogBatch* out) {
    LogBatch batch;
    batch.from = input_.OneIn(8) ? Position{Lsn(input_.Number() & kCommitMask), input_.Byte()} : position_;
    Position at = batch.from;
    for (uint32_t i = input_.Below(8); i > 0; --i) {
      LogEntryView entry;
      entry.kind = AnyKind();
      at = input_.OneIn(3) ? Position{at.commit, at.sequence + 1}
                           : Position{Lsn(at.commit.value + 1 + input_.Below(9)), 1};
      if (input_.OneIn(32)) at = {Lsn(input_.Number() & kCommitMask), input_.Byte()};
      entry.position = at;
      entry.timestamp = Timestamp(input_.OneIn(8) ? input_.Number() : at.commit.value);
      entry.table = TableId(AnyTable());
      const std::string key =
          entry.kind == LogEntryKind::kCreateTable ? Concat("table", entry.table.value) : input_.Key();
      const std::string value = entry.kind == LogEntryKind::kPut ? input_.Text(30) : "";
      entry.key = key;
      entry.value = value;
      batch.Append(entry);
    }
    batch.to = input_.OneIn(8) ? Position{Lsn(input_.Number() & kCommitMask), input_.Byte()} : at;
    if (input_.OneIn(16)) batch.entries += input_.Text(30);
    if (input_.OneIn(16) && !batch.entries.empty())
      batch.entries[input_.Byte() % batch.entries.size()] = static_cast<char>(input_.Byte());
    position_ = batch.to;
    SetMessage(batch, out);
    out->set_crc32c(input_.OneIn(32) ? input_.Byte() : batch.Checksum());
  }

  Target& target_;
  Input& input_;
  uint64_t tc_ = 99, epoch_ = 0, nonce_ = 1, incarnation_ = 1;
  Position position_;
  std::unique_ptr<DataStream> data_;
  std::unique_ptr<LogStream> log_;
  std::unique_ptr<ScanCalls> scan_;
};

void Play(Input& input) {
  // Never destroyed, because threads' own variables are gone at the end of the process.
  static Target* const target = new Target();
  target->Renew();
  {
    Peer peer(*target, input);
    if (!input.OneIn(8)) peer.Begin();
    for (int step = 0; step < kMaxSteps && !input.empty(); ++step) peer.Step();
  }
  target->CheckServed();
}

}  // namespace
}  // namespace deut::fuzz

// The store outlives the last input, and the pages of its tree are referenced by tagged words, which LeakSanitizer
// does not follow. The unit tests look for leaks.
// The name is LeakSanitizer's.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" int __lsan_is_turned_off() { return 1; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  deut::fuzz::Input input(data, size);
  deut::fuzz::Play(input);
  return 0;
}
