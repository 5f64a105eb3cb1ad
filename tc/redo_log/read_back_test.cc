// Values that are read back from the log by their places (S9): from the ring, from the files, and from cached pieces.
// They belong to commits in chunks, with ids, and of earlier TC epochs. Damaged, misplaced, trimmed and temporarily
// unreadable values are tested as well.
#include "tc/redo_log/read_back.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

class ReadBackTest : public ::testing::Test {
 protected:
  struct Known {
    std::string key, value;
    LoggedPut put;  // without the key
  };

  ReadBackTest() { Open(); }

  void Open() {
    log_ = nullptr;
    storage_ = disk_.Mount();
    log_ = MustOpen(options_, *storage_, &recovered_);
  }

  // One commit of `updates` values of `bytes` each.
  AppendResult Commit(size_t updates, size_t bytes, TransactionId id = {}) {
    const uint64_t timestamp = ++timestamp_;
    std::vector<std::pair<std::string, std::string>> texts;
    for (size_t i = 0; i < updates; ++i) {
      texts.emplace_back(Concat("key", timestamp, ".", i),
                         std::string(bytes, static_cast<char>('a' + (i + timestamp) % 26)));
      texts.back().second += Concat(timestamp, ".", i);
    }
    std::vector<Update> puts;
    for (size_t i = 0; i < updates; ++i)
      puts.push_back(Put(static_cast<uint32_t>(i + 1), texts[i].first, texts[i].second));
    std::vector<Lsn> places(updates);
    const AppendResult appended = log_->AppendCommit(Timestamp(timestamp), puts, {}, id, absl::MakeSpan(places));
    for (size_t i = 0; i < updates; ++i) {
      known_.push_back({.key = texts[i].first,
                        .value = texts[i].second,
                        .put = {.place = places[i],
                                .table = TableId(1),
                                .sequence = static_cast<uint32_t>(i + 1),
                                .value_bytes = static_cast<uint32_t>(texts[i].second.size()),
                                .key = {}}});
    }
    EXPECT_TRUE(log_->WaitDurable(appended.lsn, kNoDeadline).ok());
    return appended;
  }
  // Commits until the ring holds no earlier commit.
  void FillRing() {
    const uint64_t end = log_->tail().value + 2 * options_.ring_bytes;
    while (log_->tail().value < end) Commit(1, 4000);
  }
  Status Read(const Known& known, std::string* value) {
    LoggedPut put = known.put;
    put.key = known.key;
    return log_->ReadValue(put, value);
  }
  void ExpectAll() {
    for (const Known& known : known_) {
      std::string value;
      const Status read = Read(known, &value);
      ASSERT_TRUE(read.ok()) << read.ToString();
      ASSERT_EQ(value, known.value) << known.key;
    }
  }

  FaultyDisk disk_{RealRuntime(), 1};
  RedoLogOptions options_ = [] {
    RedoLogOptions options = SmallLog("/log");
    options.read_back_bytes = 32 << 10;
    return options;
  }();
  std::unique_ptr<Storage> storage_;
  RecoveredLog recovered_;
  std::unique_ptr<RedoLog> log_;
  uint64_t timestamp_ = 0;
  std::vector<Known> known_;
};

TEST_F(ReadBackTest, EveryPlaceOfCommitsWithChunksAndIds) {
  Commit(1, 100);
  Commit(3, 0);
  Commit(40, 300);  // in chunks
  Commit(2, 77, TransactionId{.high = 1, .low = 2});
  Commit(30, 500, TransactionId{.high = 1, .low = 3});
  ExpectAll();
  const RedoLogCounters recent = log_->counters();
  EXPECT_GT(recent.values_from_ring, 0u);
  const size_t first = known_.size();
  FillRing();
  for (size_t i = 0; i < first; ++i) {
    std::string value;
    ASSERT_TRUE(Read(known_[i], &value).ok());
    EXPECT_EQ(value, known_[i].value);
  }
  const RedoLogCounters old = log_->counters();
  EXPECT_EQ(old.values_from_ring, recent.values_from_ring);
  EXPECT_GT(old.values_from_disk, 0u);
  // Neighbouring values are read once.
  EXPECT_GT(old.values_from_kept, old.values_from_disk);
}

TEST_F(ReadBackTest, ValuesOfEarlierStarts) {
  for (int life = 0; life < 3; ++life) {
    for (int i = 0; i < 50; ++i) Commit(3, 200 + i);
    ExpectAll();
    Open();
  }
  ExpectAll();
}

TEST_F(ReadBackTest, AReadThatFailsNamesFileAndOffsetAndIsTheLastOfNothing) {
  Commit(1, 1000);
  FillRing();
  const int fault = disk_.AddFault({.kinds = kDiskRead, .path_contains = "log-"});
  std::string value;
  const Status failed = Read(known_[0], &value);
  EXPECT_EQ(failed.code(), ErrorCode::kIoError);
  EXPECT_NE(failed.message().find("log-"), std::string_view::npos) << failed.ToString();
  EXPECT_NE(failed.message().find("offset"), std::string_view::npos) << failed.ToString();
  EXPECT_EQ(disk_.hits(fault), 1u);
  disk_.RemoveFault(fault);
  EXPECT_TRUE(log_->failure().ok());
  ExpectAll();
}

TEST_F(ReadBackTest, DamageIsSaidWithFileAndOffset) {
  Commit(1, 3000);
  FillRing();
  // Wherever in the first file the block lies.
  for (uint64_t block = kSegmentHeaderBytes; block < options_.segment_bytes; block += kBlockAlignment) {
    ASSERT_TRUE(disk_.FlipBit(Concat("/log/", SegmentName(1)), block + 200, 3).ok());
  }
  std::string value;
  const Status damaged = Read(known_[0], &value);
  EXPECT_EQ(damaged.code(), ErrorCode::kCorruption);
  EXPECT_NE(damaged.message().find("log-"), std::string_view::npos) << damaged.ToString();
  EXPECT_NE(damaged.message().find("offset"), std::string_view::npos) << damaged.ToString();
}

// A block is read as a whole, and the next one is read with it only if both are small.
TEST_F(ReadBackTest, AValueInALargeBlockTakesOneRead) {
  options_.max_record_bytes = 256 << 10;
  options_.chunk_bytes = 128 << 10;
  options_.block_bytes = 256 << 10;
  options_.ring_bytes = 1 << 20;
  options_.segment_bytes = 2 << 20;
  options_.directory = "/large";
  Open();
  // Each has a block of its own, since the next one is appended when it is durable.
  for (int i = 0; i < 20; ++i) Commit(1, 80'000);
  FillRing();
  for (const size_t i : {0, 1, 7}) {
    const uint64_t before = disk_.counts().reads;
    std::string value;
    const Status read = Read(known_[i], &value);
    ASSERT_TRUE(read.ok()) << read.ToString();
    EXPECT_EQ(value, known_[i].value);
    EXPECT_EQ(disk_.counts().reads - before, 1u) << i;
  }
}

// A block takes whole sectors of the file, so small blocks have much less payload than bytes. Only those that came with
// the one read are kept.
TEST_F(ReadBackTest, AValueInASmallBlockTakesOneReadAndBringsItsNeighbours) {
  options_.segment_bytes = 2 << 20;
  options_.read_back_bytes = 1 << 20;
  options_.directory = "/small";
  Open();
  // Each has a block of its own, since the next one is appended when it is durable.
  for (int i = 0; i < 100; ++i) Commit(1, 1000);
  FillRing();
  for (const size_t i : {0, 50}) {
    const uint64_t before = disk_.counts().reads;
    for (size_t neighbour = i; neighbour < i + 20; ++neighbour) {
      std::string value;
      const Status read = Read(known_[neighbour], &value);
      ASSERT_TRUE(read.ok()) << read.ToString();
      EXPECT_EQ(value, known_[neighbour].value);
    }
    EXPECT_EQ(disk_.counts().reads - before, 1u) << i;
  }
}

TEST_F(ReadBackTest, AnotherPutIsNotTakenForTheOneAskedFor) {
  Commit(2, 100);
  std::string value;
  Known wrong = known_[0];
  wrong.put.sequence = 2;
  EXPECT_EQ(Read(wrong, &value).code(), ErrorCode::kCorruption);
  wrong = known_[0];
  wrong.put.table = TableId(2);
  EXPECT_EQ(Read(wrong, &value).code(), ErrorCode::kCorruption);
  wrong = known_[0];
  wrong.key.back() ^= 1;
  EXPECT_EQ(Read(wrong, &value).code(), ErrorCode::kCorruption);
  wrong = known_[0];
  wrong.put.value_bytes -= 1;
  EXPECT_EQ(Read(wrong, &value).code(), ErrorCode::kCorruption);
  wrong = known_[0];
  wrong.put.place = Lsn(wrong.put.place.value + 3);
  EXPECT_EQ(Read(wrong, &value).code(), ErrorCode::kCorruption);
  wrong.put.place = log_->tail();
  EXPECT_EQ(Read(wrong, &value).code(), ErrorCode::kCorruption);
}

TEST_F(ReadBackTest, TrimmedValueIsNotFound) {
  Commit(1, 1000);
  FillRing();
  const AppendResult last = Commit(1, 10);
  ASSERT_TRUE(log_->AdvanceRedoStart({.lsn = last.lsn, .stable = {}}, kNoDeadline).ok());
  // The helper trims the file after a while.
  for (const Deadline soon = In(seconds(60)); log_->first_lsn() <= known_[0].put.place && RealRuntime().Now() < soon;)
    FillRing();
  std::string value;
  const Status read = Read(known_[0], &value);
  EXPECT_EQ(read.code(), ErrorCode::kNotFound) << read.ToString();
  EXPECT_TRUE(Read(known_.back(), &value).ok());
}

}  // namespace
}  // namespace deut::tc
