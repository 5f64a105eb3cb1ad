// ClientSession: a session with what its transactions use one after the other, so that they need not make it: memory of answers, and names.
// It goes with the session into the pool. Not part of the public interface.
// Thread-safety: none; belongs to whoever uses the session.
#ifndef TC_CLIENT_CLIENT_SESSION_H_
#define TC_CLIENT_CLIENT_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "protocol/transaction_service.h"

namespace deut {

// What an idle session keeps of each kind, in bytes of answers, at most.
constexpr size_t kMostIdleAnswerBytes = 512 << 10;

struct ClientSession {
  explicit ClientSession(std::unique_ptr<TransactionSession> made) : calls(std::move(made)) {}

  // Before it waits in the pool.
  void ForgetLargeAnswers() {
    ForgetIfLarge(&results);
    ForgetIfLarge(&batch);
  }

  std::unique_ptr<TransactionSession> calls;
  std::vector<OperationResult> results;  // of a transaction's own operations
  std::vector<OperationResult> batch;    // of a scanner
  // Names that nobody else gives: so many, from here on.
  uint64_t next_name = 0;
  uint64_t names_left = 0;

 private:
  static void ForgetIfLarge(std::vector<OperationResult>* answers) {
    if (answers->capacity() == 0) return;
    size_t bytes = answers->capacity() * sizeof(OperationResult);
    for (const OperationResult& answer : *answers) bytes += answer.records.bytes().capacity();
    if (bytes > kMostIdleAnswerBytes) std::vector<OperationResult>().swap(*answers);
  }
};

}  // namespace deut

#endif  // TC_CLIENT_CLIENT_SESSION_H_
