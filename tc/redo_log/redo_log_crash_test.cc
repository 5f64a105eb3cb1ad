// Crashes the disk at every changing operation of a run, and once more during the recovery that follows. Then checks
// the result:
//   every record whose durability was reported is there, whole;
//   the commits are those that were appended, in order, without a hole: a prefix from the redo start on;
//   every later recovery answers the same as an earlier one (D2);
//   no timestamp that was allowed to be drawn is given out again (D3); epochs rise (X5).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

// The log's answers to a run, and the run's input.
class Oracle {
 public:
  void Appended(uint64_t timestamp, Lsn lsn, size_t bytes) {
    sizes_[timestamp] = bytes;
    lsns_[timestamp] = lsn;
  }
  void Acknowledged(uint64_t timestamp) { acknowledged_.push_back(timestamp); }
  void MayBeDrawn(uint64_t timestamp) { highest_drawn_ = std::max(highest_drawn_, timestamp); }
  void RedoStartMayBe(Lsn lsn) { redo_starts_.push_back(lsn); }
  void DcAcknowledged(DcId dc) { dcs_.push_back(dc); }

  // Returns the first error in a log that was opened again, or nothing.
  std::optional<std::string> Check(RedoLog& log, const RecoveredLog& recovered) {
    if (recovered.epoch.value <= epoch_) return Concat("epoch ", recovered.epoch.value, " after ", epoch_);
    epoch_ = recovered.epoch.value;
    if (recovered.first_timestamp.value <= highest_drawn_) {
      return Concat("timestamps from ", recovered.first_timestamp.value, " on, but ", highest_drawn_,
                    " may be drawn already");
    }
    if (std::ranges::find(redo_starts_, recovered.redo_start.lsn) == redo_starts_.end()) {
      return Concat("redo start ", recovered.redo_start.lsn.value, " was never given");
    }
    for (const DcId dc : dcs_) {
      if (std::ranges::find(recovered.known_dcs, dc) == recovered.known_dcs.end())
        return Concat("DC ", dc.value, " is forgotten");
    }
    Status error;
    const std::vector<ReadRecord> records = ReadAll(log, recovered.redo_start.lsn, &error);
    if (!error.ok()) return error.ToString();
    return CheckCommits(records, recovered);
  }

 private:
  std::optional<std::string> CheckCommits(const std::vector<ReadRecord>& records, const RecoveredLog& recovered) {
    std::vector<uint64_t> found;
    for (const ReadRecord& record : records) {
      if (record.type != RecordType::kCommit) continue;
      const uint64_t timestamp = record.timestamp.value;
      found.push_back(timestamp);
      if (!lsns_.contains(timestamp)) return Concat("commit ", timestamp, " was never made");
      if (lsns_[timestamp] != record.lsn) return Concat("commit ", timestamp, " stands at LSN ", record.lsn.value);
      std::string value;
      for (const auto& update : record.updates) value += update.second;
      if (value != ValueOf(timestamp, sizes_[timestamp])) return Concat("commit ", timestamp, " has another content");
    }
    for (const uint64_t timestamp : acknowledged_) {
      if (lsns_[timestamp] >= recovered.redo_start.lsn && std::ranges::find(found, timestamp) == found.end()) {
        return Concat("commit ", timestamp, " was acknowledged and is lost");
      }
    }
    // Commits that did not come back never will: the commits that are there now are final.
    for (auto it = lsns_.begin(); it != lsns_.end();) {
      const bool back = std::ranges::find(found, it->first) != found.end();
      if (back && it->second >= recovered.end_lsn)
        return Concat("commit ", it->first, " rose from behind the end of the log");
      it = !back && it->second >= recovered.redo_start.lsn ? lsns_.erase(it) : std::next(it);
    }
    for (size_t i = 1; i < found.size(); ++i) {
      if (lsns_[found[i]] <= lsns_[found[i - 1]]) return Concat("commit ", found[i], " stands out of order");
    }
    return FindHole(found, recovered.redo_start.lsn);
  }

  // A prefix: of the commits that one process appended, none is missing before one that is there.
  std::optional<std::string> FindHole(const std::vector<uint64_t>& found, Lsn redo_start) {
    std::map<uint64_t, uint64_t> last_of_life;
    for (const uint64_t timestamp : found) last_of_life[timestamp / kLifeTimestamps] = timestamp;
    for (const auto& [life, last] : last_of_life) {
      for (uint64_t timestamp = life * kLifeTimestamps + 1; timestamp < last; ++timestamp) {
        if (!sizes_.contains(timestamp)) continue;
        const bool there = std::ranges::find(found, timestamp) != found.end();
        const bool trimmed = lsns_.contains(timestamp) && lsns_[timestamp] < redo_start;
        if (!there && !trimmed) return Concat("commit ", timestamp, " is missing before ", last);
      }
    }
    return std::nullopt;
  }

 public:
  static constexpr uint64_t kLifeTimestamps = 1'000'000;

 private:
  std::map<uint64_t, size_t> sizes_;
  std::map<uint64_t, Lsn> lsns_;
  std::vector<uint64_t> acknowledged_;
  std::vector<Lsn> redo_starts_{kFirstLsn};
  std::vector<DcId> dcs_;
  uint64_t highest_drawn_ = 0;
  uint64_t epoch_ = 0;
};

class CrashRun {
 public:
  explicit CrashRun(uint64_t seed) : disk_(RealRuntime(), seed), random_(seed) {}

  FaultyDisk& disk() { return disk_; }
  // Whole blocks that recoveries have found behind a torn one.
  uint64_t dropped_bytes() const { return dropped_bytes_; }

  // One process: opens, checks, works, dies. If `changes_until_crash` is 0, it dies after its work. Returns the first
  // error, or nothing.
  std::optional<std::string> Live(uint64_t changes_until_crash, int commits) {
    const std::unique_ptr<Storage> storage = disk_.Mount();
    const uint64_t crashes = disk_.crashes();
    disk_.CrashAfter(changes_until_crash);
    std::optional<std::string> wrong;
    {
      RecoveredLog recovered;
      Result<std::unique_ptr<RedoLog>> log = RedoLog::Open(Options(), RealRuntime(), *storage, &recovered);
      if (log.ok()) {
        dropped_bytes_ += recovered.dropped_bytes;
        if (changes_until_crash == 0 || disk_.crashes() == crashes) wrong = oracle_.Check(**log, recovered);
        // A crash during the check spoils its reading, not the log.
        if (disk_.crashes() != crashes) wrong = std::nullopt;
        if (!wrong) Work(**log, recovered, commits);
      } else if (disk_.crashes() == crashes) {
        wrong = Concat("refused: ", log.status().ToString());
      }
      if (disk_.crashes() == crashes) disk_.Crash(random_.Next());
    }
    disk_.CrashAfter(0);
    return wrong;
  }

 private:
  static RedoLogOptions Options() {
    RedoLogOptions options = SmallLog("/log");
    options.ring_bytes = 16 << 10;
    options.segment_bytes = 16 << 10;
    options.max_record_bytes = 4 << 10;
    options.block_bytes = 4 << 10;
    options.chunk_bytes = 1 << 10;
    options.timestamp_block = 16;
    options.max_small_in_flight = 8;
    return options;
  }

  // Commits of one thread, some of which it waits for, with redo starts, DCs and reservations in between.
  void Work(RedoLog& log, const RecoveredLog& recovered, int commits) {
    const uint64_t life = recovered.epoch.value * Oracle::kLifeTimestamps;
    std::vector<std::pair<uint64_t, Lsn>> unacknowledged;
    uint64_t drawn = recovered.first_timestamp.value;
    int held = 0;
    for (int i = 1; i <= commits && log.failure().ok(); ++i, ++drawn) {
      if (held > 0 && !log.EnsureReserved(Timestamp(drawn), RealRuntime().Now()).ok()) {
        held = 0;
        disk_.HoldCompletions(false);
      }
      if (!log.EnsureReserved(Timestamp(drawn), kNoDeadline).ok()) break;
      oracle_.MayBeDrawn(drawn);
      const uint64_t timestamp = life + static_cast<uint64_t>(i);
      const size_t bytes = held == 0 && random_.OneIn(6) ? random_.Below(6000) : random_.Below(300);
      const AppendResult appended = CommitInPieces(log, timestamp, bytes);
      oracle_.Appended(timestamp, appended.lsn, ValueOf(timestamp, bytes).size());
      unacknowledged.emplace_back(timestamp, appended.lsn);
      // Sometimes several blocks are in flight together, so that a crash can tear one and keep those behind it. Not
      // when the ring is nearly full: the appender would wait for space that only the held completions can free.
      if (held == 0 && random_.OneIn(8) && log.WaitDurable(appended.lsn, kNoDeadline).ok())
        held = 1 + static_cast<int>(random_.Below(6));
      if (held > 0) {
        disk_.HoldCompletions(--held > 0);
        AwaitTaken(log);
        continue;
      }
      if (random_.OneIn(4) && log.WaitDurable(appended.lsn, kNoDeadline).ok()) {
        for (const auto& each : unacknowledged) oracle_.Acknowledged(each.first);
        unacknowledged.clear();
        if (random_.OneIn(4)) {
          oracle_.RedoStartMayBe(appended.first);
          (void)log.AdvanceRedoStart({.lsn = appended.first, .stable = {}},
                                     kNoDeadline);  // fails only when the disk fails
        }
      }
      if (random_.OneIn(20) && log.AddKnownDc(DcId(timestamp % 7), kNoDeadline).ok())
        oracle_.DcAcknowledged(DcId(timestamp % 7));
    }
    disk_.HoldCompletions(false);
    log.Stop();
  }

  // Waits until the log thread has taken all appended records, so that the next commit gets a block of its own. Gives
  // up soon if that cannot happen (no place in flight, no spare segment, a crash).
  void AwaitTaken(RedoLog& log) {
    const Deadline give_up = In(milliseconds(2));
    for (Duration pause = microseconds(5); RealRuntime().Now() < give_up && log.failure().ok(); pause *= 2) {
      if (log.counters().untaken_bytes == 0) return;
      RealRuntime().SleepUntil(RealRuntime().Now() + pause);
    }
  }

  // The value cut into updates of at most 500 bytes, so that large commits come in chunks.
  static AppendResult CommitInPieces(RedoLog& log, uint64_t timestamp, size_t bytes) {
    const std::string value = ValueOf(timestamp, bytes);
    std::vector<Update> updates;
    for (size_t at = 0; at < value.size(); at += 500) {
      updates.push_back(Put(static_cast<uint32_t>(updates.size() + 1), "key", std::string_view(value).substr(at, 500)));
    }
    return log.AppendCommit(Timestamp(timestamp), updates);
  }

  FaultyDisk disk_;
  Random random_;
  Oracle oracle_;
  uint64_t dropped_bytes_ = 0;
};

// Number of changing operations of one complete first process.
uint64_t OperationsOfALife(uint64_t seed, int commits) {
  CrashRun run(seed);
  EXPECT_EQ(run.Live(0, commits), std::nullopt);
  return run.disk().counts().changing;
}

// Runs processes of `commits` commits that crash at each of their operations, with a second crash soon after. Returns
// the first error.
std::optional<std::string> CrashEverywhere(int commits, uint64_t step, void (*prepare)(FaultyDisk&)) {
  const uint64_t operations = OperationsOfALife(1, commits);
  EXPECT_GT(operations, static_cast<uint64_t>(commits) / 2);
  for (uint64_t crash_at = 1; crash_at <= operations; crash_at += step) {
    CrashRun run(crash_at);
    prepare(run.disk());
    std::optional<std::string> wrong = run.Live(crash_at, commits);
    if (!wrong) wrong = run.Live(1 + crash_at % 11, commits);  // during recovery, or soon after it
    if (!wrong) wrong = run.Live(0, commits);
    if (!wrong) wrong = run.Live(0, 0);
    if (wrong) return Concat("crash at operation ", crash_at, ": ", *wrong);
  }
  return std::nullopt;
}

TEST(RedoLogCrash, AtEveryOperationAndAgainInRecovery) {
  EXPECT_EQ(CrashEverywhere(100, 1, [](FaultyDisk&) {}), std::nullopt);
}

TEST(RedoLogCrash, ManyStartsEndedAtRandom) {
  uint64_t dropped_bytes = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    CrashRun run(seed);
    for (int life = 0; life < 8; ++life) {
      const std::optional<std::string> wrong = run.Live(random.OneIn(4) ? 0 : 1 + random.Below(80), 30);
      ASSERT_EQ(wrong, std::nullopt) << "seed " << seed << " life " << life;
    }
    dropped_bytes += run.dropped_bytes();
  }
  EXPECT_GT(dropped_bytes, 0u);  // otherwise no run has had a hole with blocks behind it
}

// One log, a thousand processes, a quarter of which die while they start. Epochs and timestamps rise through all of
// them.
TEST(RedoLogCrash, AThousandStartsOfOneLog) {
  Random random(1);
  CrashRun run(1);
  for (int life = 0; life < 1000; ++life) {
    const uint64_t crash_at = random.OneIn(4) ? 1 + random.Below(8) : random.OneIn(3) ? 0 : 1 + random.Below(30);
    const std::optional<std::string> wrong = run.Live(crash_at, 4);
    ASSERT_EQ(wrong, std::nullopt) << "life " << life;
  }
}

// The oracle detects errors: it finds the loss on a disk that acknowledges syncs without doing them.
TEST(RedoLogCrash, ADiskThatIgnoresSyncsIsFoundOut) {
  const std::optional<std::string> wrong = CrashEverywhere(40, 1, [](FaultyDisk& disk) { disk.SetIgnoreSync(true); });
  ASSERT_NE(wrong, std::nullopt);
}

}  // namespace
}  // namespace deut::tc
