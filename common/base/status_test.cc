#include "common/base/status.h"

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace deut {
namespace {

struct ErrorRow {
  ErrorCode code;
  uint32_t number;
  std::string name;
  Retry retry;
  std::string advice;
};

std::vector<ErrorRow> ErrorRows() {
#define ROW(enumerator, number, name, retry, advice) {ErrorCode::enumerator, number, name, Retry::retry, advice},
  return {DEUT_ERROR_TABLE(ROW)};
#undef ROW
}

TEST(ErrorTable, NumbersAndNamesAreUniqueAndTravelBothWays) {
  std::set<uint32_t> numbers;
  std::set<std::string> names;
  for (const ErrorRow& row : ErrorRows()) {
    EXPECT_TRUE(numbers.insert(row.number).second) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(static_cast<uint32_t>(row.code), row.number);
    EXPECT_EQ(ErrorCodeFromNumber(row.number), row.code);
    EXPECT_EQ(ErrorCodeName(row.code), row.name);
    EXPECT_EQ(ErrorCodeAdvice(row.code), row.advice);
    EXPECT_EQ(ErrorCodeRetry(row.code), row.retry);
  }
}

TEST(ErrorTable, NumberOfANewerPeerIsInternal) {
  EXPECT_EQ(ErrorCodeFromNumber(999), ErrorCode::kInternal);
  EXPECT_STREQ(ErrorCodeName(static_cast<ErrorCode>(999)), "INTERNAL");
}

TEST(AbortReasonTable, NumbersAndNamesAreUniqueAndCounted) {
  std::set<int> numbers;
  std::set<std::string> names;
#define ROW(enumerator, number, name, meaning)                  \
  numbers.insert(number);                                       \
  names.insert(name);                                           \
  EXPECT_EQ(static_cast<int>(AbortReason::enumerator), number); \
  EXPECT_STREQ(AbortReasonName(AbortReason::enumerator), name);
  DEUT_ABORT_REASON_TABLE(ROW)
#undef ROW
  EXPECT_EQ(numbers.size(), size_t{kAbortReasonCount});
  EXPECT_EQ(names.size(), size_t{kAbortReasonCount});
  EXPECT_EQ(*numbers.rbegin(), kAbortReasonCount - 1);
  EXPECT_STREQ(AbortReasonName(static_cast<AbortReason>(200)), "unknown");
}

TEST(Status, DefaultIsOk) {
  Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::kOk);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.ToString(), "OK");
  EXPECT_TRUE(Status(ErrorCode::kOk, "dropped").ok());
}

TEST(Status, CarriesCodeMessageAndHint) {
  Status status = DEUT_ERROR(kResourceExhausted, "in flight ", 7, " of ", 7).WithRetryAfter(20);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status, ErrorCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "in flight 7 of 7");
  EXPECT_EQ(status.retry_after_ms(), 20u);
  EXPECT_EQ(status.ToString(), "RESOURCE_EXHAUSTED: in flight 7 of 7 (retry after 20 ms)");
}

TEST(Status, MessagesTakeEveryKindOfPiece) {
  const std::string_view view = "view";
  const std::string text = "text";
  EXPECT_EQ(DEUT_ERROR(kIoError, view, " ", text, " ", -3, " ", uint64_t{1} << 63, " ", 'c' - 'a').message(),
            "view text -3 9223372036854775808 2");
  EXPECT_EQ(DEUT_ERROR(kIoError, view).message(), "view");
}

TEST(Status, AbortNamesTheConflict) {
  const Status status = Status::Aborted(
      {.reason = AbortReason::kRangeReadLater, .table = 3, .key = std::string("a\0z", 3), .other_timestamp = 12},
      "lost");
  ASSERT_NE(status.abort(), nullptr);
  EXPECT_EQ(status.abort()->reason, AbortReason::kRangeReadLater);
  EXPECT_EQ(status.ToString(),
            "ABORTED: lost [reason range-read-later, table 3, key \"a\\x00z\", against transaction 12]");
  EXPECT_EQ(DEUT_ERROR(kNotFound, "x").abort(), nullptr);
}

TEST(Status, CopiesAreIndependentAndMovesLeaveTheValue) {
  Status first = DEUT_ERROR(kNotFound, "one");
  Status copy = first;
  first = DEUT_ERROR(kCorruption, "two");
  EXPECT_EQ(copy.message(), "one");
  Status moved = std::move(copy);
  EXPECT_EQ(moved.code(), ErrorCode::kNotFound);
  moved = *&moved;
  EXPECT_EQ(moved.message(), "one");
}

Result<int> Half(int number) {
  if (number % 2 != 0) return DEUT_ERROR(kInvalidArgument, number, " is odd");
  return number / 2;
}

Result<int> Quarter(int number) {
  DEUT_ASSIGN_OR_RETURN(const int half, Half(number));
  DEUT_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

Status CheckEven(int number) {
  DEUT_RETURN_IF_ERROR(Half(number).status());
  return Status::Ok();
}

TEST(Result, ValueOrErrorThroughTheMacros) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().message(), "3 is odd");
  EXPECT_EQ(Quarter(5).status().message(), "5 is odd");
  EXPECT_TRUE(CheckEven(2).ok());
  EXPECT_EQ(CheckEven(3), ErrorCode::kInvalidArgument);
}

TEST(Result, HoldsTypesThatOnlyMove) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  ASSERT_TRUE(result.ok());
  std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(ResultDeathTest, ValueOfAnErrorEndsTheProcess) {
  Result<int> result = DEUT_ERROR(kNotFound, "no");
  EXPECT_DEATH((void)result.value(), "invariant does not hold: value_.has_value");
}

}  // namespace
}  // namespace deut
