#include "protocol/transactions/withheld_answers.h"

#include <algorithm>
#include <utility>

#include "protocol/wire/convert.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

// Replaces an answer that cannot be given. Its results stay, as for any transaction that fails at its commit.
void Refuse(const Status& failed, WithheldAnswers::Answer* answer) {
  wire::SessionAnswer* const said = answer->message.mutable_answer();
  const uint64_t lsn = said->commit_lsn();
  const uint64_t timestamp = said->timestamp();
  said->clear_commit_lsn();
  said->clear_timestamp();
  const Status status = answer->wrote
                            ? DEUT_ERROR(kOutcomeUnknown, "transaction ", timestamp, " is ordered at log position ",
                                         lsn, " but not known to be durable: ", failed.message())
                            : failed;
  ToWire(status, said->mutable_status());
  answer->bytes += status.message().size();
}

}  // namespace

Deadline WithheldAnswers::EarliestDeadline() const {
  return std::ranges::min_element(answers_, {}, &Answer::deadline)->deadline;
}

void WithheldAnswers::Add(Answer answer) {
  bytes_ += answer.bytes;
  answers_.push_back(std::move(answer));
  std::ranges::push_heap(answers_, IsLater);
}

void WithheldAnswers::Release(const Result<Lsn>& durable, MonotonicTime now,
                              absl::FunctionRef<void(wire::OneShotAnswer* answer, size_t bytes)> release) {
  if (durable.ok()) {
    while (!answers_.empty() && answers_.front().durable_at < *durable) {
      std::ranges::pop_heap(answers_, IsLater);
      bytes_ -= answers_.back().bytes;
      release(&answers_.back().message, answers_.back().bytes);
      answers_.pop_back();
    }
    return;
  }
  const bool all = durable.status() != ErrorCode::kDeadlineExceeded;
  std::vector<Answer> left;
  for (Answer& answer : answers_) {
    if (!all && answer.deadline > now) {
      left.push_back(std::move(answer));
      continue;
    }
    bytes_ -= answer.bytes;
    Refuse(durable.status(), &answer);
    release(&answer.message, answer.bytes);
  }
  answers_.swap(left);
  std::ranges::make_heap(answers_, IsLater);
}

void WithheldAnswers::Clear() {
  answers_.clear();
  bytes_ = 0;
}

}  // namespace deut
