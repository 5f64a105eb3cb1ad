// HistoryIndex: what both checkers need to know of a history: who made which write, and which transactions count as committed.
//
// A transaction of unknown outcome counts as committed when a transaction that counts as committed read one of its writes (or, for what
// no read shows, when a checker says so). What nobody saw cannot contradict anything: without evidence it is left out.
// Also finds what needs no order at all: values that nobody wrote, of aborted transactions (G1a), intermediate ones (G1b).
// Thread-safety: none. Ownership: refers to the history, which must not change.
#ifndef INTEGRATION_HISTORY_HISTORY_INDEX_H_
#define INTEGRATION_HISTORY_HISTORY_INDEX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "integration/history/history.h"
#include "integration/history/report.h"

namespace deut::history {

class HistoryIndex {
 public:
  struct Write {
    uint32_t transaction = 0;  // place in the history
    uint32_t operation = 0;
    bool last = false;  // of those of its transaction to its key
  };

  // Reports kMalformed if the history contradicts itself; then nothing else may be asked.
  HistoryIndex(const History& history, Report* report);

  const History& history() const { return history_; }
  const TransactionRecord& transaction(uint32_t place) const { return history_.transactions[place]; }
  size_t size() const { return history_.transactions.size(); }

  bool committed(uint32_t transaction) const { return committed_[transaction]; }
  // Null if nobody made this write.
  const Write* Find(const WriteId& id) const;
  const OperationRecord& operation(const Write& write) const {
    return transaction(write.transaction).operations[write.operation];
  }

  // Evidence was found that a transaction of unknown outcome committed; so did those that it read from.
  void SetCommitted(uint32_t transaction);
  // Forgets what SetCommitted was told.
  void ResetCommitted();

  // G1a, G1b and garbage among the reads of committed transactions. Once, when it is known who is committed.
  void CheckSources(Report* report) const;
  void Count(Report* report) const;

 private:
  bool AddWrites(uint32_t transaction, Report* report);
  void CheckSource(uint32_t reader, const OperationRecord& operation, const std::string& key, const Value& value,
                   Report* report) const;

  const History& history_;
  absl::flat_hash_map<WriteId, Write> writes_;
  std::vector<bool> committed_;
};

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_HISTORY_INDEX_H_
