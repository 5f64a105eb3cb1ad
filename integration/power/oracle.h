// Oracle: what a store may hold after power was lost, any number of times. It knows every transaction that was tried, what it read and wrote and what
// its client was told, and judges what a reader finds in the next life:
//   lower bound   a transaction that was acknowledged as durable is there; so is a table
//   refused       one that was refused or aborted is not there
//   prefix        of one life, whoever is there stands before whoever is not, by the position of their commit records; and whoever began after
//                 another was acknowledged (even as buffered) is not there without it
//   atomicity     the tables hold exactly what the transactions that are there leave, run in the order of their timestamps: no part of one, no
//                 deletion forgotten, no value that nobody wrote
//   once and for all   what one recovery has found, later ones find: nobody rises, nobody vanishes
//   timestamps    are above all those drawn in earlier lives
// That a transaction is there is said by a key of its own in the table `journal`, which it writes besides and nobody removes.
// Finish gives the whole history, with the outcomes as they were found, to the checkers of integration/history: nobody has read, and been
// acknowledged, what was lost later (D1); one serial order over all lives.
// AsOf gives the oracle of a moment in the past: for what a loss of power would have left then.
// Thread-safety: NextId, AsOf, Ended, TableChanged and NoteTimestamp from any thread; the rest by one, while no client works.
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

// What a client was told of its transaction's, or its table's, end.
enum class Told : uint8_t { kRefused, kBuffered, kDurable, kUnknown };

struct Attempt {
  history::TransactionRecord record;  // id, times, timestamp, operations; the outcome is the oracle's
  Told told = Told::kRefused;
  Lsn lsn;  // 0 = not known
  uint32_t life = 0;
  std::optional<bool> found;  // by the first reader after its life
};

// A table was created or dropped, or it was tried; times as those of transactions.
struct TableChange {
  std::string name;
  bool created = false;  // else dropped
  Told told = Told::kRefused;
  int64_t invoke = 0, complete = 0;
};

// What a reader has found: a transaction of its own, committed.
struct Found {
  history::TransactionRecord reader;
  std::vector<std::string> tables;                                 // names
  std::map<uint32_t, std::map<std::string, std::string>> records;  // by table id: key, value
  uint32_t journal = 0;                                            // table ids
};

// The value that a write stores: names it, and is as long as its identity says, so that the oracle can tell it again.
std::string PayloadOf(history::WriteId id);
std::string JournalKey(uint64_t transaction);

class Oracle {
 public:
  Oracle() : mutex_(RealRuntime()) {}

  uint64_t NextId() { return ids_.fetch_add(1) + 1; }
  // A new life: what ends from now on belongs to it.
  void BeginLife();
  uint32_t life() const { return life_; }
  // A timestamp that was drawn in this life. Empty, or what is wrong with it.
  std::string NoteTimestamp(Timestamp timestamp) DEUT_EXCLUDES(mutex_);
  void Ended(Attempt attempt) DEUT_EXCLUDES(mutex_);
  void TableChanged(const TableChange& change) DEUT_EXCLUDES(mutex_);

  // Of a moment in the only life so far (RealRuntime's time, in ns): who had not begun by then is unknown to it; who had not ended may be
  // there or not, unless it was refused. Nobody was judged yet. To be asked when all have ended.
  std::unique_ptr<Oracle> AsOf(int64_t moment) const DEUT_EXCLUDES(mutex_);

  // Empty, or the first thing that is wrong. From then on what was found is what there is.
  std::string Judge(Found found) DEUT_EXCLUDES(mutex_);
  // The checkers' verdict on all lives. REQUIRES: the last Judge was called after the last life with clients.
  std::string Finish() DEUT_EXCLUDES(mutex_);

  uint64_t attempts() const DEUT_EXCLUDES(mutex_);
  uint64_t committed() const DEUT_EXCLUDES(mutex_);      // found
  uint64_t lost_buffered() const DEUT_EXCLUDES(mutex_);  // as they may be
  uint64_t unknown_found() const DEUT_EXCLUDES(mutex_);  // came back though nobody was told

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
  uint64_t drawn_before_ DEUT_GUARDED_BY(mutex_) = 0;  // the highest of earlier lives
  uint64_t drawn_ DEUT_GUARDED_BY(mutex_) = 0;
};

}  // namespace deut::power

#endif  // INTEGRATION_POWER_ORACLE_H_
