#include "protocol/wire/convert.h"

#include <string>
#include <type_traits>
#include <vector>

#include "common/observe/counter.h"
#include "common/runtime/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/limits.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

Status RoundTrip(const Status& status) {
  wire::Status message;
  ToWire(status, &message);
  wire::Status received;
  EXPECT_TRUE(received.ParseFromString(message.SerializeAsString()));
  return FromWire(received);
}

// A message carries a counter's value only. One name for both types would define it twice.
static_assert(!std::is_same_v<CounterValue, Counter>);

TEST(ConvertTest, EveryErrorCodeTravels) {
  EXPECT_TRUE(RoundTrip(Status::Ok()).ok());
  const std::string message("m\xff\0n", 4);  // any bytes travel
#define DEUT_TRAVELS(enumerator, number, name, retry, advice)                                    \
  if (ErrorCode::enumerator != ErrorCode::kOk && ErrorCode::enumerator != ErrorCode::kAborted) { \
    const Status back = RoundTrip(Status(ErrorCode::enumerator, message).WithRetryAfter(5));     \
    EXPECT_EQ(back.code(), ErrorCode::enumerator);                                               \
    EXPECT_EQ(back.message(), message);                                                          \
    EXPECT_EQ(back.retry_after_ms(), 5u);                                                        \
  }
  DEUT_ERROR_TABLE(DEUT_TRAVELS)
#undef DEUT_TRAVELS
}

TEST(ConvertTest, AbortTravelsWithItsConflict) {
  AbortInfo info{.reason = AbortReason::kRangeWriter, .table = 7, .key = std::string("k\0y", 3), .other_timestamp = 99};
  const Status back = RoundTrip(Status::Aborted(info, "lost"));
  ASSERT_NE(back.abort(), nullptr);
  EXPECT_EQ(back.abort()->reason, AbortReason::kRangeWriter);
  EXPECT_EQ(back.abort()->table, 7u);
  EXPECT_EQ(back.abort()->key, info.key);
  EXPECT_EQ(back.abort()->other_timestamp, 99u);
}

TEST(ConvertTest, CodesAndReasonsOfANewerPeer) {
  wire::Status message;
  message.set_code(4711);
  message.set_message("something new");
  EXPECT_EQ(FromWire(message).code(), ErrorCode::kInternal);
  EXPECT_THAT(std::string(FromWire(message).message()), HasSubstr("4711"));
  message.set_code(static_cast<uint32_t>(ErrorCode::kAborted));
  message.mutable_abort()->set_reason(100000);
  const Status aborted = FromWire(message);
  ASSERT_NE(aborted.abort(), nullptr);
  EXPECT_STREQ(AbortReasonName(aborted.abort()->reason), "unknown");
  // An abort without its conflict is still an abort.
  message.clear_abort();
  EXPECT_NE(FromWire(message).abort(), nullptr);
}

TEST(ConvertTest, LongMessagesAreCut) {
  EXPECT_EQ(RoundTrip(Status(ErrorCode::kInternal, std::string(100000, 'x'))).message().size(), kMaxStatusMessageBytes);
}

TEST(ConvertTest, TablesAndCounters) {
  const std::vector<TableInfo> tables = {{TableId(1), "one", false, 10, 20},
                                         {TableId(4000000000), std::string(255, 'n'), true, 1, 2}};
  google::protobuf::RepeatedPtrField<wire::TableInfo> messages;
  ToWire(tables, &messages);
  std::vector<TableInfo> back;
  ASSERT_TRUE(FromWire(messages, &back).ok());
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].name, "one");
  EXPECT_EQ(back[0].records, 10u);
  EXPECT_EQ(back[0].bytes, 20u);
  EXPECT_FALSE(back[0].dropped);
  EXPECT_EQ(back[1].id, TableId(4000000000));
  EXPECT_TRUE(back[1].dropped);
  // A table that an earlier incarnation of the DC dropped has no name any more.
  messages.Mutable(1)->clear_name();
  ASSERT_TRUE(FromWire(messages, &back).ok());
  EXPECT_EQ(back[1].name, "");
  messages.Mutable(1)->set_dropped(false);
  EXPECT_THAT(std::string(FromWire(messages, &back).message()), HasSubstr("tables[1].name: a table name of 0 bytes"));
  messages.Mutable(1)->set_dropped(true);
  messages.Mutable(1)->set_name(std::string(256, 'n'));
  const Status refused = FromWire(messages, &back);
  EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("tables[1].name: a table name of 256 bytes"));

  google::protobuf::RepeatedPtrField<wire::Counter> counters;
  ToWire({CounterValue{"reads", 3}}, &counters);
  std::vector<CounterValue> counted;
  FromWire(counters, &counted);
  ASSERT_EQ(counted.size(), 1u);
  EXPECT_EQ(counted[0].name, "reads");
  EXPECT_EQ(counted[0].value, 3u);
}

TEST(ConvertTest, PositionsAndDirections) {
  wire::Position message;
  ToWire(Position{Lsn(UINT64_MAX), UINT32_MAX}, &message);
  EXPECT_EQ(FromWire(message), (Position{Lsn(UINT64_MAX), UINT32_MAX}));
  Direction direction;
  EXPECT_TRUE(FromWire(wire::DESCENDING, &direction).ok());
  EXPECT_EQ(direction, Direction::kDescending);
  EXPECT_EQ(FromWire(static_cast<wire::Direction>(2), &direction).code(), ErrorCode::kInvalidArgument);
}

TEST(ConvertTest, DeadlinesTravelAsTimeLeft) {
  Runtime& runtime = RealRuntime();
  EXPECT_EQ(TimeoutToWire(runtime, kNoDeadline), 0u);
  EXPECT_EQ(TimeoutToWire(runtime, runtime.Now() - seconds(5)), 1u);
  EXPECT_EQ(TimeoutToWire(runtime, Deadline::min() + seconds(1)), 1u);
  const uint64_t left = TimeoutToWire(runtime, runtime.Now() + seconds(3));
  EXPECT_GT(left, 2'000'000u);
  EXPECT_LE(left, 3'000'000u);
  EXPECT_EQ(DeadlineFromWire(runtime, 0), kNoDeadline);
  EXPECT_EQ(DeadlineFromWire(runtime, UINT64_MAX), kNoDeadline);
  const Deadline deadline = DeadlineFromWire(runtime, 3'000'000);
  EXPECT_GT(deadline, runtime.Now() + seconds(2));
  EXPECT_LE(deadline, runtime.Now() + seconds(3));
}

TEST(ConvertTest, LimitsNameTheField) {
  EXPECT_TRUE(CheckKey("key", std::string(kMaxKeyBytes, 'k')).ok());
  EXPECT_EQ(CheckKey("key", "").ToString(), "INVALID_ARGUMENT: key: a key of 0 bytes; keys have 1 to 4096 bytes");
  EXPECT_EQ(CheckKey("key", std::string(4097, 'k')).ToString(),
            "INVALID_ARGUMENT: key: a key of 4097 bytes; keys have 1 to 4096 bytes");
  EXPECT_TRUE(CheckBound("low", "").ok());
  EXPECT_TRUE(CheckBound("low", std::string(4097, 'k')).ok());
  EXPECT_FALSE(CheckBound("low", std::string(4098, 'k')).ok());
  EXPECT_FALSE(CheckTableName("name", "").ok());
  EXPECT_TRUE(CheckFigure("n", 5, 5, 5).ok());
  EXPECT_EQ(CheckFigure("n", 4, 5, 6).ToString(), "INVALID_ARGUMENT: n: 4 is not within 5 to 6");
  EXPECT_EQ(CheckProtocolVersion("the peer", kProtocolVersion + 1).code(), ErrorCode::kVersionMismatch);
  EXPECT_EQ(At("keys", 3, CheckKey("key", "")).ToString(),
            "INVALID_ARGUMENT: keys[3].key: a key of 0 bytes; keys have 1 to 4096 bytes");
}

TEST(ConvertTest, RecordsStandInOrderAndInRange) {
  RecordBatch records;
  for (const char* key : {"b", "c", "d"}) records.Append(key, "v", Version());
  EXPECT_TRUE(CheckRecordOrder(records, "b", "e", Direction::kAscending).ok());
  EXPECT_TRUE(CheckRecordOrder(records, "", "", Direction::kAscending).ok());
  EXPECT_EQ(CheckRecordOrder(records, "", "d", Direction::kAscending).code(), ErrorCode::kCorruption);
  EXPECT_EQ(CheckRecordOrder(records, "ba", "", Direction::kAscending).code(), ErrorCode::kCorruption);
  EXPECT_EQ(CheckRecordOrder(records, "", "", Direction::kDescending).code(), ErrorCode::kCorruption);
  records.Append("d", "twice", Version());
  EXPECT_THAT(CheckRecordOrder(records, "", "", Direction::kAscending).ToString(), HasSubstr("records[3]: key \"d\""));
}

}  // namespace
}  // namespace deut
