// Reads the stored sample of the log's format, as it lies on disk. A copy of it that names another version is
// refused, and nothing is changed. With DEUT_WRITE_SAMPLES=DIR the program writes the sample there, for a new version
// of the format.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/recovery.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

constexpr char kSamples[] = "tc/redo_log/samples/version-2";
using Files = std::map<std::string, std::string>;

RedoLogOptions Options() {
  RedoLogOptions options = SmallLog("/log");
  options.tc = TcId(77);
  options.ring_bytes = 16 << 10;
  options.segment_bytes = 16 << 10;
  options.max_record_bytes = 4 << 10;
  options.block_bytes = 4 << 10;
  options.chunk_bytes = 1 << 10;
  options.spare_segments = 1;
  return options;
}

Files FilesIn(Storage& storage, const std::string& directory) {
  Files files;
  const Result<std::vector<std::string>> names = storage.List(directory);
  EXPECT_TRUE(names.ok()) << names.status().ToString();
  for (const std::string& name : *names) {
    const auto file = storage.Open(Concat(directory, "/", name), {});
    if (!file.ok()) continue;
    std::string bytes(*(*file)->Size(), '\0');
    EXPECT_EQ(*(*file)->Read(0, bytes.data(), bytes.size()), bytes.size());
    files[name] = bytes;
  }
  return files;
}

std::unique_ptr<Storage> DiskWith(const Files& files) {
  std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  EXPECT_TRUE(storage->CreateDirectory("/log").ok());
  for (const auto& [name, bytes] : files) {
    const auto file = storage->Open("/log/" + name, {.create = true, .writable = true});
    EXPECT_TRUE(file.ok() && (*file)->Write(0, bytes.data(), bytes.size()).ok()) << name;
  }
  return storage;
}

// Two TC epochs: commits whole and in chunks, with an id, low-water, a data component, a redo start.
void WriteSample(Storage& disk, const std::string& directory) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  RecoveredLog recovered;
  for (int life = 1; life <= 2; ++life) {
    const auto log = MustOpen(Options(), *storage, &recovered);
    const uint64_t timestamp = recovered.first_timestamp.value;
    const AppendResult first = Commit(*log, timestamp);
    const std::string value = ValueOf(timestamp + 1, 600);
    const std::vector<Update> updates = {Put(1, "a", value), Put(2, "b", value)};
    log->AppendCommit(Timestamp(timestamp + 1), updates, {}, TransactionId{.high = 1, .low = 2});
    ASSERT_TRUE(log->AddKnownDc(DcId(5), kNoDeadline).ok());
    if (life == 1) {
      const RedoStart start{.lsn = first.lsn, .stable = {{.dc = DcId(5), .stable = {}}}};
      ASSERT_TRUE(log->AdvanceRedoStart(start, kNoDeadline).ok());
    }
    ASSERT_TRUE(log->WaitDurable(log->AppendLowWater(Timestamp(timestamp + 2)).lsn, kNoDeadline).ok());
  }
  const Result<RecoveredChain> chain = RecoverChain(*storage, "/log");
  ASSERT_TRUE(chain.ok()) << chain.status().ToString();
  ASSERT_TRUE(disk.CreateDirectory(directory).ok());
  for (const auto& segment : chain->segments) {
    const std::string name = SegmentName(segment->number());
    const std::string bytes = FilesIn(*storage, "/log")[name];
    const auto file = disk.Open(Concat(directory, "/", name), {.create = true, .writable = true});
    ASSERT_TRUE(file.ok() && (*file)->Write(0, bytes.data(), bytes.size()).ok()) << name;
  }
}

class FormatSamplesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Storage>> disk = NewSystemStorage(IoKind::kPosix, RealRuntime());
    ASSERT_TRUE(disk.ok());
    if (const char* const directory = std::getenv("DEUT_WRITE_SAMPLES"); directory != nullptr) {
      WriteSample(**disk, directory);
      GTEST_SKIP() << "the sample was written to " << directory;
    }
    sample_ = FilesIn(**disk, kSamples);
    ASSERT_FALSE(sample_.empty());
  }

  Files sample_;
};

// Fails when the version is raised without a sample of its own.
TEST_F(FormatSamplesTest, TheNewestSampleIsOfTodaysVersion) {
  for (const auto& [name, bytes] : sample_) EXPECT_EQ(LoadU16(bytes.data() + 8), kLogFormatVersion) << name;
}

TEST_F(FormatSamplesTest, TheSampleOfTheFormatIsRead) {
  const std::unique_ptr<Storage> storage = DiskWith(sample_);
  RecoveredLog recovered;
  RedoLogOptions options = Options();
  options.max_outcomes = 10;
  const auto log = MustOpen(options, *storage, &recovered);
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(recovered.tc, TcId(77));
  EXPECT_EQ(recovered.epoch, TcEpoch(3));
  EXPECT_EQ(recovered.known_dcs, std::vector<DcId>{DcId(5)});
  EXPECT_EQ(recovered.first_timestamp, Timestamp(2001));
  EXPECT_EQ(recovered.low_water, Timestamp(1003));
  ASSERT_EQ(recovered.outcomes.size(), 2u);
  EXPECT_EQ(recovered.outcomes[1].timestamp, Timestamp(1002));
  const std::vector<ReadRecord> records = ReadAll(*log, kFirstLsn);
  EXPECT_EQ(CommitTimestamps(records), (std::vector<uint64_t>{1, 2, 1001, 1002}));
  for (const ReadRecord& record : records) {
    if (record.type != RecordType::kCommit) continue;
    const bool large = record.updates.size() == 2;
    EXPECT_EQ(record.updates.back().second, ValueOf(record.timestamp.value, large ? 600 : 20));
  }
}

// Each file in turn names another version, with a right checksum, as a file of that version would.
TEST_F(FormatSamplesTest, AnotherVersionIsRefusedByNameAndNothingIsChanged) {
  for (const auto& [name, bytes] : sample_) {
    for (const int version : {1, kLogFormatVersion + 1}) {
      SCOPED_TRACE(name + " of version " + std::to_string(version));
      Files changed = sample_;
      std::string& file = changed[name];
      StoreU16(file.data() + 8, static_cast<uint16_t>(version));
      StoreU32(file.data() + 4, Crc32c(file.data() + 8, kSegmentHeaderBytes - 8));
      // A file behind the chain, which the start would remove otherwise.
      changed[SegmentName(9)] = std::string(16 << 10, '\0');
      uint64_t number = 0;
      ASSERT_TRUE(ParseSegmentName(sample_.rbegin()->first, &number));
      for (++number; number < 9; ++number) changed[SegmentName(number)] = std::string(16 << 10, '\0');
      changed["LOCK"] = "";
      const std::unique_ptr<Storage> storage = DiskWith(changed);
      const Files before = FilesIn(*storage, "/log");
      RecoveredLog recovered;
      const Status refused = RedoLog::Open(Options(), RealRuntime(), *storage, &recovered).status();
      EXPECT_EQ(refused.code(), ErrorCode::kVersionMismatch) << refused.ToString();
      EXPECT_NE(refused.message().find("/log/" + name + " at offset 0: the segment is of format version " +
                                       std::to_string(version) +
                                       " of the redo log, this program reads and writes "
                                       "version 2; nothing was changed"),
                std::string_view::npos)
          << refused.ToString();
      EXPECT_EQ(FilesIn(*storage, "/log"), before);
    }
  }
}

// A file that no version of this program has written, among those that a start would remove.
TEST_F(FormatSamplesTest, UnrecognizedFileStays) {
  Files changed = sample_;
  uint64_t number = 0;
  ASSERT_TRUE(ParseSegmentName(sample_.rbegin()->first, &number));
  changed[SegmentName(number + 1)] = std::string(16 << 10, '\0');
  changed[SegmentName(number + 2)] = "somebody's notes";
  changed["LOCK"] = "";
  const std::unique_ptr<Storage> storage = DiskWith(changed);
  RecoveredLog recovered;
  const Status refused = RedoLog::Open(Options(), RealRuntime(), *storage, &recovered).status();
  EXPECT_EQ(refused.code(), ErrorCode::kCorruption) << refused.ToString();
  EXPECT_EQ(FilesIn(*storage, "/log"), changed);
}

// A folder that holds a segment of another log.
TEST_F(FormatSamplesTest, ASegmentOfAnotherLogIsRefusedAndNothingIsChanged) {
  const std::unique_ptr<Storage> other = NewMemoryStorage(RealRuntime());
  RecoveredLog recovered;
  for (int life = 0; life < 4; ++life) MustOpen(Options(), *other, &recovered);
  Files changed = sample_;
  uint64_t number = 0;
  ASSERT_TRUE(ParseSegmentName(sample_.rbegin()->first, &number));
  const std::string name = SegmentName(number + 1);
  changed[name] = FilesIn(*other, "/log")[name];
  ASSERT_FALSE(changed[name].empty());
  changed["LOCK"] = "";
  const std::unique_ptr<Storage> storage = DiskWith(changed);
  const Status refused = RedoLog::Open(Options(), RealRuntime(), *storage, &recovered).status();
  EXPECT_EQ(refused.code(), ErrorCode::kCorruption);
  EXPECT_NE(refused.message().find("a segment of another redo log"), std::string_view::npos) << refused.ToString();
  EXPECT_EQ(FilesIn(*storage, "/log"), changed);
}

}  // namespace
}  // namespace deut::tc
