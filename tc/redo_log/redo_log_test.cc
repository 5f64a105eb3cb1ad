#include "tc/redo_log/redo_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "common/testing/test_points.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"
#include "tc/redo_log/log_test_util.h"

namespace deut::tc {
namespace {

class RedoLogTest : public ::testing::Test {
 protected:
  std::unique_ptr<RedoLog> Open() {
    log_ = nullptr;  // unlocks the directory
    log_ = MustOpen(options_, *storage_, &recovered_);
    return std::move(log_);
  }

  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  RedoLogOptions options_ = SmallLog("/log");
  RecoveredLog recovered_;
  std::unique_ptr<RedoLog> log_;
};

TEST_F(RedoLogTest, EveryStartHasItsOwnEpochNonceAndTimestamps) {
  auto log = Open();
  EXPECT_TRUE(recovered_.created);
  EXPECT_EQ(recovered_.epoch, TcEpoch(1));
  EXPECT_EQ(recovered_.first_timestamp, Timestamp(1));
  EXPECT_NE(recovered_.tc, TcId(0));
  const RecoveredLog first = recovered_;
  log = nullptr;
  log = Open();
  EXPECT_FALSE(recovered_.created);
  EXPECT_EQ(recovered_.tc, first.tc);
  EXPECT_EQ(recovered_.epoch, TcEpoch(2));
  EXPECT_NE(recovered_.nonce, first.nonce);
  EXPECT_EQ(recovered_.first_timestamp, Timestamp(1001));
  EXPECT_EQ(recovered_.dropped_bytes, 0u);
  EXPECT_EQ(recovered_.cut.lsn, recovered_.end_lsn);
  EXPECT_EQ(log->epoch(), TcEpoch(2));
}

TEST_F(RedoLogTest, CommitsComeBackInOrderAcrossSegmentsAndStarts) {
  std::vector<uint64_t> expected;
  for (uint64_t life = 1; life <= 3; ++life) {
    auto log = Open();
    EXPECT_EQ(CommitTimestamps(ReadAll(*log, recovered_.redo_start.lsn)), expected);
    AppendResult last;
    for (uint64_t i = 0; i < 300; ++i) {
      expected.push_back(life * 1000 + i);
      last = Commit(*log, expected.back(), i * 7 % 1000);
    }
    ASSERT_TRUE(log->WaitDurable(last.lsn, kNoDeadline).ok());
    EXPECT_GT(log->durable(), last.lsn);
    const std::vector<ReadRecord> records = ReadAll(*log, recovered_.redo_start.lsn);
    ASSERT_EQ(CommitTimestamps(records), expected);
    for (const ReadRecord& record : records) {
      if (record.type != RecordType::kCommit) continue;
      EXPECT_EQ(record.epoch, TcEpoch(record.timestamp.value / 1000));
      ASSERT_EQ(record.updates.size(), 1u);
      EXPECT_EQ(record.updates[0].first, "key-" + std::to_string(record.timestamp.value));
      EXPECT_EQ(record.updates[0].second, ValueOf(record.timestamp.value, record.timestamp.value % 1000 * 7 % 1000));
    }
    EXPECT_GT(log->counters().segments, 2u * life);
    EXPECT_GT(log->counters().fills_from_disk, 0u);  // the ring holds only the end of it
    EXPECT_GT(log->counters().fills_from_ring, 0u);
  }
}

TEST_F(RedoLogTest, ALargeTransactionIsCutIntoChunks) {
  auto log = Open();
  std::vector<std::string> keys, values;
  std::vector<Update> updates;
  for (uint32_t i = 0; i < 40; ++i) {
    keys.push_back("key-" + std::to_string(i));
    values.push_back(ValueOf(i, 700));
  }
  for (uint32_t i = 0; i < 40; ++i) updates.push_back(Put(i + 1, keys[i], values[i]));
  Commit(*log, 1);
  const AppendResult large = log->AppendCommit(Timestamp(2), updates);
  EXPECT_LT(large.first, large.lsn);
  ASSERT_TRUE(log->WaitDurable(large.lsn, kNoDeadline).ok());
  for (int life = 0; life < 2; ++life) {
    const std::vector<ReadRecord> records = ReadAll(*log, recovered_.redo_start.lsn);
    EXPECT_EQ(CommitTimestamps(records), (std::vector<uint64_t>{1, 2}));
    for (const ReadRecord& record : records) {
      if (record.timestamp != Timestamp(2) || record.type != RecordType::kCommit) continue;
      EXPECT_EQ(record.lsn, large.lsn);
      ASSERT_EQ(record.updates.size(), 40u);
      for (uint32_t i = 0; i < 40; ++i) {
        EXPECT_EQ(record.updates[i].first, keys[i]);
        EXPECT_EQ(record.updates[i].second, values[i]);
      }
    }
    log = nullptr;
    log = Open();
  }
}

TEST_F(RedoLogTest, ChunksMayBeLoggedAheadByTheTransaction) {
  auto log = Open();
  const Update first = Put(1, "a", "1"), second = Put(2, "b", "2"), third = Put(3, "c", "3");
  const AppendResult one = log->AppendChunk(Timestamp(5), {&first, 1});
  const AppendResult two = log->AppendChunk(Timestamp(5), {&second, 1});
  const std::vector<Lsn> chunks = {one.lsn, two.lsn};
  const AppendResult commit = log->AppendCommit(Timestamp(5), {&third, 1}, chunks);
  EXPECT_EQ(commit.first, one.lsn);
  // A chunk of another transaction is not accepted as the commit's own.
  const std::vector<Lsn> wrong = {one.lsn};
  const AppendResult bad = log->AppendCommit(Timestamp(6), {&third, 1}, wrong);
  ASSERT_TRUE(log->WaitDurable(bad.lsn, kNoDeadline).ok());
  const auto reader = log->NewReader(commit.lsn);
  LogRecord record, chunk;
  ASSERT_TRUE(reader->Next(&record, kNoDeadline).ok());
  ASSERT_EQ(record.chunks.size(), 2u);
  ASSERT_TRUE(reader->ReadChunk(record, record.chunks[1], &chunk).ok());
  EXPECT_EQ(chunk.updates.begin()->key, "b");
  EXPECT_EQ(record.updates.begin()->key, "c");
  ASSERT_TRUE(reader->Next(&record, kNoDeadline).ok());
  const Status refused = reader->ReadChunk(record, record.chunks[0], &chunk);
  EXPECT_TRUE(refused == ErrorCode::kCorruption) << refused.ToString();
}

TEST_F(RedoLogTest, LogStateOutlivesTrimming) {
  auto log = Open();
  ASSERT_TRUE(log->AddKnownDc(DcId(7), kNoDeadline).ok());
  ASSERT_TRUE(log->AddKnownDc(DcId(5), kNoDeadline).ok());
  ASSERT_TRUE(log->AddKnownDc(DcId(7), kNoDeadline).ok());
  log->AppendLowWater(Timestamp(42));
  AppendResult last;
  RedoStart redo;
  for (uint64_t round = 0; round < 12; ++round) {
    for (uint64_t i = 0; i < 100; ++i) last = Commit(*log, round * 100 + i + 1, 500);
    ASSERT_TRUE(log->WaitDurable(last.lsn, kNoDeadline).ok());
    redo = RedoStart{.lsn = last.lsn, .stable = {{.dc = DcId(5), .stable = {.commit = last.lsn, .sequence = 1}}}};
    ASSERT_TRUE(log->AdvanceRedoStart(redo, kNoDeadline).ok());
    EXPECT_EQ(log->redo_start(), redo);
  }
  while (log->counters().segments > 2) RealRuntime().Yield();  // the helper is trimming
  EXPECT_GT(log->counters().segments_recycled, 0u);
  EXPECT_GT(log->first_lsn(), kFirstLsn);
  EXPECT_LE(log->first_lsn(), redo.lsn);

  const auto reader = log->NewReader(kFirstLsn);
  LogRecord record;
  const Status trimmed = reader->Next(&record, kNoDeadline);
  EXPECT_TRUE(trimmed == ErrorCode::kNotFound) << trimmed.ToString();

  log = nullptr;
  log = Open();
  EXPECT_EQ(recovered_.redo_start, redo);
  EXPECT_EQ(recovered_.known_dcs, (std::vector<DcId>{DcId(5), DcId(7)}));
  EXPECT_EQ(recovered_.low_water, Timestamp(42));
  EXPECT_EQ(recovered_.first_timestamp, Timestamp(1001));
  EXPECT_EQ(CommitTimestamps(ReadAll(*log, redo.lsn)), (std::vector<uint64_t>{1200}));
}

AppendResult NamedCommit(RedoLog& log, uint64_t number, size_t value_bytes = 500) {
  const std::string value = ValueOf(number, value_bytes);
  const Update update = Put(1, "key", value);
  return log.AppendCommit(Timestamp(number), {&update, 1}, {}, TransactionId{.high = 1, .low = number});
}

TEST_F(RedoLogTest, IdsOfCommitsAreFoundAgain) {
  options_.max_outcomes = 2;
  auto log = Open();
  EXPECT_EQ(recovered_.outcome_horizon, Timestamp(0));
  Commit(*log, 1);
  std::vector<AppendResult> commits;
  for (uint64_t i = 2; i <= 4; ++i)
    commits.push_back(NamedCommit(*log, i, i == 4 ? 5000 : 20));  // the last one in chunks
  ASSERT_TRUE(log->WaitDurable(commits.back().lsn, kNoDeadline).ok());
  log = nullptr;
  log = Open();
  ASSERT_EQ(recovered_.outcomes.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(recovered_.outcomes[i],
              (CommitOutcome{
                  .id = {.high = 1, .low = i + 3}, .timestamp = Timestamp(i + 3), .commit_lsn = commits[i + 1].lsn}));
  }
  EXPECT_EQ(recovered_.outcome_horizon, Timestamp(3)) << "one more was there";
  EXPECT_EQ(CommitTimestamps(ReadAll(*log, kFirstLsn)), (std::vector<uint64_t>{1, 2, 3, 4}));
}

// The log is kept below the redo start for its ids, within its limits. The forgotten ids are behind the logged
// horizon.
TEST_F(RedoLogTest, TheLogIsKeptForItsIds) {
  options_.max_outcomes = 10'000;
  options_.keep_time = seconds(3600);
  options_.keep_bytes = uint64_t{3} * options_.segment_bytes;
  auto log = Open();
  std::vector<Lsn> lsns;
  uint64_t forgotten = 0;  // the highest commit that was trimmed
  log->set_before_trim([&](Lsn cut) {
    for (uint64_t i = forgotten + 1; i <= lsns.size() && lsns[i - 1] < cut; ++i) forgotten = i;
    return Timestamp(forgotten + 1);
  });
  // The number of files that hundreds of commits take depends on how many are written at once. A single commit fills
  // no file.
  lsns.push_back(NamedCommit(*log, 1).lsn);
  ASSERT_TRUE(log->WaitDurable(lsns.back(), kNoDeadline).ok());
  ASSERT_TRUE(log->AdvanceRedoStart({.lsn = lsns.back(), .stable = {}}, kNoDeadline).ok());
  EXPECT_EQ(log->first_lsn(), kFirstLsn) << "nothing has to go yet";
  for (uint64_t round = 0; round < 12; ++round) {
    AppendResult last;
    for (uint64_t i = round == 0 ? 1 : 0; i < 100; ++i) {
      last = NamedCommit(*log, round * 100 + i + 1);
      lsns.push_back(last.lsn);
    }
    ASSERT_TRUE(log->WaitDurable(last.lsn, kNoDeadline).ok());
    ASSERT_TRUE(log->AdvanceRedoStart({.lsn = last.lsn, .stable = {}}, kNoDeadline).ok());
  }
  while (log->counters().segments > 4) RealRuntime().Yield();  // the helper is trimming
  EXPECT_GT(forgotten, 0u);
  EXPECT_GE(log->counters().segments, 3u);
  const uint64_t bound = forgotten;
  log = nullptr;
  log = Open();
  EXPECT_EQ(recovered_.outcome_horizon, Timestamp(bound + 1));
  ASSERT_FALSE(recovered_.outcomes.empty());
  EXPECT_LE(recovered_.outcomes.front().timestamp, Timestamp(bound + 1)) << "none is missing above the horizon";
  EXPECT_EQ(recovered_.outcomes.back().timestamp, Timestamp(1200));
}

TEST_F(RedoLogTest, ARedoStartNeverGoesBackNorAhead) {
  auto log = Open();
  const AppendResult commit = Commit(*log, 1);
  ASSERT_TRUE(log->WaitDurable(commit.lsn, kNoDeadline).ok());
  EXPECT_TRUE(log->AdvanceRedoStart({.lsn = Lsn(log->tail().value + 8), .stable = {}}, kNoDeadline) ==
              ErrorCode::kInvalidArgument);
  ASSERT_TRUE(log->AdvanceRedoStart({.lsn = commit.end, .stable = {}}, kNoDeadline).ok());
  EXPECT_TRUE(log->AdvanceRedoStart({.lsn = commit.lsn, .stable = {}}, kNoDeadline) == ErrorCode::kInvalidArgument);
  RedoStart too_many{.lsn = commit.end, .stable = std::vector<DcPosition>(65)};
  EXPECT_TRUE(log->AdvanceRedoStart(too_many, kNoDeadline) == ErrorCode::kInvalidArgument);
  for (uint64_t dc = 0; dc < 64; ++dc) ASSERT_TRUE(log->AddKnownDc(DcId(dc), kNoDeadline).ok());
  EXPECT_TRUE(log->AddKnownDc(DcId(64), kNoDeadline) == ErrorCode::kResourceExhausted);
}

TEST_F(RedoLogTest, AReaderFollowsTheLog) {
  auto log = Open();
  const auto reader = log->NewReader(log->tail());
  LogRecord record;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(reader->Next(&record, In(milliseconds(1))) == ErrorCode::kDeadlineExceeded);
  constexpr uint64_t kCommits = 2000;
  auto appender = RealRuntime().StartThread("appender", [&] {
    for (uint64_t i = 1; i <= kCommits; ++i) Commit(*log, i, i % 300);
  });
  for (uint64_t i = 1; i <= kCommits; ++i) {
    const Status status = reader->Next(&record, kNoDeadline);
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_EQ(record.timestamp, Timestamp(i));
    ASSERT_EQ(record.updates.begin()->value, ValueOf(i, i % 300));
  }
  appender->Join();
  auto waiting = RealRuntime().StartThread(
      "reader", [&] { EXPECT_TRUE(reader->Next(&record, kNoDeadline) == ErrorCode::kCancelled); });
  log->Stop();
  waiting->Join();
}

TEST_F(RedoLogTest, APositionInsideARecordIsRefused) {
  auto log = Open();
  const AppendResult commit = Commit(*log, 1, 200);
  ASSERT_TRUE(log->WaitDurable(commit.lsn, kNoDeadline).ok());
  LogRecord record;
  for (uint64_t lsn = commit.lsn.value + 1; lsn < commit.end.value; ++lsn) {
    EXPECT_TRUE(log->NewReader(Lsn(lsn))->Next(&record, kNoDeadline) == ErrorCode::kCorruption) << lsn;
  }
}

struct CountingWaiter final : DurabilityCallback {
  void OnDurable(const Status& s) override {
    ok = s.ok();
    called.fetch_add(1);
  }
  std::atomic<bool> ok{false};
  std::atomic<int> called{0};
};

TEST_F(RedoLogTest, WaitersAreToldOnce) {
  auto log = Open();
  std::vector<CountingWaiter> waiters(200);
  for (uint64_t i = 0; i < waiters.size(); ++i) {
    const AppendResult commit = Commit(*log, i + 1);
    if (log->NotifyWhenDurable(commit.lsn, &waiters[i])) {
      EXPECT_GT(log->durable(), commit.lsn);
      waiters[i].OnDurable(Status::Ok());
    }
  }
  log->Stop();  // writes all that was appended
  for (const CountingWaiter& waiter : waiters) {
    EXPECT_EQ(waiter.called.load(), 1);
    EXPECT_TRUE(waiter.ok.load());
  }
  CountingWaiter late;
  EXPECT_FALSE(log->NotifyWhenDurable(log->tail(), &late));
  EXPECT_EQ(late.called.load(), 1);
  EXPECT_FALSE(late.ok.load());
  EXPECT_TRUE(log->CheckSpace(0) == ErrorCode::kUnavailable);
}

#ifdef DEUT_TEST_POINTS
// The log is stopped while its last records wait for a segment. They are written once there is one; then the log
// ends.
TEST_F(RedoLogTest, AStopWritesWhatWaitsForASegment) {
  std::atomic<bool> held{true};
  const auto until = [](auto condition) {
    while (!condition()) RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(50));
  };
  auto log = Open();
  until([&] { return log->counters().spare_segments >= options_.spare_segments; });
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "redo_log.segments.before_stop_check") until([&] { return !held.load(); });
  });
  uint64_t timestamp = 0;
  AppendResult last = Commit(*log, ++timestamp, 1000);
  for (;;) {
    until([&] { return log->counters().untaken_bytes == 0; });
    const bool full = log->counters().free_bytes < kBlockAlignment;
    last = Commit(*log, ++timestamp, 1000);
    if (full) break;
  }
  const auto stopper = RealRuntime().StartThread("stopper", [&] { log->Stop(); });
  until([&] { return log->CheckSpace(0).message().find("stopping") != std::string::npos; });
  for (int pause = 0; pause < 100; ++pause) RealRuntime().Yield();
  held.store(false);
  stopper->Join();
  testing::SetPointHandler({});
  EXPECT_GT(log->durable(), last.lsn);
  log = nullptr;
  log = Open();
  EXPECT_EQ(CommitTimestamps(ReadAll(*log, recovered_.redo_start.lsn)).size(), timestamp);
}
#endif  // DEUT_TEST_POINTS

// Threads that commit, wait, and read back each other's commits.
TEST_F(RedoLogTest, ManyThreads) {
  constexpr uint64_t kThreads = 4, kCommits = 400;
  auto log = Open();
  std::vector<std::unique_ptr<Thread>> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.push_back(RealRuntime().StartThread("committer", [&, t] {
      for (uint64_t i = 0; i < kCommits; ++i) {
        const uint64_t timestamp = t * kCommits + i + 1;
        EXPECT_TRUE(log->EnsureReserved(Timestamp(timestamp), kNoDeadline).ok());
        const AppendResult commit = Commit(*log, timestamp, timestamp % 900);
        if (i % 4 == 0) {
          EXPECT_TRUE(log->WaitDurable(commit.lsn, kNoDeadline).ok());
          LogRecord record;
          const auto reader = log->NewReader(commit.lsn);
          EXPECT_TRUE(reader->Next(&record, kNoDeadline).ok());
          EXPECT_EQ(record.timestamp, Timestamp(timestamp));
          EXPECT_EQ(record.updates.begin()->value, ValueOf(timestamp, timestamp % 900));
        }
      }
    }));
  }
  threads.clear();
  log = nullptr;
  log = Open();
  std::vector<uint64_t> timestamps = CommitTimestamps(ReadAll(*log, recovered_.redo_start.lsn));
  std::sort(timestamps.begin(), timestamps.end());
  ASSERT_EQ(timestamps.size(), kThreads * kCommits);
  for (uint64_t i = 0; i < timestamps.size(); ++i) ASSERT_EQ(timestamps[i], i + 1);
  EXPECT_GT(recovered_.first_timestamp, Timestamp(kThreads * kCommits));
}

TEST_F(RedoLogTest, TheDirectoryHasOneOwner) {
  const auto log = Open();
  RecoveredLog recovered;
  const auto second = RedoLog::Open(options_, RealRuntime(), *storage_, &recovered);
  EXPECT_TRUE(second.status() == ErrorCode::kUnavailable) << second.status().ToString();
}

TEST_F(RedoLogTest, ALogKeepsItsIdentity) {
  options_.tc = TcId(77);
  auto log = Open();
  EXPECT_EQ(recovered_.tc, TcId(77));
  log = nullptr;
  options_.tc = TcId(78);
  RecoveredLog recovered;
  EXPECT_TRUE(RedoLog::Open(options_, RealRuntime(), *storage_, &recovered).status() == ErrorCode::kInvalidArgument);
  options_.tc = TcId(0);
  log = Open();
  EXPECT_EQ(recovered_.tc, TcId(77));
}

TEST_F(RedoLogTest, OptionsAreChecked) {
  const std::vector<std::pair<std::string, void (*)(RedoLogOptions*)>> wrong = {
      {"directory", [](RedoLogOptions* o) { o->directory.clear(); }},
      {"ring_bytes", [](RedoLogOptions* o) { o->ring_bytes = 48 << 10; }},
      {"ring_bytes", [](RedoLogOptions* o) { o->ring_bytes = 16 << 10; }},
      {"segment_bytes", [](RedoLogOptions* o) { o->segment_bytes += 512; }},
      {"segment_bytes", [](RedoLogOptions* o) { o->segment_bytes = 16 << 10; }},
      {"chunk_bytes", [](RedoLogOptions* o) { o->chunk_bytes = o->max_record_bytes; }},
      {"max_record_bytes", [](RedoLogOptions* o) { o->max_record_bytes = 1024; }},
      {"block_bytes", [](RedoLogOptions* o) { o->block_bytes = 0; }},
      {"in flight", [](RedoLogOptions* o) { o->max_in_flight = 0; }},
      {"spare_segments", [](RedoLogOptions* o) { o->spare_segments = 0; }},
      {"timestamp_block", [](RedoLogOptions* o) { o->timestamp_block = 0; }}};
  for (const auto& [name, spoil] : wrong) {
    RedoLogOptions options = options_;
    spoil(&options);
    RecoveredLog recovered;
    const Status status = RedoLog::Open(options, RealRuntime(), *storage_, &recovered).status();
    EXPECT_TRUE(status == ErrorCode::kInvalidArgument) << name;
    EXPECT_NE(status.message().find(name), std::string_view::npos) << status.ToString();
  }
}

// On real files, with both kinds of input and output.
TEST(RedoLogOnDisk, RoundTrip) {
  for (const IoKind kind : {IoKind::kAuto, IoKind::kPosix}) {
    testing::TempDir dir;
    Result<std::unique_ptr<Storage>> storage = NewSystemStorage(kind, RealRuntime());
    ASSERT_TRUE(storage.ok()) << storage.status().ToString();
    RedoLogOptions options = SmallLog(dir.Sub("log"));
    RecoveredLog recovered;
    for (uint64_t life = 0; life < 3; ++life) {
      const auto log = MustOpen(options, **storage, &recovered);
      ASSERT_NE(log, nullptr);
      EXPECT_EQ(CommitTimestamps(ReadAll(*log, recovered.redo_start.lsn)).size(), life * 200);
      AppendResult last;
      for (uint64_t i = 1; i <= 200; ++i) {
        last = Commit(*log, life * 200 + i, 400);
        if (i % 10 == 0) ASSERT_TRUE(log->WaitDurable(last.lsn, kNoDeadline).ok());
      }
    }
  }
}

}  // namespace
}  // namespace deut::tc
