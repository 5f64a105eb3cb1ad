// Starts on logs with a missing or damaged file: what the start answers, which files it keeps, and which it does not change.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

class PartialLogTest : public ::testing::Test {
 protected:
  PartialLogTest() {
    options_.max_outcomes = 10'000;
    options_.keep_time = seconds(3600);
    options_.keep_bytes = uint64_t{1} << 40;  // keeps the whole log, unless a test sets another value
    options_.timestamp_block = 100'000;
  }

  // Appends named commits [first, last), and redo starts behind them.
  void Fill(RedoLog& log, uint64_t first, uint64_t last) {
    AppendResult appended;
    const std::string value(400, 'v');
    for (uint64_t i = first; i < last; ++i) {
      const Update update = Put(1, "key", value);
      appended = log.AppendCommit(Timestamp(i), {&update, 1}, {}, TransactionId{.high = 1, .low = i});
    }
    ASSERT_TRUE(log.WaitDurable(appended.lsn, kNoDeadline).ok());
    ASSERT_TRUE(log.AdvanceRedoStart({.lsn = appended.lsn, .stable = {}}, kNoDeadline).ok());
  }
  std::unique_ptr<RedoLog> Open() { return MustOpen(options_, *storage_, &recovered_); }

  std::vector<std::string> Names() {
    std::vector<std::string> names = *storage_->List("/log");
    std::erase(names, "LOCK");
    std::ranges::sort(names);
    return names;
  }
  std::string BytesOf(const std::string& name) {
    const auto file = storage_->Open("/log/" + name, {});
    std::string bytes(*(*file)->Size(), '\0');
    EXPECT_EQ(*(*file)->Read(0, bytes.data(), bytes.size()), bytes.size());
    return bytes;
  }
  std::map<std::string, std::string> Files() {
    std::map<std::string, std::string> files;
    for (const std::string& name : Names()) files[name] = BytesOf(name);
    return files;
  }

  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  RedoLogOptions options_ = SmallLog("/log");
  RecoveredLog recovered_;
};

// S2, D1: redo does not need the missing files, but they held ids of commits, and the answer "not committed" would be wrong.
TEST_F(PartialLogTest, IdsThatMissingFilesMayHaveHeldAreTooOldToKnow) {
  auto log = Open();
  Fill(*log, 1, 600);
  log = nullptr;
  ASSERT_GT(Names().size(), 4u);
  log = Open();
  EXPECT_EQ(recovered_.outcome_horizon, Timestamp(0)) << "all is there";
  EXPECT_EQ(recovered_.outcomes.size(), 599u);
  log = nullptr;
  ASSERT_TRUE(storage_->Remove("/log/" + Names().front()).ok());
  for (int start = 0; start < 3; ++start) {
    log = Open();
    ASSERT_FALSE(recovered_.outcomes.empty());
    EXPECT_GT(recovered_.outcomes.front().timestamp, Timestamp(1)) << "the first ones were in the missing file";
    EXPECT_GT(recovered_.outcome_horizon, recovered_.outcomes.front().timestamp);
    EXPECT_LE(recovered_.outcome_horizon, Timestamp(100'001)) << "no life but the first has drawn what was missing";
    log = nullptr;
  }
  // Once the remaining old files may be removed, too, the horizon is logged, and nothing counts as missing any more.
  log = Open();
  const Timestamp raised = recovered_.outcome_horizon;
  log->set_before_trim([&](Lsn) { return raised; });
  log = nullptr;
  options_.keep_bytes = 1;
  log = Open();
  log->set_before_trim([&](Lsn) { return raised; });
  Fill(*log, 300'000, 300'600);
  const Lsn wanted = recovered_.end_lsn;
  while (log->first_lsn() < wanted) RealRuntime().Yield();  // the helper is removing files
  log = nullptr;
  log = Open();
  EXPECT_EQ(recovered_.outcome_horizon, raised);
}

// A refused start removes a lock file that it has made, whether the log itself refuses or the start ends before Begin.
TEST_F(PartialLogTest, AStartThatDoesNotBeginLeavesTheFolderAsItWas) {
  auto log = Open();
  Fill(*log, 1, 600);
  log = nullptr;
  ASSERT_TRUE(storage_->Remove("/log/LOCK").ok());
  const auto folder = [&] { return *storage_->List("/log"); };
  const auto whole = folder();
  {
    const auto recovered = RedoLog::Recover(options_, RealRuntime(), *storage_, &recovered_);
    ASSERT_TRUE(recovered.ok()) << recovered.status().ToString();
    EXPECT_EQ(RedoLog::Recover(options_, RealRuntime(), *storage_, &recovered_).status(), ErrorCode::kUnavailable);
  }
  EXPECT_EQ(folder(), whole);
  ASSERT_TRUE(storage_->Remove("/log/" + Names()[1]).ok());
  const auto files = Files();
  const auto partial = folder();
  for (int start = 0; start < 12; ++start) {
    const auto opened = RedoLog::Recover(options_, RealRuntime(), *storage_, &recovered_);
    EXPECT_EQ(opened.status().code(), ErrorCode::kCorruption);
    EXPECT_TRUE(Files() == files);
    EXPECT_EQ(folder(), partial);
  }
}

// V: a damaged first block behind the end of the log may be that of a segment in use, which alone holds some commits. The next segment needs its
// name, and somebody may need its bytes.
TEST_F(PartialLogTest, DamagedSegmentBehindTheEndIsKept) {
  auto log = Open();
  Fill(*log, 1, 600);
  log = nullptr;
  const std::vector<std::string> before = Names();
  ASSERT_GE(before.size(), 3u);
  // Three spares: the first has zeros only, the second a torn header, the third other bytes behind a sector of zeros.
  std::string torn = BytesOf(before.front());
  torn[200] = static_cast<char>(torn[200] ^ 1);
  std::string headless(torn.size(), '\0');
  headless[5000] = 'x';
  const auto write = [&](const std::string& name, const std::string& bytes) {
    const auto file = storage_->Open("/log/" + name, {.create = true, .writable = true});
    ASSERT_TRUE((*file)->Write(0, bytes.data(), bytes.size()).ok());
  };
  const std::string& last = before.back();
  uint64_t number = 0;
  ASSERT_TRUE(ParseSegmentName(last, &number));
  const std::vector<std::string> added = {SegmentName(number + 1), SegmentName(number + 2), SegmentName(number + 3)};
  write(added[0], std::string(torn.size(), '\0'));
  write(added[1], torn);
  write(added[2], headless);
  write(added[2] + ".damaged", "an earlier one");
  ASSERT_NE(Open(), nullptr);
  const auto after = Files();
  EXPECT_FALSE(after.contains(added[0] + ".damaged"));
  ASSERT_TRUE(after.contains(added[1] + ".damaged"));
  EXPECT_TRUE(after.at(added[1] + ".damaged") == torn);
  ASSERT_TRUE(after.contains(added[2] + ".damaged.2"));
  EXPECT_TRUE(after.at(added[2] + ".damaged.2") == headless.substr(0, 8192)) << "without the zeros at its end";
  EXPECT_EQ(after.at(added[2] + ".damaged"), "an earlier one");
  for (const auto& [name, bytes] : after) EXPECT_EQ(name.find(last + ".damaged"), std::string::npos) << name;
  // The renamed files are no part of the log.
  ASSERT_NE(Open(), nullptr);
  EXPECT_TRUE(Files().at(added[1] + ".damaged") == torn);
}

// X7: power is lost while the header of a new segment and the blocks behind it are written. The next start keeps that file as damaged, but truncates
// it to its written part.
TEST_F(PartialLogTest, ATornHeaderKeepsNoSpace) {
  auto log = Open();
  Fill(*log, 1, 600);
  log = nullptr;
  const std::string last = Names().back();
  std::string torn = BytesOf(Names().front());
  const size_t size = torn.size();
  uint64_t number = 0;
  ASSERT_TRUE(ParseSegmentName(last, &number));
  torn.resize(2 * kBlockAlignment);
  torn[200] = static_cast<char>(torn[200] ^ 1);
  const std::string name = SegmentName(number + 1);
  {
    const auto file = storage_->Open("/log/" + name, {.create = true, .writable = true});
    ASSERT_TRUE((*file)->Write(0, torn.data(), torn.size()).ok());
    ASSERT_TRUE((*file)->Allocate(size).ok());
  }
  ASSERT_NE(Open(), nullptr);
  EXPECT_TRUE(Files()[name + ".damaged"] == torn) << Files()[name + ".damaged"].size() << " bytes";
}

}  // namespace
}  // namespace deut::tc
