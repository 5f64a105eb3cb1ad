#include "tc/verify/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"
#include "tc/log_format/record_codec.h"
#include "tc/redo_log/log_forge.h"
#include "tc/verify/log_on_disk.h"

namespace deut::tc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

DumpRequest Request() {
  DumpRequest request;
  request.show_key = [](std::string_view bytes) { return Concat("<", bytes, ">"); };
  request.show_value = [](std::string_view bytes) { return Concat("[", bytes, "]"); };
  return request;
}

std::string Show(Storage& storage, const std::string& directory, const DumpRequest& request, Status* status) {
  std::string text;
  *status = DumpLog(storage, directory, request, [&](std::string_view piece) { text.append(piece); });
  return text;
}

// One record of each type, in two segments.
class DumpTest : public ::testing::Test {
 protected:
  DumpTest() {
    forge_.BeginSegment(1);
    forge_.Record(RecordType::kEpochStart, BytesBody{EncodeEpochStartBody(TcId(1), TcEpoch(1), 100)});
    forge_.Record(RecordType::kReserveTimestamps, BytesBody{EncodeTimestampBody(Timestamp(1000))});
    forge_.Record(RecordType::kKnownDc, BytesBody{EncodeKnownDcBody(DcId(9))});
    forge_.Block();
    chunk_ =
        Transaction(RecordType::kChunk,
                    {{.kind = LogEntryKind::kPut, .sequence = 1, .table = TableId(3), .key = "a", .value = "one"}}, {});
    commit_ = Transaction(
        RecordType::kCommit,
        {{.kind = LogEntryKind::kDelete, .sequence = 2, .table = TableId(3), .key = "b", .value = ""},
         {.kind = LogEntryKind::kCreateTable, .sequence = 3, .table = TableId(4), .key = "name", .value = ""},
         {.kind = LogEntryKind::kPut, .sequence = 4, .table = TableId(4), .key = "a", .value = long_}},
        {chunk_});
    forge_.Block();
    const Lsn end = forge_.lsn;
    forge_.NewStart(2, forge_.Here());
    forge_.Record(RecordType::kLowWater, BytesBody{EncodeTimestampBody(Timestamp(8))});
    forge_.Record(
        RecordType::kRedoStart,
        BytesBody{EncodeRedoStartBody({.lsn = end, .stable = {{.dc = DcId(9), .stable = Position{commit_, 4}}}})});
    forge_.Block();
  }

  Lsn Transaction(RecordType type, const std::vector<Update>& updates, const std::vector<Lsn>& chunks) {
    const Lsn lsn(forge_.lsn.value + forge_.payload.size());
    forge_.Record(
        type, TransactionBody{.timestamp = Timestamp(7), .epoch = TcEpoch(1), .updates = updates, .chunks = chunks});
    return lsn;
  }
  std::string Text(const DumpRequest& request) {
    Status status;
    std::string text = Show(*storage_, "/log", request, &status);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return text;
  }

  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  LogForge forge_{*storage_, "/log"};
  const std::string long_ = std::string(100, 'q');
  Lsn chunk_, commit_;
};

TEST_F(DumpTest, EveryKindOfRecord) {
  const std::string first = "log-00000000000000000001", second = "log-00000000000000000002";
  const std::string c = Concat(commit_.value);
  EXPECT_EQ(
      Text(Request()),
      Concat("segment ", first, " of epoch 1, from LSN 8 on\n", "8 ", first,
             ":4096 epoch 1 of transaction component 1 starts, nonce 100\n", "40 ", first,
             ":4096 timestamps below 1000 are reserved\n", "56 ", first, ":4096 data component 9 belongs to this log\n",
             chunk_.value, " ", first, ":8192 chunk of epoch 1, timestamp 7, 1 update\n", "  ", chunk_.value,
             "/1 put, timestamp 7, table 3, key <a> = [one]\n", c, " ", first,
             ":8192 commit of epoch 1, timestamp 7, 3 updates, after those of the chunks at LSN ", chunk_.value, "\n",
             "  ", c, "/2 delete, timestamp 7, table 3, key <b>\n", "  ", c,
             "/3 create table, timestamp 7, table 4, key <name>\n", "  ", c,
             "/4 put, timestamp 7, table 4, key <a> = [", std::string(64, 'q'), "]... (100 bytes)\n", "segment ",
             second, " of epoch 2, from LSN 328 on\n", "328 ", second, ":4096 end of epoch: the log before it ends in ",
             first, " at offset 12288\n", "360 ", second,
             ":4096 epoch 2 of transaction component 1 starts, nonce 101\n", "392 ", second, ":8192 low-water 8\n",
             "408 ", second, ":8192 redo starts at LSN 328, data component 9 was stable at ", c, "/4\n",
             "the log ends at LSN ", forge_.lsn.value, ": /log/", second, " at offset 12288: no block begins here\n"));
}

TEST_F(DumpTest, Filters) {
  DumpRequest request = Request();
  request.from = commit_;
  request.to = Lsn(commit_.value + 1);
  EXPECT_THAT(Text(request),
              AllOf(HasSubstr("commit of epoch 1"), Not(HasSubstr("chunk of")), Not(HasSubstr("low-water"))));
  request = Request();
  request.table = TableId(3);
  EXPECT_THAT(Text(request), AllOf(HasSubstr("key <a> = [one]"), HasSubstr("key <b>"), Not(HasSubstr("table 4")),
                                   Not(HasSubstr("epoch 2")), HasSubstr("\nthe log ends at LSN ")));
  request.key = "a";
  EXPECT_THAT(Text(request),
              AllOf(HasSubstr("key <a> = [one]"), Not(HasSubstr("key <b>")), Not(HasSubstr("commit of"))));
  request.table = std::nullopt;
  EXPECT_THAT(Text(request),
              AllOf(HasSubstr("key <a> = [one]"), HasSubstr("table 4, key <a> = [qqq"), Not(HasSubstr("key <b>"))));
}

TEST_F(DumpTest, ShowsWhatLiesBeforeDamageAndWhere) {
  forge_.CommitRecord(9);
  forge_.Block();
  forge_.Write(1, 8192 + 90, "x");
  Status status;
  const std::string text = Show(*storage_, "/log", Request(), &status);
  EXPECT_TRUE(status == ErrorCode::kCorruption) << status.ToString();
  EXPECT_THAT(status.ToString(), HasSubstr(forge_.Path(1) + " at offset 8192: the redo log is damaged at LSN "));
  EXPECT_THAT(text,
              AllOf(HasSubstr("data component 9 belongs to this log\nthe log ends at LSN "),
                    HasSubstr(forge_.Path(1) + " at offset 8192: checksum of the block does not match"),
                    HasSubstr("\nbehind its end: a block of epoch 2 at log-00000000000000000002:0, LSN 328 to 328, "),
                    Not(HasSubstr("chunk of"))));
}

TEST_F(DumpTest, AWholeLogOfSeveralStarts) {
  LogOnDisk disk;
  disk.Fill();
  Status status;
  const std::string text = Show(disk.storage(), LogOnDisk::kDirectory, Request(), &status);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_THAT(text, AllOf(HasSubstr("key <never> = [committed]\n"), HasSubstr("epoch 3 of transaction component ")));
  EXPECT_TRUE(DumpLog(disk.storage(), "/nowhere", Request(), [](std::string_view) {}) == ErrorCode::kNotFound);
}

}  // namespace
}  // namespace deut::tc
