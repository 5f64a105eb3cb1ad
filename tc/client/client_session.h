// ClientSession: a session, with the memory for answers and the names that its transactions use one after the other.
// They go into the pool with the session, so a transaction need not make them. Not part of the public interface.
// Thread-safety: none; one thread at a time uses the session.
#ifndef TC_CLIENT_CLIENT_SESSION_H_
#define TC_CLIENT_CLIENT_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "protocol/transaction_service.h"

namespace deut {

// The most bytes that an idle session keeps of each kind of answers.
constexpr size_t kMaxIdleAnswerBytes = 512 << 10;

struct ClientSession {
  explicit ClientSession(std::unique_ptr<TransactionSession> made) : calls(std::move(made)) {}

  // Called before the session goes into the pool.
  void FreeLargeAnswers() {
    FreeIfLarge(&results);
    FreeIfLarge(&batch);
  }

  std::unique_ptr<TransactionSession> calls;  // null while a PipelinedCall has it
  std::vector<OperationResult> results;       // of a transaction's own operations
  std::vector<OperationResult> batch;         // of a scanner
  // A block of names that no other session gives: the next one, and the number left.
  uint64_t next_name = 0;
  uint64_t names_left = 0;

 private:
  static void FreeIfLarge(std::vector<OperationResult>* answers) {
    if (answers->capacity() == 0) return;
    size_t bytes = answers->capacity() * sizeof(OperationResult);
    for (const OperationResult& answer : *answers) bytes += answer.records.bytes().capacity();
    if (bytes > kMaxIdleAnswerBytes) std::vector<OperationResult>().swap(*answers);
  }
};

}  // namespace deut

#endif  // TC_CLIENT_CLIENT_SESSION_H_
