// WithheldAnswers: answers to one-shot transactions that have committed, but must not be shown before the log is durable
// up to some position (D1). The answer with the first position comes first. Thread-safety: none. Ownership: owns the
// answers.
#ifndef PROTOCOL_TRANSACTIONS_WITHHELD_ANSWERS_H_
#define PROTOCOL_TRANSACTIONS_WITHHELD_ANSWERS_H_

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.pb.h"

namespace deut {

class WithheldAnswers {
 public:
  struct Answer {
    Lsn durable_at;  // log position that must become durable
    Deadline deadline;
    bool wrote = false;  // if the commit does not become durable, its outcome after a restart is unknown
    size_t bytes = 0;    // approximately
    wire::OneShotAnswer message = {};
  };

  bool empty() const { return answers_.empty(); }
  size_t bytes() const { return bytes_; }
  // REQUIRES, also of EarliestDeadline: it is not empty.
  Lsn first() const { return answers_.front().durable_at; }
  Deadline EarliestDeadline() const;

  void Add(Answer answer);
  // Hands over the answers that can be given by now. If `durable` is a position: those below it. If it is an error, the
  // status replaces the answer: of those whose deadline has passed, and, unless the error is DEADLINE_EXCEEDED, of all
  // others.
  void Release(const Result<Lsn>& durable, MonotonicTime now,
               absl::FunctionRef<void(wire::OneShotAnswer* answer, size_t bytes)> release);
  void Clear();

 private:
  static bool IsLater(const Answer& a, const Answer& b) { return a.durable_at > b.durable_at; }

  std::vector<Answer> answers_;  // a heap with the first position in front
  size_t bytes_ = 0;
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTIONS_WITHHELD_ANSWERS_H_
