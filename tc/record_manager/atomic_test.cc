// Atomic operations, range removal and stamps: their answers from own writes, from the TC and from the DC; that they
// are reads as well as writes (S10); what a refused one leaves behind.
#include <string>
#include <vector>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "protocol/number.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

class AtomicTest : public ::testing::Test {
 protected:
  static Deadline Soon() { return EngineFixture::Soon(); }

  // "is N", "found V", or the status.
  std::string Change(TestTransaction& txn, Operation operation) {
    operation.table = EngineFixture::kTable;
    RecordBatch result;
    const Status status = f_.manager->Change(txn.transaction(), operation, &result, Soon());
    const RecordBatch::Iterator it(result);
    std::string text = status.ok() ? "ok" : std::string(ErrorCodeName(status.code()));
    if (!it.Valid()) return text;
    EXPECT_EQ(it.record().key, operation.key);
    const std::optional<int64_t> number = DecodeNumber(it.record().value);
    return text + " " + (number.has_value() ? std::to_string(*number) : std::string(it.record().value));
  }
  std::string Number(TestTransaction& txn, OperationKind kind, std::string_view key, int64_t operand) {
    const std::string bytes = EncodeNumber(operand);
    return Change(txn, {.kind = kind, .key = key, .value = bytes});
  }
  std::string Add(TestTransaction& txn, std::string_view key, int64_t by) {
    return Number(txn, OperationKind::kAdd, key, by);
  }
  std::string Swap(TestTransaction& txn, std::string_view key, std::string_view expected, std::string_view value) {
    return Change(txn, {.kind = OperationKind::kCompareAndSet,
                        .key = key,
                        .value = value,
                        .expected = expected,
                        .expect_absent = expected.empty()});
  }
  // Returns the number of keys removed, by batches; "+" where a batch ends before the range does.
  std::string RemoveRange(TestTransaction& txn, std::string_view low, std::string_view high, uint32_t limit = 0) {
    std::string from(low), text;
    for (;;) {
      OperationResult result;
      const Status status = f_.manager->RemoveRange(txn.transaction(),
                                                    {.kind = OperationKind::kRemoveRange,
                                                     .table = EngineFixture::kTable,
                                                     .low = from,
                                                     .high = high,
                                                     .limit_records = limit},
                                                    &result, Soon());
      if (!status.ok()) return std::string(ErrorCodeName(status.code()));
      text += std::to_string(result.removed);
      EXPECT_EQ(result.records.size(), 0u);
      if (result.complete) return text;
      text += "+";
      from = result.resume;
    }
  }

  EngineFixture f_;
};

TEST_F(AtomicTest, NumbersFromOwnWritesFromTheTcAndFromTheDc) {
  f_.Load({{"dc", EncodeNumber(10)}});  // applied by the DC and collected
  {
    TestTransaction t = f_.Begin();
    EXPECT_EQ(Add(t, "dc", 5), "ok 15");
    EXPECT_EQ(Add(t, "dc", -20), "ok -5") << "its own write";
    EXPECT_EQ(Add(t, "new", 7), "ok 7") << "absent counts as 0";
    EXPECT_EQ(Number(t, OperationKind::kMin, "low", 9), "ok 9") << "absent becomes the operand";
    EXPECT_EQ(Number(t, OperationKind::kMin, "low", -9), "ok -9");
    EXPECT_EQ(Number(t, OperationKind::kMin, "low", 3), "ok -9");
    EXPECT_EQ(Number(t, OperationKind::kMax, "high", -4), "ok -4");
    EXPECT_EQ(Number(t, OperationKind::kMax, "high", 4), "ok 4");
    EXPECT_EQ(Number(t, OperationKind::kMax, "high", -9), "ok 4");
    EXPECT_EQ(t.Get("dc"), EncodeNumber(-5));
    EXPECT_EQ(t.Commit(), "ok");
  }
  TestTransaction t = f_.Begin();
  EXPECT_EQ(Add(t, "dc", 1), "ok -4") << "a version in the TC";
  EXPECT_EQ(t.Remove("dc"), "ok");
  EXPECT_EQ(Add(t, "dc", 1), "ok 1") << "a tombstone counts as 0";
  EXPECT_EQ(Add(t, "wraps", INT64_MAX), "ok 9223372036854775807");
  EXPECT_EQ(Add(t, "wraps", 1), "ok -9223372036854775808");
  EXPECT_EQ(t.Commit(), "ok");
  ASSERT_TRUE(f_.Settle());
  TestTransaction later = f_.Begin();
  EXPECT_EQ(later.Get("new"), EncodeNumber(7)) << "what the DC was sent is the number, not the operand";
  EXPECT_EQ(later.Get("dc"), EncodeNumber(1));
}

TEST_F(AtomicTest, AnAddToATextIsRefusedAndKeepsTheText) {
  f_.Load({{"text", "abc"}});
  TestTransaction t = f_.Begin();
  EXPECT_EQ(Add(t, "text", 1), "INVALID_ARGUMENT");
  EXPECT_EQ(t.Get("text"), "abc");
  EXPECT_EQ(Change(t, {.kind = OperationKind::kAdd, .key = "n", .value = "1"}), "INVALID_ARGUMENT");
  EXPECT_EQ(t.Put("own", "x"), "ok");
  EXPECT_EQ(Add(t, "own", 1), "INVALID_ARGUMENT");
  EXPECT_EQ(t.Commit(), "ok");
  EXPECT_EQ(f_.Contents(), "own=x text=abc");
}

TEST_F(AtomicTest, CompareAndSet) {
  f_.Load({{"a", "1"}});
  {
    TestTransaction t = f_.Begin();
    EXPECT_EQ(Swap(t, "a", "2", "x"), "CONDITION_FAILED 1");
    EXPECT_EQ(Swap(t, "b", "2", "x"), "CONDITION_FAILED");
    EXPECT_EQ(Swap(t, "a", "", "x"), "CONDITION_FAILED 1") << "it was to be absent";
    EXPECT_EQ(Swap(t, "a", "1", "2"), "ok");
    EXPECT_EQ(Swap(t, "a", "1", "x"), "CONDITION_FAILED 2") << "its own write";
    EXPECT_EQ(Swap(t, "b", "", "3"), "ok");
    EXPECT_EQ(Swap(t, "b", "", "x"), "CONDITION_FAILED 3");
    EXPECT_EQ(t.Commit(), "ok");
  }
  EXPECT_EQ(f_.Contents(), "a=2 b=3");
  TestTransaction t = f_.Begin();
  EXPECT_EQ(Swap(t, "a", "x", "y"), "CONDITION_FAILED 2") << "a version in the TC";
  EXPECT_EQ(Swap(t, "a", "2", "4"), "ok");
  EXPECT_EQ(t.Commit(), "ok");
  EXPECT_EQ(f_.Contents(), "a=4 b=3");
}

// S10: a key that was compared or added to has been read. So an earlier transaction may not write it any more,
// whether the operation wrote or failed.
TEST_F(AtomicTest, S10AnAtomicOperationIsARead) {
  f_.Load({{"a", EncodeNumber(1)}, {"b", "1"}});
  TestTransaction t10 = f_.Begin();
  TestTransaction t15 = f_.Begin();
  TestTransaction t20 = f_.Begin();
  EXPECT_EQ(Swap(t20, "b", "2", "x"), "CONDITION_FAILED 1");
  EXPECT_EQ(Add(t20, "a", 1), "ok 2");
  EXPECT_EQ(t20.Commit(), "ok");
  EXPECT_EQ(t10.Put("b", "2"), "record-read-later");
  EXPECT_EQ(t15.Put("a", "2"), "write-later");
}

TEST_F(AtomicTest, TwoThatAddToOneKeyConflict) {
  f_.Load({{"a", EncodeNumber(1)}});
  TestTransaction t10 = f_.Begin();
  TestTransaction t20 = f_.Begin();
  EXPECT_EQ(Add(t10, "a", 1), "ok 2");
  EXPECT_EQ(Add(t20, "a", 1), "ABORTED");
  EXPECT_EQ(t10.Commit(), "ok");
}

TEST_F(AtomicTest, ARangeIsRemoved) {
  f_.Load({{"a", "1"}, {"b", "1"}, {"c", "1"}, {"d", "1"}, {"e", "1"}});
  {
    TestTransaction t = f_.Begin();
    EXPECT_EQ(t.Put("bb", "own"), "ok");
    EXPECT_EQ(t.Remove("c"), "ok");
    EXPECT_EQ(RemoveRange(t, "b", "e", 2), "2+1");
    EXPECT_EQ(t.Scan(), "a=1 e=1") << "its own scans see it";
    EXPECT_EQ(t.Put("c", "again"), "ok");
    EXPECT_EQ(t.Scan(), "a=1 c=again e=1");
    t.Abort();
  }
  EXPECT_EQ(f_.Contents(), "a=1 b=1 c=1 d=1 e=1");
  TestTransaction t = f_.Begin();
  EXPECT_EQ(RemoveRange(t, "", "", 2), "2+2+1");
  EXPECT_EQ(t.Commit(), "ok");
  EXPECT_EQ(f_.Contents(), "");
  ASSERT_TRUE(f_.Settle());
  EXPECT_EQ(f_.Contents(), "") << "the tombstones have reached the DC";
}

// No key slips into a range that a later transaction has emptied: it would have to be gone, too.
TEST_F(AtomicTest, NoPhantomInARemovedRange) {
  f_.Load({{"a", "1"}, {"c", "1"}});
  TestTransaction t10 = f_.Begin();
  TestTransaction t20 = f_.Begin();
  EXPECT_EQ(RemoveRange(t20, "a", "z"), "2");
  EXPECT_EQ(t20.Commit(), "ok");
  EXPECT_EQ(t10.Put("b", "phantom"), "range-read-later");
  EXPECT_EQ(f_.Contents(), "");
}

TEST_F(AtomicTest, Stamps) {
  std::string first, second;
  for (std::string* written : {&first, &second}) {
    TestTransaction t = f_.Begin();
    RecordBatch result;
    Operation put{.kind = OperationKind::kPut,
                  .table = EngineFixture::kTable,
                  .key = "log/........",
                  .value = "v",
                  .stamp = Stamp::kKey,
                  .stamp_offset = 4};
    ASSERT_TRUE(f_.manager->PutStamped(t.transaction(), put, &result, Soon()).ok());
    *written = std::string(RecordBatch::Iterator(result).record().key);
    std::string expected = "log/";
    for (int shift = 56; shift >= 0; shift -= 8) expected += static_cast<char>(t.timestamp() >> shift);
    EXPECT_EQ(*written, expected);
    EXPECT_EQ(t.Get(expected), "v");
    put.stamp_offset = 5;
    EXPECT_EQ(f_.manager->PutStamped(t.transaction(), put, &result, Soon()).code(), ErrorCode::kInvalidArgument);
    put.stamp_offset = UINT32_MAX;
    EXPECT_EQ(f_.manager->PutStamped(t.transaction(), put, &result, Soon()).code(), ErrorCode::kInvalidArgument);
    put = {.kind = OperationKind::kInsert,
           .table = EngineFixture::kTable,
           .key = "value",
           .value = "........!",
           .stamp = Stamp::kValue};
    const Status inserted = f_.manager->PutStamped(t.transaction(), put, &result, Soon());
    if (written == &first) {
      EXPECT_TRUE(inserted.ok());
      EXPECT_EQ(t.Get("value"), expected.substr(4) + "!");
    } else {
      EXPECT_EQ(inserted.code(), ErrorCode::kAlreadyExists);
    }
    EXPECT_EQ(t.Commit(), "ok");
  }
  EXPECT_LT(first, second) << "they sort by commit order";
}

}  // namespace
}  // namespace deut::tc
