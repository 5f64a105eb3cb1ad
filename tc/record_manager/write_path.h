// Writes: rule R1's five steps for every written key, preconditions by an intent version (R11, S10), declared keys (R11).
// Thread-safety: as RecordManager.
#ifndef TC_RECORD_MANAGER_WRITE_PATH_H_
#define TC_RECORD_MANAGER_WRITE_PATH_H_

#include <string_view>

#include "common/base/status.h"
#include "tc/mvcc/record_version.h"
#include "tc/record_manager/bounded_wait.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

class WritePath {
 public:
  enum class Precondition : uint8_t { kNone, kAbsent, kPresent };

  WritePath(Engine& engine, Transaction& txn);

  Status Write(TableId table, std::string_view key, bool tombstone, std::string_view value, Precondition precondition,
               Deadline deadline);
  // R11: steps 1, 2, 4 and the range half of 5, before the key is written.
  Status Declare(TableId table, std::string_view key);

 private:
  // What Install found below the version it installed.
  struct Installed {
    RecordVersion* version = nullptr;
    bool answered = false;  // the chain (an own or a committed version) tells whether the key was there
    bool present = false;
  };

  // R1 step 1.
  void PostIntent(Range& range);
  // R1 step 3, for another transaction's version. `wait`: to be examined again after a wait, without the guard (R9).
  Status ExamineHead(const RecordVersion& live, TableId table, std::string_view key, bool* wait);
  Status Install(TableState& table, std::string_view key, uint64_t hash, bool tombstone, std::string_view value,
                 Precondition precondition, Installed* installed);
  // R1 step 5.
  Status CheckReads(const TableState& table, std::string_view key, uint64_t hash, bool check_range);
  Status AskWhetherPresent(const TableState& table, std::string_view key, Deadline deadline, bool* present);
  static Status Judge(Precondition precondition, std::string_view key, bool present);
  void Withdraw(RecordVersion* version);

  Engine& engine_;
  Transaction& txn_;
  BoundedWait wait_;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_WRITE_PATH_H_
