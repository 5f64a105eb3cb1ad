// WritePath: writes: rule R1's five steps for every written key, preconditions by an intent version (R11, S10),
// declared keys (R11).
// Thread-safety: as RecordManager. Ownership: borrows engine and transaction.
#ifndef TC_RECORD_MANAGER_WRITE_PATH_H_
#define TC_RECORD_MANAGER_WRITE_PATH_H_

#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "protocol/record_batch.h"
#include "protocol/transaction_service.h"
#include "tc/mvcc/record_version.h"
#include "tc/record_manager/bounded_wait.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

class WritePath {
 public:
  enum class Precondition : uint8_t { kNone, kAbsent, kPresent, kEquals, kNumber };
  // A write's requirement on the record before it, and its use of the value found there (S10).
  struct Condition {
    Precondition precondition = Precondition::kNone;
    std::string_view expected = {};                   // kEquals
    OperationKind number_kind = OperationKind::kAdd;  // kNumber: kAdd, kMin or kMax; the value written is the operand
    // kEquals, and kAbsent of a compare-and-set: gets the value that was found, if the condition fails. kNumber: gets
    // the value that is there now.
    RecordBatch* result = nullptr;
    bool reads_value() const { return result != nullptr; }
  };

  WritePath(Engine& engine, Transaction& txn);

  // Writes the value, or a tombstone. If the precondition does not hold it withdraws its version and returns the
  // error.
  Status Write(TableId table, std::string_view key, bool tombstone, std::string_view value, const Condition& condition,
               Deadline deadline);
  // R11: steps 1, 2, 4 and the range half of 5, before the key is written.
  Status Declare(TableId table, std::string_view key);

 private:
  // The outcome of Install: the version that it installed, and what it found below.
  struct Installed {
    RecordVersion* version = nullptr;
    bool answered = false;  // the chain (an own or a committed version) tells whether the key was there
    bool present = false;
    std::string value;                // if present, and the condition reads it
    std::optional<LoggedPut> in_log;  // S9: the place of a paged-out value; `answered` is true all the same
  };

  struct KeyWrite;
  // The step that follows an examination.
  enum class Next : uint8_t {
    kInstall,
    kExamineAgain,
    kWait,  // the caller must wait without the guard, then examine again (R9)
  };

  // Runs R1's five steps for one key.
  Status Install(TableState& table, std::string_view key, uint64_t hash, bool tombstone, std::string_view value,
                 const Condition& condition, Installed* installed);
  // R1 step 1, if ranges take part. Also finds the key among the declared ones, which are published already.
  void PostFirst(KeyWrite& write);
  // Posts in the range that holds the key now.
  Range& PostIntent(const TableState& table, std::string_view key);
  // R1 step 2. Finds the newest live version, and publishes the key unless that was done before. If it returns true it
  // has published the key, and the caller must call it again for the word that is there now.
  bool PublishKey(KeyWrite& write);
  // R1 step 3, and of step 5 the check of the record. Leaves *next alone if the version may be installed.
  Status ExamineHead(const KeyWrite& write, const Condition& condition, Installed* installed, Next* next);
  // Checks the condition against the transaction's own version.
  Status JudgeOwn(const RecordVersion& own, std::string_view key, const Condition& condition,
                  Installed* installed) const;
  // R1 step 4. Returns false if the word has changed; `write` has the present one then.
  bool SwapHead(KeyWrite& write, const Condition& condition);
  // Counts the installed version and notes the record found below it. Returns whether the transaction had no version of
  // the key before.
  bool NoteInstalled(const KeyWrite& write, const Condition& condition, Installed* installed);
  // S9: charges the version, and what the transaction's lists have grown by.
  void CountPinned(uint64_t version_bytes);
  // P: returns the last_read of the range that holds the key now, after its publication. That is the range it was
  // posted in, unless that one is sealed.
  static Timestamp RangeRead(const TableState& table, const Range& posted, std::string_view key);
  // R1 step 5. Checks the range only if `posted` is not null.
  Status CheckReads(const TableState& table, const Range* posted, std::string_view key, uint64_t hash);
  Status AskWhetherPresent(const TableState& table, std::string_view key, const Condition& condition, Deadline deadline,
                           Installed* installed);
  // S9: a version that no chain shows may be in a spilled run.
  Status LookInSpilled(const TableState& table, std::string_view key, const Condition& condition, Installed* installed,
                       bool* found);
  // Finds what the chain has left open: a value that is paged out, or everything.
  Status Complete(const TableState& table, std::string_view key, const Condition& condition, Deadline deadline,
                  Installed* installed);
  static Status CheckCondition(const Condition& condition, std::string_view key, const Installed& found);
  // Adds the value that a failed compare has found to the condition's result.
  void ShowFound(const Condition& condition, std::string_view key, const Status& judged, const Installed& found) const;
  static std::string NumberAfter(OperationKind kind, std::string_view operand, const Installed& found);
  void Withdraw(RecordVersion* version);

  Engine& engine_;
  Transaction& txn_;
  BoundedWait wait_;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_WRITE_PATH_H_
