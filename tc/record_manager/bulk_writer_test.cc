// A transaction that writes very many keys, beside others that read keys without an entry: reads of other keys do not
// stop it (R6).
//
// Time does not matter here, only the number of reads between its begin and its last write. The long run plays a
// million keys over a minute beside 2,000 reads a second, in a record table of the default size, a hundred times:
//   bazel test --config=test --test_env=DEUT_BULK_KEYS=1000000 --test_env=DEUT_BULK_READS=120000 --test_env=DEUT_BULK_RUNS=100
//     --test_env=DEUT_BULK_LOG2_BUCKETS=22 --test_timeout=3600 --test_output=streamed //tc/record_manager:bulk_writer_test
// On 2026-11-24 all of 2 x 100 such runs committed at the first attempt, in 2 to 3 seconds each, without a read by a
// shared floor.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The log must have room for the commit of all keys. Each key takes less than 64 bytes there.
size_t LogSegmentFor(uint64_t keys) { return std::max<uint64_t>(size_t{1} << 20, std::bit_ceil(keys * 64)); }

// Returns how many of the runs commit at the first attempt. The reads are of the writer's table, or of another one.
uint64_t CommittedRuns(uint64_t runs, bool same_table) {
  const uint64_t keys = FromEnvironment("DEUT_BULK_KEYS", 40'000);
  const uint64_t reads = FromEnvironment("DEUT_BULK_READS", 20'000);
  const auto log2_buckets = static_cast<uint32_t>(FromEnvironment("DEUT_BULK_LOG2_BUCKETS", 14));
  uint64_t committed = 0;
  for (uint64_t run = 0; run < runs; ++run) {
    EngineFixture f({.log2_buckets = log2_buckets, .log_segment_bytes = LogSegmentFor(keys)});
    const Result<TableId> other = f.manager->CreateTable("other", {}, EngineFixture::Soon());
    EXPECT_TRUE(other.ok());
    TestTransaction bulk = f.Begin();
    uint64_t read = 0;
    std::string put = bulk.Put("first", "1");
    for (uint64_t key = 0; key < keys && put == "ok"; ++key) {
      for (; read * keys < key * reads; ++read) {
        TestTransaction reader = f.Begin();
        if (!same_table) reader.table = *other;
        EXPECT_EQ(reader.Get(Concat("read", read)), "-");
        EXPECT_EQ(reader.Commit(), "ok");
      }
      put = bulk.Put(Concat("written", key), "value");
    }
    // A writer that nothing has stopped so far meets no conflict any more.
    const bool won = put == "ok";
    if (won) put = bulk.Commit();
    if (won) EXPECT_EQ(put, "ok");
    committed += put == "ok" ? 1 : 0;
    std::printf("run %llu: %s, %zu entries deferred, %llu reads by shared floors\n",
                static_cast<unsigned long long>(run), put.c_str(), f.collector->deferred_entries(),
                static_cast<unsigned long long>(f.engine->counters.shared_floors.load()));
  }
  return committed;
}

// By the arithmetic of record_table.h about one run in some hundred loses by default, and about one in a thousand of
// the long ones.
TEST(BulkWriterTest, ReadsOfAnotherTableDoNotStopIt) {
  const uint64_t runs = FromEnvironment("DEUT_BULK_RUNS", 2);
  EXPECT_GE(CommittedRuns(runs, /*same_table=*/false), runs - 1);
}

TEST(BulkWriterTest, ReadsOfOtherKeysOfItsTableDoNotStopIt) {
  const uint64_t runs = FromEnvironment("DEUT_BULK_RUNS", 2);
  EXPECT_GE(CommittedRuns(runs, /*same_table=*/true), runs - 1);
}

// R6, S9: the writes of others are spilled meanwhile, and their entries leave memory. Their reads and writes are
// remembered by key.
TEST(BulkWriterTest, SpilledWritesOfAnotherTableDoNotStopIt) {
  constexpr int kKeys = 1000;
  EngineFixture f({.spills = true});
  const Result<TableId> other = f.manager->CreateTable("other", {}, EngineFixture::Soon());
  ASSERT_TRUE(other.ok());
  TestTransaction bulk = f.Begin();
  ASSERT_EQ(bulk.Put("first", "1"), "ok");
  for (int i = 0; i < kKeys; ++i) {
    TestTransaction t = f.Begin();
    t.table = *other;
    ASSERT_EQ(t.Put(Concat("key", i), "value"), "ok");
    ASSERT_EQ(t.Commit(), "ok");
  }
  f.SetVersionBudget(1);
  const MonotonicTime patience = EngineFixture::Soon();
  while (f.collector->spilled() < kKeys && RealRuntime().Now() < patience) f.Fold();
  ASSERT_GE(f.collector->spilled(), static_cast<uint64_t>(kKeys));
  f.SetVersionBudget(uint64_t{1} << 30);
  // Every bucket has had some of the spilled keys.
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(bulk.Put(Concat("written", i), "value"), "ok") << i;
  EXPECT_EQ(bulk.Commit(), "ok");
  EXPECT_EQ(f.collector->shared_floors(), 0u);
}

// R1, R6: writers of the spilled keys still lose to them, whether the entries wait or a floor has taken over what
// they knew.
TEST(BulkWriterTest, SpilledWritesOfItsOwnKeysStopAWriter) {
  constexpr int kKeys = 200;
  for (const size_t max_deferred : {size_t{1000}, size_t{0}}) {
    EngineFixture f({.max_deferred_entries = max_deferred, .spills = true});
    std::vector<std::unique_ptr<TestTransaction>> writers;
    for (int i = 0; i < kKeys; ++i) {
      writers.push_back(f.BeginPointer());
      ASSERT_EQ(writers.back()->Get("z"), "-");
    }
    for (int i = 0; i < kKeys; ++i) {
      TestTransaction t = f.Begin();
      ASSERT_EQ(t.Put(Concat("key", i), "value"), "ok");
      ASSERT_EQ(t.Commit(), "ok");
    }
    f.SetVersionBudget(1);
    const MonotonicTime patience = EngineFixture::Soon();
    while (f.collector->spilled() < kKeys && RealRuntime().Now() < patience) f.Fold();
    ASSERT_GE(f.collector->spilled(), static_cast<uint64_t>(kKeys));
    f.SetVersionBudget(uint64_t{1} << 30);
    for (int i = 0; i < kKeys; ++i) {
      const std::string lost = writers[i]->Put(Concat("key", i), "older");
      EXPECT_TRUE(lost == "record-read-later" || lost == "bucket-floor") << i << ": " << lost;
    }
    if (max_deferred == 0) EXPECT_GT(f.collector->shared_floors(), 0u) << "they are counted";
  }
}

}  // namespace
}  // namespace deut::tc
