// Unacknowledged: answers to one-shot transactions that have committed, and are not to be shown before the log is durable up to some position (D1),
// the first position first. Thread-safety: none.
#ifndef PROTOCOL_UNACKNOWLEDGED_H_
#define PROTOCOL_UNACKNOWLEDGED_H_

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/transaction_service.pb.h"

namespace deut {

class Unacknowledged {
 public:
  struct Answer {
    Lsn at;  // what has to be durable
    Deadline deadline;
    bool wrote = false;  // if it does not become durable, nobody knows what will be after a restart
    size_t bytes = 0;    // about what it takes
    wire::OneShotAnswer message = {};
  };

  bool empty() const { return answers_.empty(); }
  size_t bytes() const { return bytes_; }
  // REQUIRES: not empty, also of EarliestDeadline.
  Lsn first() const { return answers_.front().at; }
  Deadline EarliestDeadline() const;

  void Add(Answer answer);
  // Hands over what can be answered by now: all below `durable`; if that is an error, those whose deadline has passed, and, unless it is that of a
  // deadline, all the others as well: with a status in place of what they were to say.
  void Take(const Result<Lsn>& durable, MonotonicTime now,
            absl::FunctionRef<void(wire::OneShotAnswer* answer, size_t bytes)> take);
  void Clear();

 private:
  static bool Later(const Answer& a, const Answer& b) { return a.at > b.at; }

  std::vector<Answer> answers_;  // a heap: the first position in front
  size_t bytes_ = 0;
};

}  // namespace deut

#endif  // PROTOCOL_UNACKNOWLEDGED_H_
