#include "tc/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"
#include "tc/log_format/record_codec.h"
#include "tc/redo_log/log_forge.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/recovery.h"
#include "tc/redo_log/redo_log.h"
#include "tc/verify/log_on_disk.h"
#include "tc/verify/verify_fixture.h"

namespace deut::tc {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class VerifyTest : public ::testing::Test {
 protected:
  LogReport Look() { return Verify(disk_.storage(), LogOnDisk::kDirectory); }
  std::string Text() { return ReportText(Look()); }

  LogOnDisk disk_;
};

TEST_F(VerifyTest, LogsOfSeveralStartsAreClean) {
  for (uint64_t life = 1; life <= 5; ++life) {
    disk_.WriteOneStart(life < 3 ? 1 : 3);
    const LogReport report = Look();
    EXPECT_TRUE(report.clean()) << ReportText(report);
    EXPECT_EQ(report.state.epoch, TcEpoch(life));
    EXPECT_EQ(report.state.known_dcs, std::vector<DcId>{DcId(7)});
    EXPECT_GE(report.counts.of(RecordType::kCommit).count, 4u);
    EXPECT_GE(report.counts.of(RecordType::kChunk).count, 1u);
    EXPECT_GE(report.counts.orphans, 1u);
    EXPECT_EQ(report.counts.behind_blocks, 0u);
    EXPECT_GT(report.unproven_bytes, 0u);
    EXPECT_EQ(report.notes, std::vector<std::string>());
    EXPECT_THAT(ReportText(report),
                AllOf(StartsWith("transaction component "), HasSubstr("\nredo starts at LSN "),
                      HasSubstr("\ntc verify: clean, "),
                      HasSubstr(Concat("\nthe log ends at LSN ", report.end->lsn.value, ": /tc/log-"))));
  }
  // A start finds the same end as the report.
  const Lsn end = Look().end->lsn;
  RecoveredLog recovered;
  const auto log = MustOpen(LogOnDisk::Options(), disk_.storage(), &recovered);
  EXPECT_EQ(recovered.end_lsn, end);
}

TEST_F(VerifyTest, ALogInUseIsRefused) {
  RecoveredLog recovered;
  const auto log = MustOpen(LogOnDisk::Options(), disk_.storage(), &recovered);
  const Status refused = VerifyLog(disk_.storage(), LogOnDisk::kDirectory, {}).status();
  EXPECT_TRUE(refused == ErrorCode::kUnavailable) << refused.ToString();
  EXPECT_THAT(refused.ToString(), EndsWith("; stop the transaction component first"));
}

TEST_F(VerifyTest, OtherDirectoryIsRefused) {
  EXPECT_TRUE(VerifyLog(disk_.storage(), "/nowhere", {}).status() == ErrorCode::kNotFound);
  ASSERT_TRUE(disk_.storage().CreateDirectory("/store/tc").ok());
  const Status refused = VerifyLog(disk_.storage(), "/store", {}).status();
  EXPECT_TRUE(refused == ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.ToString(), EndsWith("that of an embedded store is /store/tc"));
}

TEST_F(VerifyTest, ACopyAndStrangeFilesAreNoted) {
  disk_.Fill();
  ASSERT_TRUE(disk_.storage().Remove("/tc/LOCK").ok());
  ASSERT_TRUE(disk_.storage().Open("/tc/notes.txt", {.create = true, .writable = true}).ok());
  const LogReport report = Look();
  EXPECT_TRUE(report.clean());
  EXPECT_THAT(report.notes, ::testing::ElementsAre("/tc: there is no lock file: this is a copy",
                                                   "/tc/notes.txt: is not of the transaction component"));
  EXPECT_FALSE(*disk_.storage().Exists("/tc/LOCK"));
}

TEST_F(VerifyTest, NoLogIsClean) {
  ASSERT_TRUE(disk_.storage().CreateDirectory("/tc").ok());
  ASSERT_TRUE(disk_.storage().Lock("/tc/LOCK").ok());
  EXPECT_THAT(Text(), AllOf(StartsWith("there is no log: "), HasSubstr("\ntc verify: clean, 0 commits")));
}

TEST_F(VerifyTest, AMissingSegmentIsNamed) {
  disk_.Fill();
  const std::vector<std::string> segments = disk_.Segments();
  ASSERT_GT(segments.size(), 3u);
  ASSERT_TRUE(disk_.storage().Remove(segments[1]).ok());
  EXPECT_THAT(Text(), AllOf(HasSubstr("DAMAGED log: " + segments[1] + " is missing"),
                            EndsWith("tc verify: DAMAGED, 1 finding\n")));
}

// Segments below the redo start may be gone at any time; the segment that holds the redo start may not.
TEST_F(VerifyTest, AMissingOldestSegmentIsNoticed) {
  disk_.Fill();
  const Lsn redo_start = Look().state.redo_start.lsn;
  LogReport report = Look();
  for (const std::string& path : disk_.Segments()) {
    EXPECT_LE(report.first_lsn, redo_start);
    ASSERT_TRUE(disk_.storage().Remove(path).ok());
    report = Look();
    if (!report.clean()) break;
  }
  EXPECT_GT(report.first_lsn, redo_start);
  EXPECT_THAT(ReportText(report), HasSubstr(Concat(", but redo starts at LSN ", redo_start.value)));
}

// The highest LSN that a log says it was trimmed to, and where the log begins.
class Beginning final : public ChainVisitor {
 public:
  void OnSegment(const BlockHeader& header, const LogState& /*repeated*/) override {
    if (!first_) first_ = header.first_lsn;
  }
  void OnBlock(const BlockHeader& /*header*/) override {}
  void OnRecord(const LogRecord& record) override {
    if (record.type == RecordType::kTrimmed) trimmed = std::max(trimmed, record.trimmed);
  }
  void OnEnd(const Cut& /*end*/, const Status& /*why*/) override {}
  void OnBlockBehindEnd(const BlockHeader& /*header*/) override {}
  Lsn first() const { return first_.value_or(kFirstLsn); }

  Lsn trimmed = kFirstLsn;

 private:
  std::optional<Lsn> first_;
};

// The log below the redo start is kept for outcomes. Files of that part count as missing only if no TRIMMED record covers them.
void ExpectMissingFilesAreNamed(uint64_t keep_bytes, std::string_view why) {
  LogOnDisk disk(keep_bytes);
  disk.Fill();
  const Lsn redo_start = Verify(disk.storage(), LogOnDisk::kDirectory).state.redo_start.lsn;
  int missing = 0;
  for (std::string last; const std::string& path : disk.Segments()) {
    Beginning beginning;
    if (!RecoverChain(disk.storage(), LogOnDisk::kDirectory, &beginning).ok()) break;  // redo starts in a missing file
    const LogReport report = Verify(disk.storage(), LogOnDisk::kDirectory);
    if (beginning.first() <= beginning.trimmed) {
      EXPECT_TRUE(report.clean()) << ReportText(report);
    } else {
      ++missing;
      EXPECT_EQ(report.damages, 1u);
      EXPECT_THAT(
          ReportText(report),
          AllOf(HasSubstr(Concat("\nDAMAGED records (rule S2): ", path, " at offset 0: the log begins here, at LSN ",
                                 beginning.first().value, ", but ", why)),
                HasSubstr(Concat(": LSNs ", beginning.trimmed.value, " to ", beginning.first().value,
                                 " are missing, which were in ")),
                HasSubstr(last), HasSubstr(Concat("; redo starts at LSN ", redo_start.value, ", so no update is lost")),
                EndsWith("tc verify: DAMAGED, 1 finding\n")));
    }
    last = path;
    ASSERT_TRUE(disk.storage().Remove(path).ok());
  }
  EXPECT_GE(missing, 1);
}

TEST(VerifyBeginningTest, MissingOldestSegmentsOfALogThatWasNeverTrimmedAreNamed) {
  ExpectMissingFilesAreNamed(1 << 30, "no record says that it was ever trimmed");
}

TEST(VerifyBeginningTest, MissingOldestSegmentsOfATrimmedLogAreNamed) {
  ExpectMissingFilesAreNamed(6 * LogOnDisk::Options().segment_bytes,
                             "its records say that it was trimmed only up to LSN ");
}

// Returns the files that hold the log. The other files are spares, with arbitrary old content.
std::set<std::string> ChainOf(LogOnDisk& disk) {
  const Result<RecoveredChain> chain = RecoverChain(disk.storage(), LogOnDisk::kDirectory);
  EXPECT_TRUE(chain.ok()) << chain.status().ToString();
  std::set<std::string> paths;
  for (const auto& segment : chain->segments) paths.insert(segment->file().path());
  return paths;
}

// A segment of another log takes the place of a segment. Its number is right, and nothing else.
TEST_F(VerifyTest, AForeignSegmentIsNamed) {
  disk_.Fill();
  LogOnDisk other;
  other.Fill();
  const std::set<std::string> foreign = ChainOf(other);
  int exchanged = 0;
  for (const std::string& path : ChainOf(disk_)) {
    if (!foreign.contains(path)) continue;
    const auto from = std::move(other.storage().Open(path, {}).value());
    const auto to = std::move(disk_.storage().Open(path, {.writable = true}).value());
    std::string theirs(from->Size().value(), '\0'), ours(to->Size().value(), '\0');
    ASSERT_TRUE(from->Read(0, theirs.data(), theirs.size()).ok() && to->Read(0, ours.data(), ours.size()).ok());
    ASSERT_TRUE(to->Write(0, theirs.data(), theirs.size()).ok());
    const LogReport report = Look();
    EXPECT_FALSE(report.clean()) << path << "\n" << ReportText(report);
    ASSERT_TRUE(to->Write(0, ours.data(), ours.size()).ok());
    ++exchanged;
  }
  EXPECT_GE(exchanged, 1);
  EXPECT_TRUE(Look().clean());
}

// Collects the places of all blocks of the chain.
class Places final : public ChainVisitor {
 public:
  struct Place {
    uint64_t segment, offset, bytes;
    bool Holds(uint64_t in_segment, uint64_t at) const {
      return segment == in_segment && at >= offset && at < offset + bytes;
    }
  };
  void OnSegment(const BlockHeader& header, const LogState& /*repeated*/) override { OnBlock(header); }
  void OnBlock(const BlockHeader& header) override {
    all.push_back({header.segment, header.offset, header.block_bytes});
  }
  void OnRecord(const LogRecord& /*record*/) override {}
  void OnEnd(const Cut& /*end*/, const Status& /*why*/) override {}
  void OnBlockBehindEnd(const BlockHeader& /*header*/) override {}
  std::vector<Place> all;
};

// Flips a bit in every byte of every file. In the chain the flip is found; or it lies in one of the last blocks, which no record states to be
// durable, and the log then ends before that block. Elsewhere it changes nothing, except in a file's first block, without which the file is not
// understood.
TEST_F(VerifyTest, AFlippedBitAnywhere) {
  disk_.Fill();
  const LogReport before = Look();
  ASSERT_TRUE(before.clean()) << ReportText(before);
  Places places;
  const Result<RecoveredChain> chain = RecoverChain(disk_.storage(), LogOnDisk::kDirectory, &places);
  ASSERT_TRUE(chain.ok());
  const auto unproven = [&](uint64_t segment, uint64_t offset) {
    for (const UnprovenBlock& block : chain->unproven) {
      if (Places::Place{block.segment, block.offset, block.bytes}.Holds(segment, offset)) return true;
    }
    return false;
  };
  const char* const given = std::getenv("DEUT_VERIFY_STEP");
  const uint64_t step = given == nullptr ? 7 : std::strtoull(given, nullptr, 10);
  uint64_t found = 0, cut = 0, elsewhere = 0;
  for (const std::string& path : disk_.Segments()) {
    uint64_t number = 0;
    ASSERT_TRUE(ParseSegmentName(path.substr(path.rfind('/') + 1), &number));
    for (uint64_t offset = number % step; offset < LogOnDisk::Options().segment_bytes; offset += step) {
      disk_.Flip(path, offset, static_cast<int>(offset % 8));
      const LogReport report = Look();
      const bool in_chain =
          std::ranges::any_of(places.all, [&](const auto& each) { return each.Holds(number, offset); });
      if (!in_chain) {
        ++elsewhere;
        if (offset < kSegmentHeaderBytes && !report.clean()) {
          ASSERT_THAT(report.findings[0].text, StartsWith(path + " at offset 0: "));
          disk_.Flip(path, offset, static_cast<int>(offset % 8));
          continue;
        }
        ASSERT_TRUE(report.clean() && report.end == before.end) << path << " at " << offset << "\n"
                                                                << ReportText(report);
      } else if (!report.clean()) {
        ++found;
        ASSERT_THAT(report.findings[0].text, StartsWith("/tc/log-"));
      } else {
        ++cut;
        ASSERT_TRUE(unproven(number, offset)) << path << " at " << offset << "\n" << ReportText(report);
        ASSERT_LT(report.end->lsn, before.end->lsn);
      }
      disk_.Flip(path, offset, static_cast<int>(offset % 8));
    }
  }
  EXPECT_GT(found, 1000u);
  EXPECT_GT(cut, 100u);
  EXPECT_GT(elsewhere, 100u);
  EXPECT_EQ(ReportText(Look()), ReportText(before));
}

TEST(VerifyChangesNothing, OnAnyDamage) {
  FaultyDisk disk(RealRuntime(), 1);
  const std::unique_ptr<Storage> storage = disk.Mount();
  RecoveredLog recovered;
  {
    const auto log = MustOpen(LogOnDisk::Options(), *storage, &recovered);
    for (uint64_t i = 1; i <= 5; ++i) ASSERT_TRUE(log->WaitDurable(Commit(*log, i).lsn, kNoDeadline).ok());
  }
  const uint64_t changes = disk.counts().changing;
  EXPECT_TRUE(Verify(*storage, LogOnDisk::kDirectory).clean());
  EXPECT_EQ(disk.counts().changing, changes);
  disk.AddFault({.action = DiskFault::Action::kIoError, .kinds = kDiskRead, .path_contains = "log-", .predicate = {}});
  const Status unreadable = VerifyLog(*storage, LogOnDisk::kDirectory, {}).status();
  EXPECT_TRUE(unreadable == ErrorCode::kIoError) << unreadable.ToString();
}

TEST_F(VerifyRecordsTest, FindingsAreBounded) {
  for (uint64_t i = 0; i < 20; ++i) Commit(500);
  forge_.Block();
  const Result<LogReport> report = VerifyLog(*storage_, "/log", {.max_findings = 3});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->findings.size(), 3u);
  EXPECT_EQ(report->damages, 39u);
  EXPECT_THAT(ReportText(*report),
              AllOf(HasSubstr("\nand 36 more\n"), EndsWith("\ntc verify: DAMAGED, 39 findings\n")));
}

// A torn tail is no damage. A block that proves that it had been durable makes it damage, and the report names both places.
TEST_F(VerifyRecordsTest, ATornTailAndDamageAreToldApart) {
  Commit(50);
  forge_.Block();
  const Cut end = forge_.Here();
  Commit(51);
  forge_.LostBlock(end.lsn);
  const Lsn lost = forge_.lsn;
  Commit(52);
  forge_.BlockSubmittedAt(end.lsn);
  LogReport report = Verify(*storage_, "/log");
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.end, end);
  EXPECT_EQ(report.counts.behind_blocks, 1u);
  EXPECT_THAT(ReportText(report),
              AllOf(HasSubstr(Concat("the log ends at LSN ", end.lsn.value, ": ", forge_.Path(1), " at offset ",
                                     end.offset, ": no block begins here\n")),
                    HasSubstr("behind its end: 1 whole blocks of 4096 bytes, which were never acknowledged")));
  Commit(53);
  forge_.BlockSubmittedAt(lost);
  report = Verify(*storage_, "/log");
  EXPECT_EQ(report.damages, 1u);
  EXPECT_THAT(ReportText(report), HasSubstr(Concat("\nDAMAGED log: ", forge_.Path(1), " at offset ", end.offset,
                                                   ": the redo log is damaged at LSN ", end.lsn.value)));
}

}  // namespace
}  // namespace deut::tc
