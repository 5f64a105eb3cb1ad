#include "tc/dc_link/dc_link.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/dc_link/change_word.h"
#include "tc/dc_link/dc_gate.h"
#include "tc/dc_link/link_thread.h"

namespace deut::tc {

class DcLink::Impl {
 public:
  Impl(Runtime& runtime, DataComponent& dc, RedoLog& log, const RecoveredLog& recovered, LowWaterSource& low_water,
       const ActiveFloorSource& active_floor, DcLinkOptions options)
      : options_(std::move(options)),
        runtime_(runtime),
        dc_(dc),
        log_(log),
        sender_{log.tc(), log.epoch(), log.nonce(), DcIncarnation{0}},
        changes_(std::make_shared<ChangeWord>(runtime)),
        gate_(runtime, *changes_, options_.dc_name, options_.on_fatal),
        thread_(runtime, dc, log, recovered, low_water, active_floor, gate_, changes_, options_) {}

  void Stop() {
    gate_.Stop();
    thread_.Join();
  }

  Status Read(absl::Span<DataRequest* const> requests, Deadline deadline);
  bool TrySubmitReads(absl::Span<DataRequest* const> requests);
  void CollectReads(absl::Span<DataRequest* const> requests, Deadline deadline);
  bool HasSpace(uint64_t bytes) const;
  uint64_t BacklogBytes() const;
  DcLinkStatus status() const;

  // Runs `call(sender)` behind the gate. Repeats it each time that the connection or the DC's incarnation ends
  // meanwhile.
  template <typename Call>
  auto BehindGate(Deadline deadline, const Call& call) -> decltype(call(Sender{})) {
    for (;;) {
      DcGate::Pass pass;
      DEUT_RETURN_IF_ERROR(gate_.WaitOpen(deadline, &pass));
      auto result = call(SenderTo(pass));
      if (result.ok() || !gate_.ReportIfLost(result.status(), pass.session)) return result;
    }
  }

  Sender SenderTo(DcGate::Pass pass) const {
    DEUT_DCHECK(pass.open());  // X3: a request must name the incarnation that it is meant for
    Sender sender = sender_;
    sender.incarnation = pass.incarnation;
    return sender;
  }

  DcGate& gate() { return gate_; }
  LinkThread& thread() { return thread_; }
  DataComponent& dc() { return dc_; }
  const Sender& sender() const { return sender_; }

 private:
  // For a DC in this process: answers from its memory, on this thread.
  DirectReads::Answered ReadDirectly(absl::Span<DataRequest* const> requests);
  // Submits the requests, and waits for the answers.
  Status SubmitAndCollect(absl::Span<DataRequest* const> requests, Deadline deadline);
  void Submit(absl::Span<DataRequest* const> requests, DcGate::Pass pass);
  // Waits for all answers; *repeat if some requests must be repeated. At the deadline abandons the unanswered ones:
  // UNAVAILABLE.
  Status Collect(absl::Span<DataRequest* const> requests, DcGate::Pass pass, Deadline deadline, bool* repeat);
  // True if the request has an answer that counts: from the incarnation that it was meant for (X3), or an error of
  // its own.
  static bool Answered(const DataRequest& request, DcGate::Pass pass);
  Status Repeat(absl::Span<DataRequest* const> requests, DcGate::Pass pass, Deadline deadline);

  const DcLinkOptions options_;
  Runtime& runtime_;
  DataComponent& dc_;
  RedoLog& log_;
  const Sender sender_;  // without an incarnation
  const std::shared_ptr<ChangeWord> changes_;
  DcGate gate_;
  LinkThread thread_;
  std::atomic<uint64_t> repeated_reads_{0};
};

void DcLink::Impl::Submit(absl::Span<DataRequest* const> requests, DcGate::Pass pass) {
  const Sender sender = SenderTo(pass);
  for (DataRequest* request : requests) {
    request->sender = sender;
    request->status = Status::Ok();
    request->answer.Clear();
    request->answered_by = DcIncarnation{0};
    request->done.Reset();
    request->listener = nullptr;  // this thread waits
  }
  dc_.Submit(requests);
}

bool DcLink::Impl::Answered(const DataRequest& request, DcGate::Pass pass) {
  switch (request.status.code()) {
    case ErrorCode::kWrongIncarnation:
    case ErrorCode::kUnavailable:
    case ErrorCode::kFenced:
      return false;
    default:
      break;
  }
  if (request.answered_by == pass.incarnation || DEUT_OMITTED("X3.check_answer_incarnation")) return true;
  // An error that was made on this side of the wire names no incarnation.
  return !request.status.ok() && request.answered_by.value == 0;
}

Status DcLink::Impl::Collect(absl::Span<DataRequest* const> requests, DcGate::Pass pass, Deadline deadline,
                             bool* repeat) {
  size_t unanswered = 0;
  for (DataRequest* request : requests) {
    if (request->done.Wait(runtime_, deadline)) [[likely]] {
      if (Answered(*request, pass)) [[likely]]
        continue;
      *repeat = true;
      const Status why = request->status.ok() ? DEUT_ERROR(kWrongIncarnation, "an answer came from incarnation ",
                                                           request->answered_by.value, " to a request meant for ",
                                                           pass.incarnation.value)
                                              : request->status;
      gate_.ReportIfLost(why, pass.session);
      continue;
    }
    dc_.Abandon(request);
    ++unanswered;
  }
  if (unanswered == 0) [[likely]]
    return Status::Ok();
  return DEUT_ERROR(kUnavailable, options_.dc_name, " (incarnation ", pass.incarnation.value, ") has not answered ",
                    unanswered, " of ", requests.size(), " reads in time");
}

DirectReads::Answered DcLink::Impl::ReadDirectly(absl::Span<DataRequest* const> requests) {
  DirectReads* const reads = gate_.reads();
  return reads == nullptr ? DirectReads::Answered::kNone : reads->TryAnswer(requests);
}

Status DcLink::Impl::Read(absl::Span<DataRequest* const> requests, Deadline deadline) {
  const DirectReads::Answered answered = ReadDirectly(requests);
  if (answered == DirectReads::Answered::kAll) [[likely]]
    return Status::Ok();
  if (answered == DirectReads::Answered::kNone) return SubmitAndCollect(requests, deadline);
  // The answers of one incarnation count even if another one answers the rest: each is behind the gate (X3).
  std::vector<DataRequest*> left;
  for (DataRequest* const request : requests) {
    if (request->missed_in_memory) left.push_back(request);
  }
  DEUT_DCHECK(!left.empty());  // kSome: the DC has left at least one out
  return SubmitAndCollect(left, deadline);
}

Status DcLink::Impl::SubmitAndCollect(absl::Span<DataRequest* const> requests, Deadline deadline) {
  DcGate::Pass pass = gate_.pass();
  if (!pass.open()) [[unlikely]]
    DEUT_RETURN_IF_ERROR(gate_.WaitOpen(deadline, &pass));
  Submit(requests, pass);
  bool repeat = false;
  DEUT_RETURN_IF_ERROR(Collect(requests, pass, deadline, &repeat));
  if (!repeat) [[likely]]
    return Status::Ok();
  return Repeat(requests, pass, deadline);
}

Status DcLink::Impl::Repeat(absl::Span<DataRequest* const> requests, DcGate::Pass pass, Deadline deadline) {
  std::vector<DataRequest*> left(requests.begin(), requests.end());
  for (;;) {
    std::erase_if(left, [&](const DataRequest* request) { return Answered(*request, pass); });
    if (left.empty()) return Status::Ok();
    repeated_reads_.fetch_add(left.size(), std::memory_order_relaxed);
    DEUT_RETURN_IF_ERROR(gate_.WaitOpen(deadline, &pass));
    Submit(left, pass);
    bool repeat = false;
    DEUT_RETURN_IF_ERROR(Collect(left, pass, deadline, &repeat));
  }
}

bool DcLink::Impl::TrySubmitReads(absl::Span<DataRequest* const> requests) {
  const DcGate::Pass pass = gate_.pass();
  if (!pass.open()) return false;
  Submit(requests, pass);
  return true;
}

void DcLink::Impl::CollectReads(absl::Span<DataRequest* const> requests, Deadline deadline) {
  // Begins with the last request: answers usually come in order, so there is nearly always only one wait.
  for (DataRequest* request : std::views::reverse(requests)) {
    DEUT_DCHECK(request->sender.incarnation.value != 0);  // it was submitted
    if (!request->done.Wait(runtime_, deadline)) {
      dc_.Abandon(request);
      request->status = DEUT_ERROR(kDeadlineExceeded, options_.dc_name, " has not answered in time");
    } else if (request->status.ok() && request->answered_by != request->sender.incarnation &&
               DEUT_STEP("X3.check_answer_incarnation")) {
      request->status = DEUT_ERROR(kWrongIncarnation, "an answer came from incarnation ", request->answered_by.value);
    }
  }
}

uint64_t DcLink::Impl::BacklogBytes() const {
  const uint64_t applied = std::max(gate_.applied().commit, log_.first_lsn()).value;
  const uint64_t tail = log_.tail().value;
  return tail > applied ? tail - applied : 0;
}

bool DcLink::Impl::HasSpace(uint64_t bytes) const {
  const uint64_t free_bytes = gate_.free_bytes();
  // Claimed bytes will be appended. Commits that look at the same time must not share the free space.
  const uint64_t end = DEUT_OMITTED("X7.claimed") ? log_.tail().value : log_.claimed().value;
  const uint64_t applied = std::max(gate_.applied().commit, log_.first_lsn()).value;
  const uint64_t wanted = options_.reserve_bytes + bytes + (end > applied ? end - applied : 0);
  if (free_bytes >= wanted || DEUT_OMITTED("X7.reserve")) return true;
  gate_.NotePutRefused();
  return false;
}

DcLinkStatus DcLink::Impl::status() const {
  const DcGate::State gate = gate_.state();
  const Shipper::Counters& shipped = thread_.shipped();
  const auto get = [](const std::atomic<uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
  DcLinkStatus status;
  status.state = gate.text;
  status.caught_up = gate.caught_up;
  status.gate_open = gate_.pass().open();
  status.shipping = gate.shipping;
  status.peer = gate.peer;
  status.positions.applied = gate_.applied();
  status.positions.stable = gate_.stable();
  status.positions.ship_position = shipped.ship_position.load(std::memory_order_relaxed);
  status.positions.ever_sent = gate.ever_sent;
  status.positions.redo_start = log_.redo_start().lsn;
  status.backlog_bytes = BacklogBytes();
  status.in_flight_bytes = get(shipped.in_flight_bytes);
  status.free_bytes = gate_.free_bytes();
  status.connections.hellos = thread_.hellos();
  status.connections.sessions = gate.sessions;
  status.connections.incarnations = gate.incarnations;
  status.shipped.batches = get(shipped.batches);
  status.shipped.batch_bytes = get(shipped.batch_bytes);
  status.shipped.updates = get(shipped.updates);
  status.shipped.resent_batches = get(shipped.resent_batches);
  status.shipped.low_water_records = get(shipped.low_water_records);
  status.repeated_reads = repeated_reads_.load(std::memory_order_relaxed);
  status.connections.dropped_acks = gate.dropped_acks;
  status.shipped.held_back_rounds = get(shipped.held_back_rounds);
  status.shipped.wakeups = get(shipped.wakeups);
  return status;
}

DcLink::DcLink(Runtime& runtime, DataComponent& dc, RedoLog& log, const RecoveredLog& recovered,
               LowWaterSource& low_water, const ActiveFloorSource& active_floor, DcLinkOptions options)
    : impl_(std::make_unique<Impl>(runtime, dc, log, recovered, low_water, active_floor, std::move(options))) {}

DcLink::~DcLink() { Stop(); }

void DcLink::Start() { impl_->thread().Start(); }
void DcLink::CloseGate() { impl_->gate().Stop(); }
void DcLink::Stop() { impl_->Stop(); }
Status DcLink::WaitCaughtUp(Deadline deadline) { return impl_->gate().WaitCaughtUp(deadline); }

Status DcLink::Read(absl::Span<DataRequest* const> requests, Deadline deadline) {
  return impl_->Read(requests, deadline);
}

bool DcLink::TrySubmitReads(absl::Span<DataRequest* const> requests) { return impl_->TrySubmitReads(requests); }

void DcLink::CollectReads(absl::Span<DataRequest* const> requests, Deadline deadline) {
  impl_->CollectReads(requests, deadline);
}

Result<std::unique_ptr<BulkScan>> DcLink::OpenScan(const ScanSpec& spec, Deadline deadline) {
  auto scan = std::make_unique<BulkScan>(impl_->dc(), impl_->gate(), impl_->sender(), spec);
  DEUT_RETURN_IF_ERROR(scan->Open(deadline));
  return scan;
}

Position DcLink::applied() const { return impl_->gate().applied(); }
bool DcLink::HasSpace(uint64_t bytes) const { return impl_->HasSpace(bytes); }
bool DcLink::KnowsTableOptions() const { return impl_->gate().knows_table_options(); }

Result<std::vector<TableInfo>> DcLink::Tables(Deadline deadline) {
  return impl_->BehindGate(deadline, [&](const Sender& sender) { return impl_->dc().Tables(sender, deadline); });
}

Result<std::vector<std::string>> DcLink::Partition(TableId table, uint32_t n, Deadline deadline) {
  return impl_->BehindGate(deadline,
                           [&](const Sender& sender) { return impl_->dc().Partition(sender, table, n, deadline); });
}

Result<std::vector<CounterValue>> DcLink::DcCounters(Deadline deadline) { return impl_->dc().Counters(deadline); }

DcLinkStatus DcLink::status() const { return impl_->status(); }

}  // namespace deut::tc
