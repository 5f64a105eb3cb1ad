#include "protocol/wire/convert_transaction_service.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/limits.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

using Operations = google::protobuf::RepeatedPtrField<wire::Operation>;

std::string Text(const Status& status) { return status.ToString(); }

TEST(ConvertTransactionServiceTest, OptionsTravel) {
  TransactionOptions options;
  options.isolation = Isolation::kSnapshot;
  options.durability = Durability::kBuffered;
  options.min_timestamp = Timestamp(77);
  options.declared = {{TableId(1), "a"}, {TableId(2), std::string(4096, 'b')}};
  wire::Begin message;
  ToWire(options, &message);
  wire::Begin received;
  ASSERT_TRUE(received.ParseFromString(message.SerializeAsString()));
  TransactionOptions back;
  back.declared = {{TableId(9), "left over"}};
  ASSERT_TRUE(FromWire(received, &back).ok());
  EXPECT_EQ(back.isolation, Isolation::kSnapshot);
  EXPECT_EQ(back.durability, Durability::kBuffered);
  EXPECT_EQ(back.min_timestamp, Timestamp(77));
  ASSERT_EQ(back.declared.size(), 2u);
  EXPECT_EQ(back.declared[1].table, TableId(2));
  EXPECT_EQ(back.declared[1].key.size(), 4096u);
  // Missing fields take their defaults from the wire, too.
  ASSERT_TRUE(FromWire(wire::Begin(), &back).ok());
  EXPECT_EQ(back.isolation, Isolation::kSerializable);
  EXPECT_EQ(back.durability, Durability::kDurable);
  EXPECT_TRUE(back.declared.empty());
}

TEST(ConvertTransactionServiceTest, HostileOptions) {
  TransactionOptions out;
  wire::Begin begin;
  begin.set_isolation(static_cast<wire::Isolation>(2));
  EXPECT_THAT(Text(FromWire(begin, &out)), HasSubstr("isolation: 2"));
  begin.clear_isolation();
  begin.set_durability(static_cast<wire::Durability>(2));
  EXPECT_THAT(Text(FromWire(begin, &out)), HasSubstr("durability: 2"));
  begin.clear_durability();
  begin.add_declared()->set_key("k");
  begin.add_declared();
  EXPECT_THAT(Text(FromWire(begin, &out)), HasSubstr("declared[1].key: a key of 0 bytes"));
  for (int i = 0; i < kMaxDeclaredKeys; ++i) begin.add_declared()->set_key("k");
  EXPECT_THAT(Text(FromWire(begin, &out)), HasSubstr("declared: 1026"));
}

TEST(ConvertTransactionServiceTest, OperationsTravel) {
  const std::vector<Operation> operations = {
      {.kind = OperationKind::kGet, .table = TableId(1), .key = "g"},
      {.kind = OperationKind::kPut, .table = TableId(1), .key = "p", .value = "v"},
      {.kind = OperationKind::kInsert, .table = TableId(2), .key = "i", .value = ""},
      {.kind = OperationKind::kUpdate, .table = TableId(2), .key = "u", .value = "w"},
      {.kind = OperationKind::kRemove, .table = TableId(3), .key = "r"},
      {.kind = OperationKind::kScan,
       .table = TableId(3),
       .low = "a",
       .high = "b",
       .direction = Direction::kDescending,
       .limit_records = 3,
       .limit_bytes = 4,
       .for_update = true,
       .scan_sequence = 7,
       .prefetch = true},
      {.kind = OperationKind::kAdd, .table = TableId(3), .key = "a", .value = "12345678"},
      {.kind = OperationKind::kMin, .table = TableId(3), .key = "a", .value = "12345678"},
      {.kind = OperationKind::kMax, .table = TableId(3), .key = "a", .value = "12345678"},
      {.kind = OperationKind::kCompareAndSet,
       .table = TableId(3),
       .key = "c",
       .value = "new",
       .expected = "old",
       .expect_absent = true},
      {.kind = OperationKind::kRemoveRange, .table = TableId(3), .low = "a", .high = "b"},
      {.kind = OperationKind::kPut,
       .table = TableId(3),
       .key = "stamped-........",
       .stamp = Stamp::kKey,
       .stamp_offset = 8},
  };
  ASSERT_TRUE(CheckOperations(operations).ok());
  wire::Execute message;
  for (const Operation& operation : operations) {
    wire::Operation* out = message.add_operations();
    ToWire(operation, out);
    EXPECT_GE(WireBytes(operation), out->ByteSizeLong());
  }
  wire::Execute received;
  ASSERT_TRUE(received.ParseFromString(message.SerializeAsString()));
  std::vector<Operation> back;
  ASSERT_TRUE(FromWire(received.operations(), &back).ok());
  ASSERT_EQ(back.size(), operations.size());
  for (size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ(back[i].kind, operations[i].kind);
    EXPECT_EQ(back[i].table, operations[i].table);
    EXPECT_EQ(back[i].key, operations[i].key);
    EXPECT_EQ(back[i].value, operations[i].value);
    EXPECT_EQ(back[i].low, operations[i].low);
    EXPECT_EQ(back[i].high, operations[i].high);
    EXPECT_EQ(back[i].direction, operations[i].direction);
    EXPECT_EQ(back[i].expected, operations[i].expected);
    EXPECT_EQ(back[i].expect_absent, operations[i].expect_absent);
    EXPECT_EQ(back[i].stamp, operations[i].stamp);
    EXPECT_EQ(back[i].stamp_offset, operations[i].stamp_offset);
  }
  EXPECT_EQ(back[5].limit_records, 3u);
  EXPECT_EQ(back[5].limit_bytes, 4u);
  EXPECT_TRUE(back[5].for_update);
  EXPECT_EQ(back[5].scan_sequence, 7u);
  EXPECT_TRUE(back[5].prefetch);
  EXPECT_FALSE(Writes(OperationKind::kGet));
  EXPECT_FALSE(Writes(OperationKind::kScan));
  EXPECT_TRUE(Writes(OperationKind::kRemove));
  EXPECT_TRUE(Writes(OperationKind::kRemoveRange));
}

TEST(ConvertTransactionServiceTest, NamesAndOutcomesTravel) {
  const TransactionName name{.id = {.high = 1, .low = UINT64_MAX}, .not_before = Timestamp(77)};
  wire::Begin begin;
  TransactionOptions options;
  options.name = name;
  ToWire(options, &begin);
  options.name = {};
  ASSERT_TRUE(FromWire(begin, &options).ok());
  EXPECT_EQ(options.name.id, name.id);
  EXPECT_EQ(options.name.not_before, name.not_before);
  wire::OutcomeRequest request;
  ToWire(name, &request);
  TransactionName asked;
  ASSERT_TRUE(FromWire(request, &asked).ok());
  EXPECT_EQ(asked.id, name.id);
  EXPECT_EQ(asked.not_before, name.not_before);
  for (const TransactionOutcome outcome :
       {TransactionOutcome::kCommitted, TransactionOutcome::kNotCommitted, TransactionOutcome::kTooOld}) {
    wire::OutcomeAnswer message;
    ToWire(OutcomeAnswer{.outcome = outcome, .commit = {.timestamp = Timestamp(5), .commit_lsn = Lsn(6)}}, &message);
    const Result<OutcomeAnswer> answer = FromWire(message);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->outcome, outcome);
    EXPECT_EQ(answer->commit.timestamp, Timestamp(5));
    EXPECT_EQ(answer->commit.commit_lsn, Lsn(6));
  }
  wire::OutcomeAnswer refusal;
  ToWire(Result<OutcomeAnswer>(Status(ErrorCode::kUnavailable, "no")), &refusal);
  EXPECT_EQ(FromWire(refusal).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(FromWire(wire::OutcomeAnswer()).status().code(), ErrorCode::kCorruption);
  EXPECT_THAT(Text(FromWire(wire::OutcomeRequest(), &asked)), HasSubstr("id: none"));
  request.set_id("short");
  EXPECT_THAT(Text(FromWire(request, &asked)), HasSubstr("id: 5 bytes"));
  request.set_id(std::string(16, '\0'));
  EXPECT_THAT(Text(FromWire(request, &asked)), HasSubstr("not all zero"));
  begin.set_id(std::string(17, 'x'));
  EXPECT_THAT(Text(FromWire(begin, &options)), HasSubstr("id: 17 bytes"));
}

// A caller's operations are also checked before they are sent.
TEST(ConvertTransactionServiceTest, StampsAreForPutsAndInserts) {
  const Operation update{.kind = OperationKind::kUpdate, .key = "k", .value = "12345678", .stamp = Stamp::kValue};
  EXPECT_THAT(Text(CheckOperation(update)), HasSubstr("stamp: only a put or an insert"));
}

TEST(ConvertTransactionServiceTest, HostileChanges) {
  std::vector<Operation> out;
  Operations operations;
  wire::Operation* operation = operations.Add();
  operation->set_kind(wire::ATOMIC_ADD);
  operation->set_key("k");
  operation->set_value("seven..");
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations[0].value: a number has 8 bytes, not 7"));
  operation->set_kind(wire::COMPARE_AND_SET);
  operation->set_expected(std::string(kMaxValueBytes + 1, 'v'));
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations[0].expected: 1048577 bytes"));
  operation->clear_expected();
  operation->set_stamp(wire::STAMP_VALUE);
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations[0].stamp: 2 is none of this kind's"));
  operation->set_kind(wire::STAMPED_PUT);
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations[0].stamp_offset: 0 and 8 bytes go beyond the 7"));
  operation->set_value("eight...");
  EXPECT_TRUE(FromWire(operations, &out).ok());
  operation->set_stamp_offset(UINT32_MAX);
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("stamp_offset: 4294967295"));
  operation->set_stamp(static_cast<wire::Stamp>(3));
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations[0].stamp: 3 is none"));
  operation->set_stamp(wire::NO_STAMP);
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations[0].stamp: 0 is none"));
  operation->set_stamp(static_cast<wire::Stamp>(-1));
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations[0].stamp: -1 is none"));
  operations.Clear();
  operations.Add()->set_kind(wire::REMOVE_RANGE);
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations[0].limit_bytes: 0"));
}

TEST(ConvertTransactionServiceTest, HostileOperations) {
  std::vector<Operation> out;
  Operations operations;
  wire::Operation* operation = operations.Add();
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations[0].kind: 0"));
  operation->set_kind(static_cast<wire::OperationKind>(99));
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations[0].kind: 99"));
  operation->set_kind(wire::PUT);
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations[0].key: a key of 0 bytes"));
  operation->set_key("k");
  operation->set_value(std::string(kMaxValueBytes + 1, 'v'));
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations[0].value: a value of 1048577 bytes"));
  operation->clear_value();
  operation->set_direction(static_cast<wire::Direction>(5));
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations[0].direction: 5"));
  operation->clear_direction();
  operations.Add()->set_kind(wire::SCAN);
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations[1].limit_bytes: 0"));
  operations.Mutable(1)->set_limit_bytes(100);
  operations.Mutable(1)->set_low(std::string(4098, 'l'));
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations[1].low"));
  operations.Mutable(1)->clear_low();
  EXPECT_TRUE(FromWire(operations, &out).ok());
  for (int i = 0; i < kMaxOperationsPerCall; ++i) operations.Add();
  EXPECT_THAT(Text(FromWire(operations, &out)), HasSubstr("operations: 1026"));
}

class OperationResultTest : public ::testing::Test {
 protected:
  Status Judge(const Operation& operation) {
    wire::OperationResult message;
    ToWire(result_, &message);
    EXPECT_GE(WireBytes(result_) + 16, message.ByteSizeLong());
    return FromWire(&message, operation, &back_);
  }
  const Operation get_{.kind = OperationKind::kGet, .key = "k"};
  const Operation put_{.kind = OperationKind::kPut, .key = "k"};
  const Operation scan_{.kind = OperationKind::kScan, .low = "b", .high = "y"};
  const Operation down_{.kind = OperationKind::kScan, .low = "b", .high = "y", .direction = Direction::kDescending};
  OperationResult result_, back_;
};

TEST_F(OperationResultTest, Travels) {
  result_.records.Append("k", "v", Version{Timestamp(4), 5});
  ASSERT_TRUE(Judge(get_).ok());
  EXPECT_EQ(RecordBatch::Iterator(back_.records).record().value, "v");
  result_.resume = "l";
  ASSERT_TRUE(Judge(scan_).ok());
  EXPECT_EQ(back_.resume, "l");
  EXPECT_FALSE(back_.complete);
  result_.complete = true;
  ASSERT_TRUE(Judge(scan_).ok());
  EXPECT_TRUE(back_.complete);
  EXPECT_TRUE(back_.resume.empty());
  result_.status = Status::Aborted(
      AbortInfo{.reason = AbortReason::kRangeWriter, .table = 1, .key = "k", .other_timestamp = 2}, "m");
  ASSERT_TRUE(Judge(scan_).ok());
  ASSERT_NE(back_.status.abort(), nullptr);
  EXPECT_EQ(back_.status.abort()->key, "k");
}

TEST_F(OperationResultTest, HostileResults) {
  result_.records.Append("z", "v", Version());
  EXPECT_THAT(Text(Judge(get_)), HasSubstr("another key"));
  EXPECT_THAT(Text(Judge(put_)), HasSubstr("1 records in answer"));
  result_.complete = true;
  EXPECT_THAT(Text(Judge(scan_)), HasSubstr("outside"));
  result_.records.Clear();
  result_.complete = false;
  for (const char* outside : {"", "a", "z"}) {
    result_.resume = outside;
    EXPECT_THAT(Text(Judge(scan_)), HasSubstr("resume")) << outside;
    EXPECT_THAT(Text(Judge(down_)), HasSubstr("resume")) << outside;
  }
  result_.resume = "b";
  EXPECT_THAT(Text(Judge(scan_)), HasSubstr("covers nothing"));
  result_.resume = "y";
  EXPECT_THAT(Text(Judge(down_)), HasSubstr("covers nothing"));
  wire::OperationResult message;
  message.set_records("rubbish");
  EXPECT_EQ(FromWire(&message, get_, &back_).code(), ErrorCode::kCorruption);
}

TEST(ConvertTransactionServiceTest, StatusOfTheService) {
  ServiceStatus status;
  status.tc = {CounterValue{"a", 1}};
  status.dc = {CounterValue{"b", 2}, CounterValue{"c", 3}};
  wire::GetStatusAnswer answer;
  ToWire(Result<ServiceStatus>(status), &answer);
  auto back = FromWire(answer);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->tc.size(), 1u);
  EXPECT_EQ(back->dc[1].value, 3u);
  wire::GetStatusAnswer refused;
  ToWire(Result<ServiceStatus>(Status(ErrorCode::kUnavailable, "starting")), &refused);
  EXPECT_EQ(FromWire(refused).status().code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace deut
