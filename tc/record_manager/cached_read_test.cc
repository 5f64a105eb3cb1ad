// Reads of earlier answers of the DC (rule S7): when an answer is kept, how writes, scans and preconditions treat it,
// and incarnations of the DC.
#include <string>

#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

class CachedReadTest : public ::testing::Test {
 protected:
  CachedReadTest() { f_.Load({{"a", "0"}, {"b", "0"}, {"c", "0"}}); }
  ~CachedReadTest() override { testing::SetPointHandler(nullptr); }

  std::string Get(std::string_view key) {
    TestTransaction txn = f_.Begin();
    std::string value = txn.Get(key);
    if (txn.open()) EXPECT_EQ(txn.Commit(), "ok");
    return value;
  }
  std::string Put(std::string_view key, std::string_view value) {
    TestTransaction txn = f_.Begin();
    const std::string put = txn.Put(key, value);
    return put == "ok" ? txn.Commit() : put;
  }
  uint64_t AskedBy(const std::function<void()>& action) {
    const uint64_t before = f_.dc->requests();
    action();
    return f_.dc->requests() - before;
  }

  EngineFixture f_{{.read_cache_bytes = 1 << 20}};
};

TEST_F(CachedReadTest, TheDcIsAskedOnce) {
  EXPECT_EQ(AskedBy([&] { EXPECT_EQ(Get("b"), "0"); }), 1u);
  EXPECT_EQ(AskedBy([&] { EXPECT_EQ(Get("b"), "0"); }), 0u);
  EXPECT_EQ(AskedBy([&] { EXPECT_EQ(Get("x"), "-"); }), 1u);
  EXPECT_EQ(AskedBy([&] { EXPECT_EQ(Get("x"), "-"); }), 0u);
  EXPECT_EQ(AskedBy([&] { EXPECT_EQ(f_.BeginSnapshot().Get("b"), "0"); }), 0u);
  EXPECT_EQ(f_.engine->counters.cache_reads.value(), 3u);
  f_.ClearReadCache();
  EXPECT_TRUE(f_.Settle());
  EXPECT_EQ(f_.records->entries(), 0u);
  EXPECT_EQ(AskedBy([&] { EXPECT_EQ(Get("b"), "0"); }), 1u);
}

TEST_F(CachedReadTest, AWriteReplacesTheCopy) {
  EXPECT_EQ(Get("b"), "0");
  EXPECT_EQ(Put("b", "1"), "ok");
  EXPECT_EQ(Get("b"), "1");
  // The write is applied and stays as the copy, because the key had been read.
  f_.PumpAndCollect();
  EXPECT_EQ(f_.engine->counters.pinned_bytes.load(), 0u);
  EXPECT_EQ(f_.read_cache->refreshed(), 1u);
  EXPECT_EQ(AskedBy([&] { EXPECT_EQ(Get("b"), "1"); }), 0u);
  EXPECT_EQ(Put("a", "1"), "ok");
  f_.PumpAndCollect();
  EXPECT_EQ(f_.read_cache->refreshed(), 1u);
  EXPECT_EQ(AskedBy([&] { EXPECT_EQ(Get("a"), "1"); }), 1u);
  {
    TestTransaction txn = f_.Begin();
    EXPECT_EQ(txn.Remove("b"), "ok");
    EXPECT_EQ(txn.Commit(), "ok");
  }
  EXPECT_EQ(Get("b"), "-");
  f_.PumpAndCollect();
  EXPECT_EQ(Get("b"), "-");
}

// A reader that is earlier than the writer still sees the old record: from the DC, which does not get the update
// before the reader has ended (S1).
TEST_F(CachedReadTest, OldReadersAndWritersThatAbort) {
  TestTransaction old = f_.Begin();
  EXPECT_EQ(Get("b"), "0");
  {
    TestTransaction snapshot = f_.BeginSnapshot();
    TestTransaction writer = f_.Begin();
    EXPECT_EQ(writer.Put("b", "1"), "ok");
    EXPECT_EQ(old.Get("b"), "0");
    EXPECT_EQ(snapshot.Get("b"), "0");
    writer.Abort();
  }
  f_.PumpAndCollect();
  EXPECT_EQ(Get("b"), "0");
  EXPECT_EQ(Put("b", "2"), "ok");
  f_.PumpAndCollect();
  EXPECT_EQ(old.Get("b"), "0");
  EXPECT_EQ(Get("b"), "2");
}

// The answer is in flight, or about to be kept, when a later transaction writes the key.
TEST_F(CachedReadTest, S7NotOverAVersion) {
  AtPoint point("read.before_fill", [&] { EXPECT_EQ(Put("b", "1"), "ok"); });
  EXPECT_EQ(Get("b"), "0");
  EXPECT_TRUE(point.reached());
  EXPECT_EQ(f_.read_cache->filled(), 0u);
  EXPECT_EQ(Get("b"), "1");
}

// The same, and the DC is told to apply the write at once. It must not do so while the reader counts in the
// low-water, so the version is still there.
TEST_F(CachedReadTest, S7OnlyWhileItsReaderHoldsLowWaterBack) {
  AtPoint point("read.before_fill", [&] {
    EXPECT_EQ(Put("b", "1"), "ok");
    f_.PumpAndCollect();
  });
  EXPECT_EQ(Get("b"), "0");
  EXPECT_TRUE(point.reached());
  f_.PumpAndCollect();
  EXPECT_EQ(Get("b"), "1");
}

TEST_F(CachedReadTest, PreconditionsAreAnswered) {
  EXPECT_EQ(Get("b"), "0");
  EXPECT_EQ(Get("x"), "-");
  EXPECT_EQ(AskedBy([&] {
              TestTransaction txn = f_.Begin();
              EXPECT_EQ(txn.Insert("b", "1"), "ALREADY_EXISTS");
              EXPECT_EQ(txn.Insert("x", "1"), "ok");
              EXPECT_EQ(txn.Commit(), "ok");
            }),
            0u);
  EXPECT_EQ(Get("b"), "0");
  EXPECT_EQ(Get("x"), "1");
}

// A gathered key's version has been applied and collected since the DC was asked, and another reader has got it from
// the DC again. That copy is newer than the DC's answer to the scan.
TEST_F(CachedReadTest, S7AScanTakesACopyForTheNewest) {
  for (const bool removed : {false, true}) {
    TestTransaction writer = f_.Begin();
    EXPECT_EQ(removed ? writer.Remove("b") : writer.Put("b", "1"), "ok");
    EXPECT_EQ(writer.Commit(), "ok");
    TestTransaction scanner = f_.Begin();
    AtPoint point("scan.after_dc", [&] {
      f_.PumpAndCollect();
      EXPECT_EQ(Get("b"), removed ? "-" : "1");
      EXPECT_GT(f_.read_cache->filled(), 0u);
    });
    EXPECT_EQ(scanner.Scan(), removed ? "a=0 c=0" : "a=0 b=1 c=0");
    EXPECT_TRUE(point.reached());
    EXPECT_EQ(scanner.Commit(), "ok");
  }
}

TEST_F(CachedReadTest, AScanTakesNoKeysFromCopies) {
  EXPECT_EQ(Get("b"), "0");
  EXPECT_EQ(Get("x"), "-");
  EXPECT_EQ(f_.Contents(), "a=0 b=0 c=0");
  EXPECT_EQ(Put("b", "1"), "ok");
  EXPECT_EQ(Put("x", "1"), "ok");
  EXPECT_EQ(f_.Contents(), "a=0 b=1 c=0 x=1");
}

// X3: a new incarnation has everything that was ever sent before it is read from, so copies stay right.
TEST_F(CachedReadTest, AcrossLivesOfTheDc) {
  EXPECT_EQ(Get("b"), "0");
  EXPECT_EQ(Put("a", "1"), "ok");
  f_.PumpAndCollect();
  EXPECT_EQ(Get("a"), "1");
  f_.dc->Restart();
  EXPECT_EQ(AskedBy([&] {
              EXPECT_EQ(Get("a"), "1");
              EXPECT_EQ(Get("b"), "0");
            }),
            0u);
  EXPECT_EQ(Put("b", "2"), "ok");
  f_.PumpAndCollect();
  EXPECT_EQ(Get("b"), "2");
}

// A copy protects the reads of it, as any version does.
TEST_F(CachedReadTest, AReaderOfACopyIsInAnEarlierWritersWay) {
  EXPECT_EQ(Get("b"), "0");
  TestTransaction writer = f_.Begin();
  EXPECT_EQ(AskedBy([&] { EXPECT_EQ(Get("b"), "0"); }), 0u);
  EXPECT_EQ(writer.Put("b", "1"), "record-read-later");
  // So does the floor that the first reader had raised, when the key gets a new entry.
  TestTransaction other = f_.Begin();
  EXPECT_EQ(Get("c"), "0");
  EXPECT_NE(other.Put("c", "1"), "ok");
}

TEST_F(CachedReadTest, UnderAVeryLongReaderToo) {
  TestTransaction old = f_.Begin();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Get("n" + std::to_string(i)), "-");
  f_.ClearReadCache();
  EXPECT_EQ(f_.read_cache->bytes(), 0u);
  EXPECT_EQ(old.Get("n1"), "-");
  old.Abort();
  f_.ClearReadCache();
  EXPECT_TRUE(f_.Settle());
  EXPECT_EQ(f_.records->entries(), 0u);
}

TEST(CachedWriteTest, WrittenValuesAreKept) {
  EngineFixture f{{.read_cache_bytes = 1 << 20, .cache_written = true}};
  f.Load({{"a", "0"}, {"b", "0"}});
  const uint64_t asked = f.dc->requests();
  const auto read = [&](std::string_view key) {
    TestTransaction txn = f.Begin();
    const std::string value = txn.Get(key);
    EXPECT_EQ(txn.Commit(), "ok");
    return value;
  };
  EXPECT_EQ(read("a"), "0");
  EXPECT_EQ(f.BeginSnapshot().Get("a"), "0");
  {
    // A reader of it is protected as any reader.
    TestTransaction writer = f.Begin();
    EXPECT_EQ(read("b"), "0");
    EXPECT_EQ(writer.Put("b", "1"), "record-read-later");
  }
  {
    TestTransaction writer = f.Begin();
    EXPECT_EQ(writer.Remove("a"), "ok");
    EXPECT_EQ(writer.Put("b", "2"), "ok");
    EXPECT_EQ(writer.Commit(), "ok");
  }
  EXPECT_EQ(read("b"), "2");
  // A version that was applied only after the cache is cleared below would become a copy then. One pump may leave it unapplied.
  EXPECT_TRUE(f.Settle());
  EXPECT_EQ(read("a"), "-");
  EXPECT_EQ(read("b"), "2");
  EXPECT_EQ(f.dc->requests(), asked);
  EXPECT_EQ(f.Contents(), "b=2");
  f.ClearReadCache();
  EXPECT_TRUE(f.Settle());
  EXPECT_EQ(f.records->entries(), 0u);
}

}  // namespace
}  // namespace deut::tc
