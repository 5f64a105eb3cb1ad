#include "protocol/wire/convert_data_component.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/limits.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

constexpr Sender kSender{.tc = TcId(UINT64_MAX), .epoch = TcEpoch(2), .nonce = 3, .incarnation = DcIncarnation(4)};

template <typename Message>
Message Travel(const Message& message) {
  Message received;
  EXPECT_TRUE(received.ParseFromString(message.SerializeAsString()));
  return received;
}

std::string Text(const Status& status) { return status.ToString(); }

TEST(ConvertDataComponentTest, Sender) {
  wire::Sender message;
  ToWire(kSender, &message);
  const Sender back = FromWire(Travel(message));
  EXPECT_EQ(back.tc, kSender.tc);
  EXPECT_EQ(back.epoch, kSender.epoch);
  EXPECT_EQ(back.nonce, kSender.nonce);
  EXPECT_EQ(back.incarnation, kSender.incarnation);
}

TEST(ConvertDataComponentTest, Hello) {
  wire::HelloRequest message;
  ToWire(HelloRequest{.protocol_version = kProtocolVersion,
                      .tc = TcId(8),
                      .epoch = TcEpoch(9),
                      .nonce = 10,
                      .expected_dc = DcId(11),
                      .inquiry = true,
                      .log_durable = Lsn(uint64_t{12} << 40)},
         &message);
  HelloRequest back;
  ASSERT_TRUE(FromWire(Travel(message), &back).ok());
  EXPECT_EQ(back.tc, TcId(8));
  EXPECT_EQ(back.epoch, TcEpoch(9));
  EXPECT_EQ(back.nonce, 10u);
  EXPECT_EQ(back.expected_dc, DcId(11));
  EXPECT_TRUE(back.inquiry);
  EXPECT_EQ(back.log_durable, Lsn(uint64_t{12} << 40));
  EXPECT_FALSE(back.decided_on);
  const HelloBasis basis{.incarnation = DcIncarnation(UINT64_MAX),
                         .obeyed = ObeyedTc{TcId(21), TcEpoch(22), UINT64_MAX - 1},
                         .applied = Position{Lsn(23), UINT32_MAX},
                         .log_durable = Lsn(24)};
  ToWire(HelloRequest{.tc = TcId(8), .epoch = TcEpoch(9), .decided_on = basis}, &message);
  ASSERT_TRUE(FromWire(Travel(message), &back).ok());
  EXPECT_EQ(back.decided_on, basis);
  message.set_protocol_version(kProtocolVersion + 1);
  EXPECT_EQ(FromWire(message, &back).code(), ErrorCode::kVersionMismatch);

  wire::HelloAnswer answer;
  ToWire(Result<HelloAnswer>(HelloAnswer{.dc = DcId(1),
                                         .incarnation = DcIncarnation(2),
                                         .number = IncarnationNumber(12),
                                         .obeyed = ObeyedTc{.tc = TcId(13), .epoch = TcEpoch(14), .nonce = 15},
                                         .log_durable = Lsn(16),
                                         .applied = Position{Lsn(3), 4},
                                         .stable = Position{Lsn(5), 6},
                                         .free_bytes = 7,
                                         .tables = {TableInfo{TableId(8), "t", false, 9, 10}}}),
         &answer);
  auto answered = FromWire(Travel(answer));
  ASSERT_TRUE(answered.ok());
  EXPECT_EQ(answered->dc, DcId(1));
  EXPECT_EQ(answered->incarnation, DcIncarnation(2));
  EXPECT_EQ(answered->number, IncarnationNumber(12));
  EXPECT_EQ(answered->obeyed, (ObeyedTc{TcId(13), TcEpoch(14), 15}));
  EXPECT_EQ(answered->log_durable, Lsn(16));
  EXPECT_EQ(answered->applied, (Position{Lsn(3), 4}));
  EXPECT_EQ(answered->stable, (Position{Lsn(5), 6}));
  EXPECT_EQ(answered->free_bytes, 7u);
  ASSERT_EQ(answered->tables.size(), 1u);
  EXPECT_TRUE(answered->knows_table_options);
  // The answer of a DC that does not know the field.
  answer.clear_knows_table_options();
  EXPECT_FALSE(FromWire(Travel(answer))->knows_table_options);

  wire::HelloAnswer refusal;
  ToWire(Result<HelloAnswer>(Status(ErrorCode::kFenced, "a newer one")), &refusal);
  EXPECT_EQ(FromWire(Travel(refusal)).status().code(), ErrorCode::kFenced);
  refusal.set_protocol_version(77);
  EXPECT_EQ(FromWire(refusal).status().code(), ErrorCode::kVersionMismatch);
}

TEST(ConvertDataComponentTest, ReadRequest) {
  DataRequest request;
  request.table = TableId(12);
  const std::string key("k\0\xff", 3);
  request.key = key;
  wire::DataItem item;
  ToWire(request, 99, &item);
  const wire::DataItem received = Travel(item);
  EXPECT_EQ(received.id(), 99u);
  DataRequest back;
  ASSERT_TRUE(FromWire(received, kSender, &back).ok());
  EXPECT_EQ(back.kind, DataRequest::Kind::kRead);
  EXPECT_EQ(back.key, key);
  EXPECT_EQ(back.table, TableId(12));
  EXPECT_EQ(back.sender.incarnation, kSender.incarnation);
  EXPECT_GE(WireBytes(request), item.ByteSizeLong());
}

TEST(ConvertDataComponentTest, ScanRequest) {
  DataRequest request;
  request.kind = DataRequest::Kind::kScan;
  request.low = "a";
  request.high = "z";
  request.direction = Direction::kDescending;
  request.limit_records = 50;
  request.limit_bytes = 1000;
  wire::DataItem item;
  ToWire(request, 1, &item);
  const wire::DataItem received = Travel(item);
  DataRequest back;
  ASSERT_TRUE(FromWire(received, kSender, &back).ok());
  EXPECT_EQ(back.kind, DataRequest::Kind::kScan);
  EXPECT_EQ(back.low, "a");
  EXPECT_EQ(back.high, "z");
  EXPECT_EQ(back.direction, Direction::kDescending);
  EXPECT_EQ(back.limit_records, 50u);
  EXPECT_EQ(back.limit_bytes, 1000u);
  EXPECT_GE(WireBytes(request), item.ByteSizeLong());
}

TEST(ConvertDataComponentTest, HostileRequests) {
  DataRequest out;
  wire::DataItem item;
  EXPECT_THAT(Text(FromWire(item, kSender, &out)), HasSubstr("INVALID_ARGUMENT: kind: 0"));
  item.set_kind(static_cast<wire::DataKind>(77));
  EXPECT_THAT(Text(FromWire(item, kSender, &out)), HasSubstr("kind: 77"));
  item.set_kind(wire::DATA_READ);
  EXPECT_THAT(Text(FromWire(item, kSender, &out)), HasSubstr("key: a key of 0 bytes"));
  item.set_key(std::string(kMaxKeyBytes + 1, 'k'));
  EXPECT_THAT(Text(FromWire(item, kSender, &out)), HasSubstr("key: a key of 4097 bytes"));
  item.set_kind(wire::DATA_SCAN);
  EXPECT_THAT(Text(FromWire(item, kSender, &out)), HasSubstr("limit_bytes: 0"));
  item.set_limit_bytes(kMaxScanBytes + 1);
  EXPECT_THAT(Text(FromWire(item, kSender, &out)), HasSubstr("limit_bytes: 1048577"));
  item.set_limit_bytes(1);
  item.set_direction(static_cast<wire::Direction>(-1));
  EXPECT_THAT(Text(FromWire(item, kSender, &out)), HasSubstr("direction: -1"));
  item.set_direction(wire::ASCENDING);
  item.set_low(std::string(kMaxBoundBytes + 1, 'k'));
  EXPECT_THAT(Text(FromWire(item, kSender, &out)), HasSubstr("low: a bound of 4098 bytes"));
  item.clear_low();
  item.set_high(std::string(kMaxBoundBytes + 1, 'k'));
  EXPECT_THAT(Text(FromWire(item, kSender, &out)), HasSubstr("high: a bound of 4098 bytes"));
}

class DataAnswerTest : public ::testing::Test {
 protected:
  DataAnswerTest() {
    scan_.kind = DataRequest::Kind::kScan;
    scan_.low = "b";
    scan_.high = "m";
    read_.key = "k";
  }
  // Converts an answer with these records and this covered key, as the sender of the request does.
  Status Scan(const std::vector<std::string>& keys, bool complete, const std::string& covered) {
    RecordBatch records;
    for (const std::string& key : keys) records.Append(key, "v", Version());
    wire::DataAnswer answer;
    answer.set_records(records.bytes());
    answer.set_complete(complete);
    answer.set_covered(covered);
    FromWire(&answer, DcIncarnation(3), &scan_);
    return scan_.status;
  }
  DataRequest read_, scan_;
};

TEST_F(DataAnswerTest, ReadAnswerTravels) {
  DataRequest answered;
  answered.answer.Append("k", std::string(100000, 'v'), Version{Timestamp(5), 6});
  wire::DataAnswer message;
  ToWire(answered, 4, &message);
  wire::DataAnswer received = Travel(message);
  EXPECT_EQ(received.id(), 4u);
  FromWire(&received, DcIncarnation(3), &read_);
  ASSERT_TRUE(read_.status.ok());
  ASSERT_EQ(read_.answer.size(), 1u);
  RecordBatch::Iterator it(read_.answer);
  EXPECT_EQ(it.record().value.size(), 100000u);
  EXPECT_EQ(it.record().version, (Version{Timestamp(5), 6}));
  EXPECT_EQ(read_.answered_by, DcIncarnation(3));
  // An absent record.
  wire::DataAnswer absent;
  FromWire(&absent, DcIncarnation(3), &read_);
  EXPECT_TRUE(read_.status.ok());
  EXPECT_TRUE(read_.answer.empty());
}

TEST_F(DataAnswerTest, StatusTravelsWithoutAnswer) {
  DataRequest answered;
  answered.answer.Append("k", "v", Version());
  answered.status = Status(ErrorCode::kWrongIncarnation, "another life");
  wire::DataAnswer message;
  ToWire(answered, 4, &message);
  EXPECT_TRUE(message.records().empty());
  FromWire(&message, DcIncarnation(3), &read_);
  EXPECT_EQ(read_.status.code(), ErrorCode::kWrongIncarnation);
  EXPECT_TRUE(read_.answer.empty());
}

TEST_F(DataAnswerTest, HostileReadAnswers) {
  wire::DataAnswer answer;
  answer.set_records("rubbish");
  FromWire(&answer, DcIncarnation(), &read_);
  EXPECT_EQ(read_.status.code(), ErrorCode::kCorruption);
  RecordBatch two;
  two.Append("k", "v", Version());
  two.Append("l", "v", Version());
  answer.set_records(two.bytes());
  FromWire(&answer, DcIncarnation(), &read_);
  EXPECT_THAT(Text(read_.status), HasSubstr("2 records in answer to a point read"));
  RecordBatch other;
  other.Append("z", "v", Version());
  answer.set_records(other.bytes());
  FromWire(&answer, DcIncarnation(), &read_);
  EXPECT_THAT(Text(read_.status), HasSubstr("another key"));
}

TEST_F(DataAnswerTest, ScanAnswers) {
  EXPECT_TRUE(Scan({"b", "c"}, true, "m").ok());
  EXPECT_TRUE(scan_.complete);
  EXPECT_TRUE(Scan({"b", "c"}, false, "d").ok());
  EXPECT_EQ(scan_.covered, "d");
  EXPECT_FALSE(scan_.complete);
  EXPECT_EQ(Scan({"a"}, true, "").code(), ErrorCode::kCorruption);
  EXPECT_EQ(Scan({"m"}, true, "").code(), ErrorCode::kCorruption);
  EXPECT_EQ(Scan({"d", "c"}, true, "").code(), ErrorCode::kCorruption);
  EXPECT_THAT(Text(Scan({"b"}, false, "n")), HasSubstr("covered"));
  EXPECT_THAT(Text(Scan({"b"}, false, "a")), HasSubstr("covered"));
  EXPECT_THAT(Text(Scan({}, false, "b")), HasSubstr("covers nothing"));
  EXPECT_EQ(Scan({"b", "d"}, false, "d").code(), ErrorCode::kCorruption) << "a record behind what is covered";
  EXPECT_THAT(Text(Scan({"b"}, false, std::string(5000, 'c'))), HasSubstr("covered"));
  scan_.direction = Direction::kDescending;
  EXPECT_TRUE(Scan({"d", "c"}, false, "c").ok());
  EXPECT_THAT(Text(Scan({}, false, "m")), HasSubstr("covers nothing"));
  EXPECT_EQ(Scan({"d", "c"}, false, "d").code(), ErrorCode::kCorruption);
  EXPECT_EQ(Scan({"b", "c"}, true, "").code(), ErrorCode::kCorruption);
}

TEST(ConvertDataComponentTest, BulkScan) {
  const ScanSpec spec{.table = TableId(3), .range = {"a", "x"}, .direction = Direction::kDescending, .batch_bytes = 77};
  wire::ScanOpen open;
  ToWire(kSender, spec, &open);
  Sender sender;
  ScanSpec back;
  ASSERT_TRUE(FromWire(Travel(open), &sender, &back).ok());
  EXPECT_EQ(back.table, spec.table);
  EXPECT_EQ(back.range.low, "a");
  EXPECT_EQ(back.range.high, "x");
  EXPECT_EQ(back.direction, Direction::kDescending);
  EXPECT_EQ(back.batch_bytes, 77u);
  EXPECT_EQ(sender.tc, kSender.tc);
  open.set_batch_bytes(0);
  EXPECT_THAT(Text(FromWire(open, &sender, &back)), HasSubstr("batch_bytes"));

  ScanBatch batch;
  batch.records.Append("d", "v", Version());
  batch.covered = "d";
  wire::ScanAnswer answer;
  ToWire(batch, &answer);
  wire::ScanAnswer received = Travel(answer);
  ScanBatch got;
  ASSERT_TRUE(FromWire(&received, spec, &got).ok());
  EXPECT_EQ(got.covered, "d");
  EXPECT_EQ(got.records.size(), 1u);
  answer.set_covered("e");
  received = Travel(answer);
  EXPECT_EQ(FromWire(&received, spec, &got).code(), ErrorCode::kCorruption) << "a record behind what is covered";
  // A batch of a bulk scan may cover nothing new, but it must not lie outside the range.
  answer.clear_records();
  answer.set_covered("x");
  EXPECT_TRUE(FromWire(&answer, spec, &got).ok());
  answer.set_covered("y");
  EXPECT_EQ(FromWire(&answer, spec, &got).code(), ErrorCode::kCorruption);
  ToWire(Status(ErrorCode::kFenced, "f"), answer.mutable_status());
  EXPECT_EQ(FromWire(&answer, spec, &got).code(), ErrorCode::kFenced);
}

LogBatch SomeBatch() {
  LogBatch batch{.from = Position{Lsn(100), 0}, .to = Position{Lsn(200), UINT32_MAX}, .entries = {}};
  batch.Append(LogEntryView{.kind = LogEntryKind::kPut,
                            .position = Position{Lsn(150), 1},
                            .timestamp = Timestamp(9),
                            .table = TableId(1),
                            .key = "key",
                            .value = "value"});
  return batch;
}

TEST(ConvertDataComponentTest, LogBatchTravels) {
  const LogBatch batch = SomeBatch();
  wire::ApplyLogBatch message;
  ToWire(batch, &message);
  wire::ApplyLogBatch received = Travel(message);
  LogBatch back;
  ASSERT_TRUE(FromWire(&received, &back).ok());
  EXPECT_EQ(back.from, batch.from);
  EXPECT_EQ(back.to, batch.to);
  EXPECT_EQ(back.entries, batch.entries);
}

TEST(ConvertDataComponentTest, HostileLogBatches) {
  LogBatch out;
  wire::ApplyLogBatch good;
  ToWire(SomeBatch(), &good);

  wire::ApplyLogBatch wrong = good;
  wrong.set_crc32c(wrong.crc32c() + 1);
  EXPECT_THAT(Text(FromWire(&wrong, &out)), HasSubstr("CORRUPTION: crc32c"));

  wrong = good;
  (*wrong.mutable_entries())[5] ^= 1;
  EXPECT_THAT(Text(FromWire(&wrong, &out)), HasSubstr("CORRUPTION: crc32c"));

  wrong = good;
  wrong.mutable_to()->set_commit_lsn(201);
  EXPECT_THAT(Text(FromWire(&wrong, &out)), HasSubstr("CORRUPTION: crc32c"));

  // The sender computes the checksum of the truncated entries, so only the grammar shows the fault.
  LogBatch truncated = SomeBatch();
  truncated.entries.pop_back();
  wire::ApplyLogBatch message;
  ToWire(truncated, &message);
  EXPECT_THAT(Text(FromWire(&message, &out)), HasSubstr("CORRUPTION: log batch (100/0, 200/4294967295]"));

  LogBatch large = SomeBatch();
  large.entries.resize(kMaxLogBatchBytes + 1);
  EXPECT_EQ(CheckSendable(large).code(), ErrorCode::kInvalidArgument);
  ToWire(large, &message);
  EXPECT_THAT(Text(FromWire(&message, &out)), HasSubstr("entries: a log batch of 3145729 bytes"));
}

TEST(ConvertDataComponentTest, Ack) {
  wire::ApplyLogAck message;
  ToWire(ApplyAck{.incarnation = DcIncarnation(1), .applied = {Lsn(2), 3}, .stable = {Lsn(4), 5}, .free_bytes = 6},
         &message);
  const ApplyAck back = FromWire(Travel(message));
  EXPECT_EQ(back.incarnation, DcIncarnation(1));
  EXPECT_EQ(back.applied, (Position{Lsn(2), 3}));
  EXPECT_EQ(back.stable, (Position{Lsn(4), 5}));
  EXPECT_EQ(back.free_bytes, 6u);
}

TEST(ConvertDataComponentTest, Partition) {
  wire::PartitionRequest request;
  ToWire(kSender, request.mutable_sender());
  request.set_table(5);
  request.set_pieces(4);
  Sender sender;
  TableId table;
  uint32_t pieces = 0;
  ASSERT_TRUE(FromWire(Travel(request), &sender, &table, &pieces).ok());
  EXPECT_EQ(table, TableId(5));
  EXPECT_EQ(pieces, 4u);
  request.set_pieces(kMaxPartitions + 1);
  EXPECT_EQ(FromWire(request, &sender, &table, &pieces).code(), ErrorCode::kInvalidArgument);
  request.set_pieces(0);
  EXPECT_EQ(FromWire(request, &sender, &table, &pieces).code(), ErrorCode::kInvalidArgument);

  wire::PartitionAnswer answer;
  ToWire(Result<std::vector<std::string>>(std::vector<std::string>{"b", "d"}), &answer);
  auto keys = FromWire(Travel(answer), 3);
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(*keys, (std::vector<std::string>{"b", "d"}));
  EXPECT_EQ(FromWire(answer, 2).status().code(), ErrorCode::kCorruption);
  answer.add_keys("d");
  EXPECT_EQ(FromWire(answer, 10).status().code(), ErrorCode::kCorruption);
  answer.set_keys(2, "");
  EXPECT_EQ(FromWire(answer, 10).status().code(), ErrorCode::kCorruption);
}

}  // namespace
}  // namespace deut
