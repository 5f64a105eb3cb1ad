#include "protocol/transactions/wire_one_shot_messages.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "protocol/limits.h"
#include "protocol/one_shot_limits.h"
#include "protocol/wire/convert_transaction_service.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

constexpr size_t kMaxFreeBatches = 4;
// The bytes for which an answer counts, apart from its results.
constexpr size_t kAnswerBytes = 32;

}  // namespace

// A message whose calls are at work. It is reused.
class WireOneShotMessages::Batch final : public OneShotBatch {
 public:
  int size() const override { return message.calls_size(); }
  bool IsSnapshot(int call) const override {
    return message.calls(call).one_shot().begin().isolation() == wire::SNAPSHOT;
  }
  Status GetOptions(int call, TransactionOptions* options) const override {
    Status status = FromWire(message.calls(call).one_shot().begin(), options);
    return status.ok() ? status : Status(status.code(), "begin." + std::string(status.message()));
  }
  Status GetOperations(int call, std::vector<Operation>* operations) const override {
    return FromWire(message.calls(call).one_shot().operations(), operations);
  }
  void SetDeadlines(Runtime& runtime) override {
    deadlines.clear();
    for (const wire::OneShotCall& call : message.calls())
      deadlines.push_back(DeadlineFromWire(runtime, call.timeout_us()));
  }

  wire::OneShotCalls message;
};

class WireOneShotMessages::Unpublished final : public UnpublishedAnswers {
 public:
  bool empty() const override { return answers.message.answers_size() == 0 && withheld.empty(); }

  void Add(const OneShotBatch& batch, int call, absl::Span<const OperationResult> results,
           const Result<CommitAnswer>& commit, absl::FunctionRef<void()> publish) override;
  void WithholdLast(bool wrote, Lsn durable_at, Deadline deadline) override;

  Answers answers;
  std::vector<WithheldAnswers::Answer> withheld;

 private:
  wire::SessionAnswer* NewAnswer(uint64_t id);

  size_t bytes_before_ = 0;  // bytes of `answers` before the last one
};

wire::SessionAnswer* WireOneShotMessages::Unpublished::NewAnswer(uint64_t id) {
  bytes_before_ = answers.bytes;
  wire::OneShotAnswer* added = answers.message.add_answers();
  added->set_id(id);
  answers.bytes += kAnswerBytes;
  return added->mutable_answer();
}

void WireOneShotMessages::Unpublished::Add(const OneShotBatch& batch, int call,
                                           absl::Span<const OperationResult> results,
                                           const Result<CommitAnswer>& commit, absl::FunctionRef<void()> publish) {
  const uint64_t id = static_cast<const Batch&>(batch).message.calls(call).id();
  wire::SessionAnswer* answer = NewAnswer(id);
  for (const OperationResult& result : results) {
    const size_t bytes = WireBytes(result);
    if (answers.bytes > kAnswerBytes && answers.bytes + bytes > kAnswerMessageBytes) {
      answer->set_more(true);
      publish();
      answer = NewAnswer(id);
    }
    ToWire(result, answer->add_results());
    answers.bytes += bytes;
  }
  if (commit.ok()) {
    answer->set_timestamp(commit->timestamp.value);
    answer->set_commit_lsn(commit->commit_lsn.value);
  } else {
    answer->set_timestamp(FailedPreconditionAt(results).value);
    ToWire(commit.status(), answer->mutable_status());
    answers.bytes += commit.status().message().size();
  }
}

void WireOneShotMessages::Unpublished::WithholdLast(bool wrote, Lsn durable_at, Deadline deadline) {
  const size_t bytes = answers.bytes - bytes_before_;
  WithheldAnswers::Answer& answer = withheld.emplace_back(
      WithheldAnswers::Answer{.durable_at = durable_at, .deadline = deadline, .wrote = wrote, .bytes = bytes});
  answer.message.Swap(answers.message.mutable_answers(answers.message.answers_size() - 1));
  answers.message.mutable_answers()->RemoveLast();
  answers.bytes = bytes_before_;
}

WireOneShotMessages::WireOneShotMessages(Runtime& runtime, Stream* stream)
    : OneShotMessages(runtime), stream_(stream) {}

WireOneShotMessages::~WireOneShotMessages() = default;

void WireOneShotMessages::StartRead() {
  if (free_.empty()) {
    reading_ = std::make_unique<Batch>();
  } else {
    reading_ = std::move(free_.back());
    free_.pop_back();
  }
  wire::OneShotCalls* const message = &reading_->message;
  mutex.Unlock();
  stream_->StartRead(message);
  mutex.Lock();
}

Result<OneShotBatch*> WireOneShotMessages::TakeRead(bool first) {
  DEUT_RETURN_IF_ERROR(CheckFigure("calls", reading_->message.calls_size(), first ? 0 : 1, kMaxOneShotsPerMessage));
  used_.push_back(std::move(reading_));
  return static_cast<OneShotBatch*>(used_.back().get());
}

void WireOneShotMessages::Recycle(OneShotBatch* batch) {
  const auto found = std::find_if(used_.begin(), used_.end(), [batch](const auto& one) { return one.get() == batch; });
  DEUT_CHECK(found != used_.end());
  if (free_.size() < kMaxFreeBatches) free_.push_back(std::move(*found));
  used_.erase(found);
}

Status WireOneShotMessages::CheckOpening(const OneShotBatch& first) {
  const wire::OneShotCalls& message = static_cast<const Batch&>(first).message;
  if (!message.has_open()) return DEUT_ERROR(kWrongState, "calls: the first message of a stream has to have `open`");
  return CheckProtocolVersion("the client", message.open().protocol_version());
}

void WireOneShotMessages::AnswerOpening(const Status& status, Timestamp not_before) {
  // The size makes sure that no other answer joins this message.
  Answers& opened = ready_.emplace_back(Answers{.message = {}, .bytes = kAnswerMessageBytes});
  ready_bytes_ += opened.bytes;
  opened.message.set_protocol_version(kProtocolVersion);
  if (status.ok()) {
    opened.message.set_not_before(not_before.value);
  } else {
    ToWire(status, opened.message.mutable_status());
  }
}

std::unique_ptr<UnpublishedAnswers> WireOneShotMessages::NewAnswers() { return std::make_unique<Unpublished>(); }

void WireOneShotMessages::Publish(UnpublishedAnswers* answers) {
  auto& from = static_cast<Unpublished&>(*answers);
  for (WithheldAnswers::Answer& answer : from.withheld) withheld_.Add(std::move(answer));
  from.withheld.clear();
  if (from.answers.message.answers_size() == 0) return;
  ready_bytes_ += from.answers.bytes;
  ready_.push_back(std::move(from.answers));
  from.answers = Answers();
}

void WireOneShotMessages::DropAnswers() {
  ready_.clear();
  ready_bytes_ = writing_bytes_;
  withheld_.Clear();
}

OneShotMessages::Backlog WireOneShotMessages::backlog() const {
  return {.ready = !ready_.empty(),
          .withheld = !withheld_.empty(),
          .ready_bytes = ready_bytes_,
          .withheld_bytes = withheld_.bytes()};
}

// Joins small messages into one.
void WireOneShotMessages::StartWrite() {
  Answers answers = std::move(ready_.front());
  ready_.pop_front();
  while (!ready_.empty() && answers.bytes + ready_.front().bytes <= kAnswerMessageBytes) {
    Answers& next = ready_.front();
    answers.bytes += next.bytes;
    for (wire::OneShotAnswer& answer : *next.message.mutable_answers()) {
      answers.message.add_answers()->Swap(&answer);
    }
    ready_.pop_front();
  }
  writing_bytes_ = answers.bytes;
  mutex.Unlock();
  stream_->StartWrite(answers.message);
  mutex.Lock();
}

void WireOneShotMessages::WriteEnded() {
  ready_bytes_ -= writing_bytes_;
  writing_bytes_ = 0;
}

void WireOneShotMessages::Release(const Result<Lsn>& durable, MonotonicTime now) {
  withheld_.Release(durable, now, [this](wire::OneShotAnswer* answer, size_t bytes) DEUT_REQUIRES(mutex) {
    if (ready_.empty() || ready_.back().bytes + bytes > kAnswerMessageBytes) ready_.emplace_back();
    ready_.back().message.add_answers()->Swap(answer);
    ready_.back().bytes += bytes;
    ready_bytes_ += bytes;
  });
}

}  // namespace deut
