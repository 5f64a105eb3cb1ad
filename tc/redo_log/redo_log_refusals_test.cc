// Each reason for a refusal is still there at the next start: the refusal has the same sentence, and no byte has
// changed. If a start changed anything before it refuses, a supervisor that restarts it again and again would destroy
// the evidence.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"
#include "tc/log_format/record_codec.h"
#include "tc/redo_log/log_forge.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

constexpr int kStarts = 12;
using Files = std::map<std::string, std::string>;

class RedoLogRefusalsTest : public ::testing::Test {
 protected:
  void BeginLog(uint64_t segment = 1) {
    forge_.BeginSegment(segment);
    forge_.Record(RecordType::kEpochStart,
                  BytesBody{EncodeEpochStartBody(forge_.state.tc, forge_.state.epoch, forge_.state.nonce)});
    forge_.Record(RecordType::kReserveTimestamps, BytesBody{EncodeTimestampBody(Timestamp(1000))});
    forge_.Block();
    Commits(3);
  }
  void Commits(int count) {
    for (int i = 0; i < count; ++i) {
      forge_.CommitRecord(++commits_);
      forge_.Block();
    }
  }
  void MoreSegments(uint64_t last) {
    for (uint64_t number = forge_.segment + 1; number <= last; ++number) {
      forge_.BeginSegment(number);
      Commits(1);
    }
  }

  Files Folder() {
    Files files;
    const std::vector<std::string> names = *storage_->List("/log");
    for (const std::string& name : names) {
      if (name == "LOCK") continue;
      const auto file = storage_->Open("/log/" + name, {});
      std::string bytes(*(*file)->Size(), '\0');
      EXPECT_EQ(*(*file)->Read(0, bytes.data(), bytes.size()), bytes.size());
      files[name] = bytes;
    }
    return files;
  }

  void ExpectRefusedForEver(ErrorCode code, const std::string& text) {
    const Files before = Folder();
    std::string sentence;
    for (int start = 0; start < kStarts; ++start) {
      RecoveredLog recovered;
      const Status refused = RedoLog::Open(SmallLog("/log"), RealRuntime(), *storage_, &recovered).status();
      ASSERT_EQ(refused, code) << "start " << start << ": " << refused.ToString();
      EXPECT_NE(refused.message().find(text), std::string::npos) << refused.ToString();
      if (start == 0) sentence = refused.message();
      EXPECT_EQ(refused.message(), sentence);
      ASSERT_TRUE(Folder() == before) << "start " << start << " has changed the log";
    }
  }

  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  LogForge forge_{*storage_, "/log"};
  uint64_t commits_ = 0;
};

TEST_F(RedoLogRefusalsTest, AnEpochNearOverflow) {
  forge_.state.epoch = TcEpoch(kMaxLogNumber);
  BeginLog();
  ExpectRefusedForEver(ErrorCode::kCorruption, "which no log does");
}

TEST_F(RedoLogRefusalsTest, TheHighestEpochIsStarted) {
  forge_.state.epoch = TcEpoch(kMaxLogNumber - 1);
  BeginLog();
  RecoveredLog recovered;
  const auto log = RedoLog::Open(SmallLog("/log"), RealRuntime(), *storage_, &recovered);
  ASSERT_TRUE(log.ok()) << log.status().ToString();
  EXPECT_EQ((*log)->epoch(), TcEpoch(kMaxLogNumber));
}

TEST_F(RedoLogRefusalsTest, ASegmentNumberNearOverflow) {
  BeginLog(kMaxLogNumber - 1);
  ExpectRefusedForEver(ErrorCode::kCorruption, "which no log does");
}

TEST_F(RedoLogRefusalsTest, AnotherTransactionComponentsLog) {
  BeginLog();
  RedoLogOptions options = SmallLog("/log");
  options.tc = TcId(77);
  const Files before = Folder();
  for (int start = 0; start < kStarts; ++start) {
    RecoveredLog recovered;
    const Status refused = RedoLog::Open(options, RealRuntime(), *storage_, &recovered).status();
    ASSERT_EQ(refused, ErrorCode::kInvalidArgument) << refused.ToString();
    EXPECT_NE(refused.message().find("transaction component 1, not of 77"), std::string::npos) << refused.ToString();
    ASSERT_TRUE(Folder() == before);
  }
}

TEST_F(RedoLogRefusalsTest, AMissingSegment) {
  BeginLog();
  MoreSegments(4);
  ASSERT_TRUE(storage_->Remove(forge_.Path(3)).ok());
  ExpectRefusedForEver(ErrorCode::kCorruption, "is missing");
}

TEST_F(RedoLogRefusalsTest, AMissingOldestSegment) {
  BeginLog();
  MoreSegments(2);
  ASSERT_TRUE(storage_->Remove(forge_.Path(1)).ok());
  ExpectRefusedForEver(ErrorCode::kCorruption, "redo starts at LSN");
}

TEST_F(RedoLogRefusalsTest, ADamagedOldestHeader) {
  BeginLog();
  MoreSegments(2);
  forge_.Write(1, 100, "x");
  ExpectRefusedForEver(ErrorCode::kCorruption, forge_.Path(1));
}

TEST_F(RedoLogRefusalsTest, DamageThatALaterBlockProves) {
  BeginLog();
  const Cut damaged = forge_.Here();
  Commits(3);
  forge_.Write(damaged.segment, damaged.offset, std::string(512, '\0'));
  ExpectRefusedForEver(ErrorCode::kCorruption, "the redo log is damaged at LSN");
}

TEST_F(RedoLogRefusalsTest, DamageBeforeALoggedCut) {
  BeginLog();
  const uint64_t last = forge_.offset - 4096;
  forge_.NewStart(2, forge_.Here());
  forge_.Write(1, last, std::string(512, '\0'));
  ExpectRefusedForEver(ErrorCode::kCorruption, forge_.Path(1));
}

TEST_F(RedoLogRefusalsTest, ACutThatDoesNotFit) {
  BeginLog();
  const Cut cut = forge_.Here();
  forge_.predecessor ^= 1;
  forge_.NewStart(2, cut);
  ExpectRefusedForEver(ErrorCode::kCorruption, "an end of epoch");
}

TEST_F(RedoLogRefusalsTest, ASegmentOfAnotherLog) {
  BeginLog();
  forge_.state.tc = TcId(2);
  forge_.BeginSegment(2);
  ExpectRefusedForEver(ErrorCode::kCorruption, "another transaction component");
}

TEST_F(RedoLogRefusalsTest, AWholeBlockWithRecordsThatNobodyWrites) {
  BeginLog();
  forge_.Record(RecordType::kEndOfEpoch, BytesBody{EncodeCutBody(forge_.Here())});
  forge_.Block();
  ExpectRefusedForEver(ErrorCode::kCorruption, "out of place");
}

TEST_F(RedoLogRefusalsTest, AFileThatIsNoSegment) {
  BeginLog();
  MoreSegments(2);
  forge_.Write(2, 0, std::string(kSegmentHeaderBytes, 'x'));
  ExpectRefusedForEver(ErrorCode::kCorruption, forge_.Path(2));
}

TEST_F(RedoLogRefusalsTest, ASegmentOfAnotherVersion) {
  BeginLog();
  MoreSegments(2);
  std::string header(kSegmentHeaderBytes, '\0');
  const auto file = storage_->Open(forge_.Path(2), {});
  ASSERT_TRUE((*file)->Read(0, header.data(), header.size()).ok());
  StoreU16(header.data() + 8, 40);
  StoreU32(header.data() + 4, Crc32c(std::string_view(header).substr(8)));
  forge_.Write(2, 0, header);
  ExpectRefusedForEver(ErrorCode::kVersionMismatch, "40");
}

}  // namespace
}  // namespace deut::tc
