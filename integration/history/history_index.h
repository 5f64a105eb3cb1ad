// HistoryIndex: the facts about a history that both checkers need: which transaction made which write, and which
// transactions count as committed.
//
// A transaction of unknown outcome counts as committed if another one that counts as committed read one of its
// writes. A checker may also declare it committed (SetCommitted). Without such evidence it is left out, because
// writes that no transaction saw contradict nothing.
// The index also finds the anomalies that need no order: values that no transaction wrote, values of aborted
// transactions (G1a), and intermediate values (G1b).
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
    uint32_t transaction = 0;  // index in the history
    uint32_t operation = 0;
    bool last = false;  // the last write of its transaction to its key
  };

  // Reports kMalformed if the history contradicts itself. In that case nothing else may be called.
  HistoryIndex(const History& history, Report* report);

  const History& history() const { return history_; }
  const TransactionRecord& transaction(uint32_t place) const { return history_.transactions[place]; }
  size_t size() const { return history_.transactions.size(); }

  bool committed(uint32_t transaction) const { return committed_[transaction]; }
  // Returns null if no transaction made this write.
  const Write* Find(const WriteId& id) const;
  const OperationRecord& operation(const Write& write) const {
    return transaction(write.transaction).operations[write.operation];
  }

  // Tells that evidence was found for a commit of this transaction of unknown outcome. The transactions that it read
  // from then committed, too.
  void SetCommitted(uint32_t transaction);
  // Undoes all calls of SetCommitted.
  void ResetCommitted();

  // Reports G1a, G1b and garbage among the reads of committed transactions. Call it once, when the set of committed
  // transactions is final.
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
