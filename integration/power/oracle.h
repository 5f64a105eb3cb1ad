// Oracle: decides what a store may hold after any number of power losses. It knows every transaction that was tried,
// its reads and writes, and the answer that its client got. It judges the records that a reader finds in the next
// life by these rules:
//   lower bound   a transaction acknowledged as durable is there; so is a table
//   refused       a transaction that was refused or aborted is not there
//   prefix        among the transactions of one life, the commit record of each missing one lies behind those of all that are there;
//                 and none that began after another was acknowledged (even as buffered) is there without it
//   atomicity     the tables hold exactly what the transactions that are there leave if they run in the order of their timestamps:
//                 no part of a transaction, no forgotten deletion, no value that no transaction wrote
//   stability     later recoveries find the same transactions as an earlier one: none reappears, none vanishes
//   timestamps    every timestamp is above all those drawn in earlier lives
// Each transaction also writes a key of its own to the table `journal`, which no transaction removes. This key tells
// whether the transaction is there.
// Finish gives the whole history, with the outcomes as found, to the checkers of integration/history. They prove that
// no acknowledged transaction read data that was lost later (D1), and that there is one serial order over all lives.
// AsOf returns the oracle of an earlier moment, to judge what a loss of power would have left then.
// Thread-safety: any thread may call NextId, AsOf, Ended, TableChanged and NoteTimestamp. One thread calls the rest,
// while no client works.
#ifndef INTEGRATION_POWER_ORACLE_H_
#define INTEGRATION_POWER_ORACLE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "integration/history/history.h"

namespace deut::power {

// The answer that a client got about the end of its transaction, or of its creation or drop of a table.
enum class Acknowledgement : uint8_t { kRefused, kBuffered, kDurable, kUnknown };

struct Attempt {
  history::TransactionRecord record;  // id, times, timestamp, operations; the oracle sets the outcome
  Acknowledgement told = Acknowledgement::kRefused;
  Lsn lsn;  // 0 = not known
  uint32_t life = 0;
  std::optional<bool> found;  // set by the first reader after its life
};

// The creation or drop of a table, or an attempt. Its times are as those of transactions.
struct TableChange {
  std::string name;
  bool created = false;  // else dropped
  Acknowledgement told = Acknowledgement::kRefused;
  int64_t invoke = 0, complete = 0;
};

// The result of a reader: a committed transaction of its own, which read everything.
struct Found {
  history::TransactionRecord reader;
  std::vector<std::string> tables;                                 // names
  std::map<uint32_t, std::map<std::string, std::string>> records;  // by table id: key, value
  uint32_t journal = 0;                                            // id of the journal's table
};

// Returns the value that a write stores. It contains the write's identity, and its length follows from that identity,
// so the oracle can compute it again.
std::string PayloadOf(history::WriteId id);
std::string JournalKey(uint64_t transaction);

class Oracle {
 public:
  Oracle() : mutex_(RealRuntime()) {}

  uint64_t NextId() { return ids_.fetch_add(1) + 1; }
  // Begins a new life. Transactions that end from now on belong to it.
  void BeginLife();
  uint32_t life() const { return life_; }
  // Notes a timestamp drawn in this life. Returns "", or the error in it.
  std::string NoteTimestamp(Timestamp timestamp) DEUT_EXCLUDES(mutex_);
  void Ended(Attempt attempt) DEUT_EXCLUDES(mutex_);
  void TableChanged(const TableChange& change) DEUT_EXCLUDES(mutex_);

  // Returns the oracle as of `moment` (RealRuntime's time, in ns) in the only life so far. It does not know
  // transactions that had not begun by then. One that had not ended may be there or not, unless it was refused.
  // Nothing is judged yet. REQUIRES: all transactions have ended.
  std::unique_ptr<Oracle> AsOf(int64_t moment) const DEUT_EXCLUDES(mutex_);

  // Returns "", or the first error. From then on, the oracle expects what `found` contained.
  std::string Judge(Found found) DEUT_EXCLUDES(mutex_);
  // Returns the checkers' verdict on all lives. REQUIRES: the last Judge was called after the last life with clients.
  std::string Finish() DEUT_EXCLUDES(mutex_);

  uint64_t attempts() const DEUT_EXCLUDES(mutex_);
  uint64_t committed() const DEUT_EXCLUDES(mutex_);      // found by a reader
  uint64_t lost_buffered() const DEUT_EXCLUDES(mutex_);  // acknowledged as buffered and lost, which is allowed
  uint64_t unknown_found() const DEUT_EXCLUDES(mutex_);  // found, though the client got no answer

 private:
  struct Table {
    std::optional<TableChange> created, dropped;
    std::optional<bool> found;
  };

  std::string JudgeTables(const Found& found) DEUT_REQUIRES(mutex_);
  std::string JudgeAttempts(const Found& found) DEUT_REQUIRES(mutex_);
  std::string JudgePrefix() DEUT_REQUIRES(mutex_);
  std::string JudgeRecords(const Found& found) DEUT_REQUIRES(mutex_);

  std::atomic<uint64_t> ids_{0};
  mutable Mutex mutex_;
  uint32_t life_ = 0;
  std::vector<Attempt> attempts_ DEUT_GUARDED_BY(mutex_);
  std::map<std::string, Table> tables_ DEUT_GUARDED_BY(mutex_);
  std::vector<history::TransactionRecord> readers_ DEUT_GUARDED_BY(mutex_);
  uint64_t drawn_before_ DEUT_GUARDED_BY(mutex_) = 0;  // the highest timestamp of earlier lives
  uint64_t drawn_ DEUT_GUARDED_BY(mutex_) = 0;
};

}  // namespace deut::power

#endif  // INTEGRATION_POWER_ORACLE_H_
