// Reading ahead (rule S7): what it asks for and keeps, what it does not ask for, and that the kept answers are what
// the DC has.
#include "tc/record_manager/read_ahead.h"

#include <functional>
#include <string>

#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

class ReadAheadTest : public ::testing::Test {
 protected:
  ReadAheadTest() { f_.Load({{"a", "0"}, {"b", "0"}, {"c", "0"}}); }
  ~ReadAheadTest() override { testing::SetPointHandler(nullptr); }

  static Operation Get(std::string_view key) {
    return {.kind = OperationKind::kGet, .table = EngineFixture::kTable, .key = key};
  }
  std::string Put(std::string_view key, std::string_view value) {
    TestTransaction txn = f_.Begin();
    const std::string put = txn.Put(key, value);
    return put == "ok" ? txn.Commit() : put;
  }
  std::string Read(std::string_view key) {
    TestTransaction txn = f_.Begin();
    std::string value = txn.Get(key);
    if (txn.open()) EXPECT_EQ(txn.Commit(), "ok");
    return value;
  }
  uint64_t AskedBy(const std::function<void()>& action) {
    const uint64_t before = f_.dc->requests();
    action();
    return f_.dc->requests() - before;
  }

  EngineFixture f_{{.read_cache_bytes = 1 << 20}};
};

TEST_F(ReadAheadTest, KeysUnknownToTheTcAreAskedForOnce) {
  EXPECT_EQ(Read("a"), "0");
  EXPECT_EQ(Put("c", "1"), "ok");
  ReadAhead ahead(*f_.engine);
  EXPECT_FALSE(ahead.Add(Get("a")));
  EXPECT_FALSE(ahead.Add(Get("c")));
  EXPECT_TRUE(ahead.Add(Get("b")));
  EXPECT_TRUE(ahead.Add(Get("x")));
  EXPECT_EQ(AskedBy([&] { EXPECT_TRUE(ahead.Start()); }), 2u);
  ahead.Finish(EngineFixture::Soon());
  EXPECT_EQ(f_.active->open_transactions(), 0u);
  EXPECT_EQ(AskedBy([&] {
              EXPECT_EQ(Read("a"), "0");
              EXPECT_EQ(Read("b"), "0");
              EXPECT_EQ(Read("c"), "1");
              EXPECT_EQ(Read("x"), "-");
            }),
            0u);
  // The same object again; nothing is left in it.
  EXPECT_FALSE(ahead.Add(Get("b")));
  EXPECT_FALSE(ahead.Start());
  EXPECT_EQ(f_.active->open_transactions(), 0u);
}

TEST_F(ReadAheadTest, OperationsThatReadNoPointTheyKnowAskForNothing) {
  ReadAhead ahead(*f_.engine);
  for (const OperationKind kind :
       {OperationKind::kPut, OperationKind::kRemove, OperationKind::kScan, OperationKind::kRemoveRange}) {
    Operation operation = Get("b");
    operation.kind = kind;
    EXPECT_FALSE(ahead.Add(operation)) << static_cast<int>(kind);
  }
  Operation stamped = Get("b");
  stamped.kind = OperationKind::kInsert;
  stamped.stamp = Stamp::kKey;
  EXPECT_FALSE(ahead.Add(stamped));
  Operation of_no_table = Get("b");
  of_no_table.table = TableId(99);
  EXPECT_FALSE(ahead.Add(of_no_table));
  EXPECT_FALSE(ahead.Add(Get("")));
  EXPECT_FALSE(ahead.Add(Get(std::string(kMaxKeyBytes + 1, 'k'))));
  EXPECT_FALSE(ahead.Start());
  for (const OperationKind kind : {OperationKind::kInsert, OperationKind::kUpdate, OperationKind::kAdd,
                                   OperationKind::kMin, OperationKind::kMax, OperationKind::kCompareAndSet}) {
    Operation operation = Get("b");
    operation.kind = kind;
    EXPECT_TRUE(ahead.Add(operation)) << static_cast<int>(kind);
  }
  EXPECT_TRUE(ahead.Start());
  ahead.Finish(EngineFixture::Soon());
}

TEST_F(ReadAheadTest, NoMoreThanFitsIsAskedForAtOnce) {
  ReadAhead ahead(*f_.engine);
  std::vector<std::string> keys;
  for (size_t i = 0; i <= ReadAhead::kMaxReads; ++i) keys.push_back("k" + std::to_string(i));
  for (size_t i = 0; i < ReadAhead::kMaxReads; ++i) EXPECT_TRUE(ahead.Add(Get(keys[i])));
  EXPECT_FALSE(ahead.Add(Get(keys.back())));
  EXPECT_EQ(AskedBy([&] { EXPECT_TRUE(ahead.Start()); }), ReadAhead::kMaxReads);
  ahead.Finish(EngineFixture::Soon());
}

TEST_F(ReadAheadTest, ADcThatIsAwayIsNotWaitedFor) {
  ReadAhead ahead(*f_.engine);
  EXPECT_TRUE(ahead.Add(Get("b")));
  f_.dc->set_error(Status(ErrorCode::kUnavailable, "away"));
  EXPECT_FALSE(ahead.Start());
  EXPECT_EQ(f_.active->open_transactions(), 0u);
  f_.dc->set_error(Status::Ok());
  EXPECT_TRUE(ahead.Add(Get("b")));
  EXPECT_TRUE(ahead.Start());
  ahead.Finish(EngineFixture::Soon());
  EXPECT_EQ(AskedBy([&] { EXPECT_EQ(Read("b"), "0"); }), 0u);
}

TEST_F(ReadAheadTest, AddedKeysThatAreNeverAskedForHoldNothingBack) {
  {
    ReadAhead ahead(*f_.engine);
    EXPECT_TRUE(ahead.Add(Get("b")));
    EXPECT_EQ(f_.active->open_transactions(), 1u);
  }
  EXPECT_EQ(f_.active->open_transactions(), 0u);
}

// The answer is in flight when a later transaction writes the key. The DC is told to apply that at once, but may not
// before the reader has ended.
TEST_F(ReadAheadTest, S7ItHoldsLowWaterBackUntilTheAnswerIsKept) {
  AtPoint point("read_ahead.before_fill", [&] {
    EXPECT_EQ(Put("b", "1"), "ok");
    f_.PumpAndCollect();
  });
  ReadAhead ahead(*f_.engine);
  EXPECT_TRUE(ahead.Add(Get("b")));
  EXPECT_TRUE(ahead.Start());
  ahead.Finish(EngineFixture::Soon());
  EXPECT_TRUE(point.reached());
  f_.PumpAndCollect();
  EXPECT_EQ(Read("b"), "1");
}

// An earlier writer installs after the look. It is refused; otherwise the answer could be older than its write, and
// be kept over it.
TEST_F(ReadAheadTest, S7AnEarlierWriterThatComesLaterIsRefused) {
  TestTransaction earlier = f_.Begin();
  ReadAhead ahead(*f_.engine);
  EXPECT_TRUE(ahead.Add(Get("b")));
  EXPECT_TRUE(ahead.Start());
  EXPECT_NE(earlier.Put("b", "1"), "ok");
  ahead.Finish(EngineFixture::Soon());
  f_.PumpAndCollect();
  EXPECT_EQ(Read("b"), "0");
}

TEST_F(ReadAheadTest, AnUncommittedWriterIsNotWaitedFor) {
  TestTransaction writer = f_.Begin();
  EXPECT_EQ(writer.Put("b", "1"), "ok");
  ReadAhead ahead(*f_.engine);
  EXPECT_FALSE(ahead.Add(Get("b")));
  EXPECT_FALSE(ahead.Start());
  EXPECT_EQ(writer.Commit(), "ok");
}

TEST(ReadAheadWithoutCacheTest, NothingIsAskedFor) {
  EngineFixture f;
  f.Load({{"a", "0"}});
  ReadAhead ahead(*f.engine);
  EXPECT_FALSE(ahead.Add({.kind = OperationKind::kGet, .table = EngineFixture::kTable, .key = "a"}));
  EXPECT_FALSE(ahead.Start());
}

}  // namespace
}  // namespace deut::tc
