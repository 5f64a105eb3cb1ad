// Fixture of the tests of tc/verify: logs that are written record by record, so that records can contradict each
// other. Thread-safety: one thread. Ownership: owns its storage.
#ifndef TC_VERIFY_VERIFY_FIXTURE_H_
#define TC_VERIFY_VERIFY_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"
#include "tc/log_format/record_codec.h"
#include "tc/redo_log/log_forge.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/recovery.h"
#include "tc/verify/verify.h"

namespace deut::tc {

// Verifies a log, and expects that it can be read.
inline LogReport Verify(Storage& storage, const std::string& directory) {
  const Result<LogReport> report = VerifyLog(storage, directory, {});
  EXPECT_TRUE(report.ok()) << report.status().ToString();
  return report.ok() ? *report : LogReport();
}

// Logs with valid blocks, whose records contradict each other.
class VerifyRecordsTest : public ::testing::Test {
 protected:
  VerifyRecordsTest() {
    forge_.BeginSegment(1);
    forge_.Record(RecordType::kEpochStart,
                  BytesBody{EncodeEpochStartBody(forge_.state.tc, forge_.state.epoch, forge_.state.nonce)});
    Reserve(100);
    forge_.Record(RecordType::kKnownDc, BytesBody{EncodeKnownDcBody(DcId(9))});
    forge_.state.known_dcs = {DcId(9)};
    forge_.Block();
  }

  void Reserve(uint64_t bound) {
    forge_.Record(RecordType::kReserveTimestamps, BytesBody{EncodeTimestampBody(Timestamp(bound))});
    forge_.state.reserved = Timestamp(bound);
  }
  void LowWater(uint64_t timestamp) {
    forge_.Record(RecordType::kLowWater, BytesBody{EncodeTimestampBody(Timestamp(timestamp))});
    forge_.state.low_water = Timestamp(timestamp);
  }
  // Returns its LSN.
  Lsn Transaction(RecordType type, uint64_t timestamp, uint32_t sequence, const std::vector<Lsn>& chunks = {}) {
    const Lsn lsn(forge_.lsn.value + forge_.payload.size());
    const Update update = Put(sequence, "k", "v");
    forge_.Record(
        type,
        TransactionBody{
            .timestamp = Timestamp(timestamp), .epoch = forge_.state.epoch, .updates = {&update, 1}, .chunks = chunks});
    return lsn;
  }
  Lsn Commit(uint64_t timestamp) { return Transaction(RecordType::kCommit, timestamp, 1); }
  void Redo(Lsn lsn, std::vector<DcPosition> stable) {
    forge_.state.redo_start = {.lsn = lsn, .stable = std::move(stable)};
    forge_.Record(RecordType::kRedoStart, BytesBody{EncodeRedoStartBody(forge_.state.redo_start)});
  }

  // Ends the block, verifies the log, and expects no finding.
  void ExpectClean() {
    forge_.Block();
    const LogReport report = Verify(*storage_, "/log");
    EXPECT_TRUE(report.clean()) << ReportText(report);
  }
  void ExpectFinding(const std::string& rule, const std::string& text) {
    if (!forge_.payload.empty()) forge_.Block();
    const LogReport report = Verify(*storage_, "/log");
    EXPECT_EQ(report.damages, 1u) << ReportText(report);
    EXPECT_THAT(ReportText(report),
                ::testing::AllOf(::testing::HasSubstr("\nDAMAGED records (rule " + rule + "): /log/log-"),
                                 ::testing::HasSubstr(text)));
    // A start does not check this of the records.
    EXPECT_TRUE(RecoverChain(*storage_, "/log").ok());
  }

  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  LogForge forge_{*storage_, "/log"};
};

}  // namespace deut::tc

#endif  // TC_VERIFY_VERIFY_FIXTURE_H_
