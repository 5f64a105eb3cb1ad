// A prefetch, for a thread that is about to run many one-shot transactions one after another. Their reads ask the DC
// together, so that they do not wait one by one. It is a hint only: each transaction still reads as usual afterwards.
// Each state is an object, whose methods are the next steps:
//   PrefetchNotes -> Start -> PendingPrefetch -> Await -> EndedPrefetch
//
// A session that prefetches holds back the low-water, and calls may wait for that. So the first two objects own the
// session, and Await gives it back: the thread cannot run a call on it meanwhile. They also own the begun transactions,
// because the DC may hold requests that are part of them; nobody can run or end one before it is answered. If either
// object is destroyed, it closes the session, then ends the begun transactions.
// Thread-safety: one thread at a time. Ownership: as above; borrows the views of the operations until Await has
// returned, or the object is destroyed.
#ifndef PROTOCOL_PREFETCH_H_
#define PROTOCOL_PREFETCH_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/runtime/runtime.h"
#include "protocol/transaction_service.h"

namespace deut {

// The steps of a prefetch, as a session implements them. Only the objects below make a Token, and they take the steps
// in their order. A session that wraps another one passes the token on.
class PrefetchSteps {
 public:
  class Token {
    friend class PrefetchNotes;
    friend class PendingPrefetch;
    Token() = default;
  };

  // Returns true if at least one of these operations needs a read of the DC, and notes which.
  virtual bool NotePrefetch(Token token, absl::Span<const Operation> operations) = 0;
  // Begins a transaction whose first operation is a scan, and notes what the scan needs. It never waits. Null: the
  // transaction has not begun.
  virtual std::unique_ptr<BegunOneShot> BeginForPrefetch(Token token, const TransactionOptions& options,
                                                         absl::Span<const Operation> operations) = 0;
  // Sends the noted reads. False: there is nothing to send, or the session cannot send now. It then has dropped all
  // notes, and ended the begun transactions.
  virtual bool StartPrefetch(Token token) = 0;
  // Returns when the answers to the reads that were sent are there (true), or at the deadline. Ends the begun
  // transactions that got no answer.
  virtual bool AwaitPrefetch(Token token, Deadline deadline) = 0;

 protected:
  ~PrefetchSteps() = default;
};

struct EndedPrefetch {
  struct Begun {
    size_t tag;  // as passed to PrefetchNotes::Begin
    std::unique_ptr<BegunOneShot> transaction;
  };

  std::unique_ptr<TransactionSession> session;
  bool all_answered = true;  // before the deadline
  // In the order of Begin. A transaction that got no answer has ended; it begins again when it is run. Empty if
  // nothing was sent.
  std::vector<Begun> begun;
};

class [[nodiscard]] PendingPrefetch {
 public:
  PendingPrefetch(PendingPrefetch&&) = default;
  PendingPrefetch& operator=(PendingPrefetch&&) = delete;

  // False: nothing was sent, and Await returns at once.
  bool sent() const { return sent_; }
  // Returns when the answers are there, or at the deadline.
  EndedPrefetch Await(Deadline deadline) &&;

 private:
  friend class PrefetchNotes;
  PendingPrefetch(std::vector<EndedPrefetch::Begun> begun, std::unique_ptr<TransactionSession> session, bool sent);

  // Declared in this order, so that the session is destroyed first: it gives up the requests of the transactions.
  std::vector<EndedPrefetch::Begun> begun_;
  std::unique_ptr<TransactionSession> session_;
  bool sent_;
};

class [[nodiscard]] PrefetchNotes {
 public:
  // A null session notes nothing.
  explicit PrefetchNotes(std::unique_ptr<TransactionSession> session);
  PrefetchNotes(PrefetchNotes&&) = default;
  PrefetchNotes& operator=(PrefetchNotes&&) = delete;

  // Notes which reads of these operations need the DC. Returns true if at least one does.
  bool Note(absl::Span<const Operation> operations);
  // Begins a transaction whose first operation is a scan, and notes what the scan needs. It never waits. False: the
  // transaction has not begun. The caller finds the begun transaction by its tag in EndedPrefetch.
  bool Begin(const TransactionOptions& options, absl::Span<const Operation> operations, size_t tag);
  // Sends the noted reads, if there are any and the session can send now. Otherwise it ends the begun transactions.
  PendingPrefetch Start() &&;

 private:
  // In this order, as in PendingPrefetch.
  std::vector<EndedPrefetch::Begun> begun_;
  std::unique_ptr<TransactionSession> session_;
  PrefetchSteps* steps_;  // of the session; null: it does not prefetch
};

}  // namespace deut

#endif  // PROTOCOL_PREFETCH_H_
