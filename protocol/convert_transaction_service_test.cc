#include "protocol/convert_transaction_service.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/limits.h"

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
  // Defaults are defaults on the wire too.
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
       .scan_sequence = 7},
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
  }
  EXPECT_EQ(back[5].limit_records, 3u);
  EXPECT_EQ(back[5].limit_bytes, 4u);
  EXPECT_TRUE(back[5].for_update);
  EXPECT_EQ(back[5].scan_sequence, 7u);
  EXPECT_FALSE(Writes(OperationKind::kGet));
  EXPECT_FALSE(Writes(OperationKind::kScan));
  EXPECT_TRUE(Writes(OperationKind::kRemove));
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
