#include "protocol/transactions/grpc_one_shots.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/sync/raise_to.h"
#include "protocol/one_shot_limits.h"
#include "protocol/rpc/rpc_status.h"
#include "protocol/transactions/grpc_session.h"
#include "protocol/wire/convert_transaction_service.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

// Memory that a thread keeps for its next calls: the number of calls, the bytes of each, the parts of an answer, the results in it.
constexpr size_t kKeptCalls = 256;
constexpr size_t kKeptCallBytes = 4 << 10;
constexpr size_t kKeptParts = 4;
constexpr int kKeptResults = 64;

bool WritesAnything(const OneShotTransaction& transaction) {
  return std::ranges::any_of(transaction.operations, [](const Operation& operation) { return Writes(operation.kind); });
}

// Fills the message of `call`, or returns why it cannot be sent.
Status MakeCall(Runtime& runtime, const OneShotTransaction& transaction, Deadline deadline, OneShotCall* call) {
  DEUT_RETURN_IF_ERROR(CheckOptions(*transaction.options));
  DEUT_RETURN_IF_ERROR(CheckOperations(transaction.operations));
  call->bytes = OneShotBytes(*transaction.options, transaction.operations);
  if (call->bytes > kMaxSharedOneShotBytes)
    return DEUT_ERROR(kInvalidArgument, "operations: ", call->bytes, " bytes on a stream that others share; at most ",
                      kMaxSharedOneShotBytes);
  call->message.set_timeout_us(TimeoutToWire(runtime, deadline));
  wire::OneShot* one_shot = call->message.mutable_one_shot();
  ToWire(*transaction.options, one_shot->mutable_begin());
  for (const Operation& operation : transaction.operations) ToWire(operation, one_shot->add_operations());
  return Status::Ok();
}

}  // namespace

GrpcOneShots::GrpcOneShots(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, RpcEventLoop& loop)
    : RpcEventStream(runtime, loop),
      peer_(std::move(peer)),
      channel_(peer_->NewChannel(RpcTraffic::kShort)),
      stub_(wire::TransactionService::NewStub(channel_)),
      multiplexer_(runtime, OneShotMultiplexer::Limits()) {
  thread_ = runtime.StartThread("tc-one-shots", [this] { OpenWhenWanted(); });
}

GrpcOneShots::~GrpcOneShots() {
  Stop();
  wanted_.fetch_add(2, std::memory_order_seq_cst);
  runtime_.WakeAll(wanted_);
  thread_->Join();
}

bool GrpcOneShots::Ready() {
  if (up_.load(std::memory_order_acquire)) return true;
  uint32_t wanted = wanted_.load(std::memory_order_seq_cst);
  if (wanted % 2 == 0 && !not_supported_.load(std::memory_order_relaxed) &&
      wanted_.compare_exchange_strong(wanted, wanted + 1, std::memory_order_seq_cst)) {
    runtime_.WakeAll(wanted_);
  }
  return false;
}

bool GrpcOneShots::Execute(absl::Span<OneShotTransaction> transactions, Deadline deadline) {
  // The calls are reused, because messages and their content are most of the memory that a call would allocate.
  static thread_local std::vector<OneShotCall> calls;
  static thread_local std::vector<size_t> sent;  // places in `transactions`
  if (calls.size() < transactions.size()) calls.resize(transactions.size());
  sent.clear();
  const absl::Cleanup forget_large = [] {
    if (calls.size() > kKeptCalls) calls.clear();
    for (OneShotCall& call : calls) {
      if (call.bytes > kKeptCallBytes) call.message = wire::OneShotCall();
      if (call.parts.size() > kKeptParts || (call.answered != 0 && call.parts[0].results_size() > kKeptResults))
        call.parts.clear();
    }
  };
  OneShotGroup group;
  for (size_t i = 0; i < transactions.size(); ++i) {
    OneShotCall& call = calls[sent.size()];
    call.Reset();
    transactions[i].results->clear();
    Status valid = MakeCall(runtime_, transactions[i], deadline, &call);
    if (valid.ok()) {
      call.group = &group;
      sent.push_back(i);
    } else {
      transactions[i].answer = std::move(valid);
    }
  }
  if (sent.empty()) return true;
  const absl::Span<OneShotCall> submitted = absl::MakeSpan(calls).subspan(0, sent.size());
  group.left = static_cast<int>(sent.size());
  switch (multiplexer_.Submit(submitted)) {
    case OneShotMultiplexer::Next::kDown:
      return false;
    case OneShotMultiplexer::Next::kSend:
      // Many threads receive their answers together, so others are about to submit, too. The yield lets their calls join this message. It returns
      // at once if no other thread is ready to run.
      runtime_.Yield();
      SendNext();
      break;
    case OneShotMultiplexer::Next::kNotSender:
      break;
  }
  const Deadline wait = deadline > kNoDeadline - kAnswerGrace ? kNoDeadline : deadline + kAnswerGrace;
  const MonotonicTime now = runtime_.Now();
  const Duration hold = std::min(kHoldBack, (deadline - now) / 4);
  const auto is_done = [&] { return group.IsDone(); };
  bool done = is_done() || spin_.Find(runtime_, now + hold, is_done) || group.Wait(runtime_, now + hold);
  if (!done) {
    if (multiplexer_.StopHoldingBack(submitted) == OneShotMultiplexer::Next::kSend) SendNext();
    done = group.Wait(runtime_, wait);
  }
  if (!done) {
    const Status late =
        DEUT_ERROR(kDeadlineExceeded, "the deadline passed while waiting for an answer (", peer_->name(), ")");
    if (!multiplexer_.Abandon(submitted, late)) group.Wait(runtime_, kNoDeadline);
  }
  for (size_t i = 0; i < sent.size(); ++i)
    transactions[sent[i]].answer = CheckedAnswer(submitted[i], transactions[sent[i]]);
  return true;
}

Status GrpcOneShots::MoveResults(OneShotCall& call, const OneShotTransaction& transaction) const {
  size_t taken = 0;
  for (wire::SessionAnswer& part : call.answer()) {
    for (wire::OperationResult& result : *part.mutable_results()) {
      if (taken == transaction.operations.size())
        return DEUT_ERROR(kCorruption, peer_->name(), " answers with more results than operations");
      transaction.results->emplace_back();
      const Status valid = FromWire(&result, transaction.operations[taken++], &transaction.results->back());
      if (!valid.ok()) return DEUT_ERROR(kCorruption, peer_->name(), ": results[", taken - 1, "].", valid.message());
    }
  }
  return Status::Ok();
}

Result<CommitAnswer> GrpcOneShots::CheckedAnswer(OneShotCall& call, const OneShotTransaction& transaction) {
  Status status = call.lost;
  if (status.ok()) status = MoveResults(call, transaction);
  if (status.ok()) {
    const wire::SessionAnswer& end = call.answer().back();
    status = FromWire(end.status());
    if (!status.ok()) SetFailedPreconditionAt(Timestamp(end.timestamp()), absl::MakeSpan(*transaction.results));
  } else if (call.sent && WritesAnything(transaction)) {
    status = DEUT_ERROR(kOutcomeUnknown, "the answer to the commit is lost: ", status.ToString());
  }
  // There is one result for each operation also if the call ended early.
  while (transaction.results->size() < transaction.operations.size()) {
    transaction.results->emplace_back();
    transaction.results->back().status =
        Status(ErrorCode::kWrongState, "not run: an operation before it ended the transaction");
  }
  if (!status.ok()) return status;
  const wire::SessionAnswer& last = call.answer().back();
  if (transaction.options->isolation != Isolation::kSnapshot) RaiseTo(not_before_, last.timestamp());
  return CommitAnswer{.timestamp = Timestamp(last.timestamp()), .commit_lsn = Lsn(last.commit_lsn())};
}

void GrpcOneShots::SendNext() {
  if (multiplexer_.TakeMessage(&outgoing_)) StartWrite();
}

void GrpcOneShots::OpenWhenWanted() {
  for (;;) {
    uint32_t wanted = wanted_.load(std::memory_order_seq_cst);
    if (stopping()) return;
    if (wanted % 2 == 0) {
      runtime_.Wait(wanted_, wanted, kNoDeadline);
      continue;
    }
    const Status end = RunOne();
    if (end == ErrorCode::kVersionMismatch) not_supported_.store(true, std::memory_order_relaxed);
    // From here on a caller can ask for the next attempt.
    wanted_.fetch_add(1, std::memory_order_seq_cst);
  }
}

Status GrpcOneShots::CheckOpenAnswer() {
  DEUT_RETURN_IF_ERROR(FromWire(incoming_.status()));
  DEUT_RETURN_IF_ERROR(CheckProtocolVersion(peer_->name(), incoming_.protocol_version()));
  not_before_.store(incoming_.not_before(), std::memory_order_relaxed);
  return Status::Ok();
}

Status GrpcOneShots::RunOne() {
  {
    MutexLock lock(mutex_);
    refused_ = Status();
    opened_ = sent_ = false;
  }
  AwaitConnection(runtime_, *channel_, kNoDeadline);
  const grpc::Status end = RunStream([this](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
    return stub_->PrepareAsyncOneShots(context, queue);
  });
  Status why;
  bool was_up = false;
  {
    MutexLock lock(mutex_);
    why = refused_;
    was_up = opened_ && sent_;
  }
  if (why.ok()) why = peer_->FromRpc(end);
  if (why.ok()) why = DEUT_ERROR(kUnavailable, peer_->name(), " has ended the stream");
  // A stream that was up was not refused for good. An error that its peer found in one message must not be the answer of every call.
  const bool passing = why == ErrorCode::kUnavailable || why == ErrorCode::kDeadlineExceeded;
  if (was_up && !passing) why = DEUT_ERROR(kUnavailable, "the stream has ended: ", why.ToString());
  multiplexer_.FailAll(why);
  return why;
}

void GrpcOneShots::UpLocked() {
  multiplexer_.Up();
  up_.store(true, std::memory_order_release);
}

bool GrpcOneShots::StopWritingLocked() {
  if (!opened_ || !sent_) return !sent_;  // the stream never was up
  up_.store(false, std::memory_order_release);
  return multiplexer_.StopSending();
}

bool GrpcOneShots::OpenedLocked() {
  refused_ = CheckOpenAnswer();
  if (!refused_.ok()) {
    CancelLocked();
    return false;
  }
  opened_ = true;
  if (sent_ && !ended()) UpLocked();
  return true;
}

void GrpcOneShots::OnOpenLocked() {
  outgoing_.Clear();
  outgoing_.mutable_open()->set_protocol_version(kProtocolVersion);
  StartWrite();
}

bool GrpcOneShots::OnRead() {
  bool opened = true;
  {
    MutexLock lock(mutex_);
    opened = opened_;
    if (!opened && !OpenedLocked()) return false;
  }
  // Answered is called outside of the lock, because it wakes the callers. A role that this thread gets is held until its write has ended.
  if (opened && multiplexer_.Answered(&incoming_) == OneShotMultiplexer::Next::kSend) SendNext();
  return true;
}

void GrpcOneShots::OnWrittenLocked() {
  if (sent_) return SendNext();
  sent_ = true;
  if (opened_) UpLocked();
}

void GrpcOneShots::OnLastWriteLocked(bool ok) {
  if (!std::exchange(sent_, true)) {
    if (!ok) CancelLocked();
    return;
  }
  // The sender's role ends with its write.
  multiplexer_.ReleaseSenderRole();
  CancelLocked();
}

}  // namespace deut
