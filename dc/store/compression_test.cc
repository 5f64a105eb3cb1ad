// Tables with and without compression in one store: written, cleaned, recovered.
#include "common/base/compression.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/coding/fixed.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/record_ops/log_maker.h"
#include "dc/store/world_fixture.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"
#include "protocol/table_options.h"

namespace deut::dc {
namespace {

constexpr TableId kOther{4};
constexpr uint64_t kKeys = 2000;

std::string ValueOf(uint64_t number, std::string_view round) {
  return Concat("customer ", number, " of round ", round, " has some words that repeat in all values");
}

void Fill(World* world, std::string_view round) {
  for (uint64_t i = 0; i < kKeys; ++i) world->Put(KeyOf(i), ValueOf(i, round));
  world->Flush();
  ASSERT_TRUE(world->Checkpoint().ok());
}

void FillOther(World* world) {
  for (uint64_t i = 0; i < kKeys; ++i) world->PutInto(kOther, KeyOf(i), ValueOf(i, "other"));
  world->Flush();
  ASSERT_TRUE(world->Checkpoint().ok());
}

// Returns the highest version that a file of this kind states.
uint16_t VersionOf(World& world, std::string_view kind) {
  uint16_t highest = 0;
  const auto names = world.storage().List("/pages");
  EXPECT_TRUE(names.ok());
  for (const std::string& name : *names) {
    if (!name.starts_with(kind)) continue;
    const auto file = world.storage().Open(Concat("/pages/", name), {});
    char bytes[10] = {};
    EXPECT_TRUE(file.ok() && (*file)->Read(0, bytes, sizeof(bytes)).ok());
    highest = std::max(highest, LoadU16(bytes + 8));
  }
  return highest;
}

class StoreCompression : public ::testing::TestWithParam<Compression> {};

INSTANTIATE_TEST_SUITE_P(Algorithms, StoreCompression, ::testing::Values(Compression::kLz4, Compression::kZstd),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

TEST_P(StoreCompression, ATableKeepsItsCompressionOverRestarts) {
  World world;
  world.Create(kTable, {.compression = GetParam()});
  Fill(&world, "one");
  EXPECT_GT(world.Counter("compressed_bytes_before"), 0u);
  EXPECT_LT(world.Counter("compressed_bytes_after"), world.Counter("compressed_bytes_before") * 2 / 3);
  for (const std::string_view round : {"two", "three"}) {
    world.Restart();
    EXPECT_EQ(world.Counter("updates_applied"), 0u);  // the checkpoint alone says how the table is compressed
    world.ExpectRight();
    Fill(&world, round);
    EXPECT_GT(world.Counter("compressed_bytes_before"), 0u);
    world.ExpectRight();
  }
}

TEST_P(StoreCompression, AMixtureOfTablesIsReadBackAfterEvictionAndRestart) {
  World world(/*memory_bytes=*/300 << 10);
  world.Create(kTable, {.compression = GetParam()});
  world.Create(kOther, {.compression = Compression::kNone});
  for (const std::string_view round : {"one", "two", "three", "four"}) {
    FillOther(&world);
    Fill(&world, round);
    world.ExpectRight();
  }
  world.Restart();
  world.ExpectRight();
  EXPECT_EQ(world.Counter("pages_damaged"), 0u);
}

TEST(StoreCompressionDefault, OnlyTablesWithCompressionMakeFilesOfNewVersions) {
  World world;
  world.Create(kOther);
  FillOther(&world);
  EXPECT_EQ(world.Counter("compressed_bytes_before"), 0u);
  EXPECT_EQ(VersionOf(world, "checkpoint-"), 4);
  EXPECT_EQ(VersionOf(world, "base-"), 2);
  world.Create(kTable, {.compression = Compression::kLz4});
  Fill(&world, "one");
  EXPECT_GT(world.Counter("compressed_bytes_before"), 0u);
  EXPECT_EQ(VersionOf(world, "checkpoint-"), 5);
  EXPECT_EQ(VersionOf(world, "base-"), 3);
  world.Restart();
  world.ExpectRight();
}

TEST(StoreCompressionDefault, TheDefaultHoldsForTablesWithoutAChoice) {
  RecordStoreOptions options = SmallPages(/*memory_bytes=*/0);
  options.tree.compression = Compression::kZstd;
  World world(options);
  world.Create(kOther, {.compression = Compression::kNone});
  FillOther(&world);
  EXPECT_EQ(world.Counter("compressed_bytes_before"), 0u);
  world.Create(kTable);
  Fill(&world, "one");
  EXPECT_GT(world.Counter("compressed_bytes_before"), 0u);
}

TEST(StoreCompressionDefault, AnotherDefaultDoesNotHoldForTablesThatAreThere) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  RecordStoreOptions options = SmallPages(/*memory_bytes=*/0);
  LogMaker log;
  Position applied;
  for (uint64_t life = 1; life <= 3; ++life) {
    options.tree.compression = life == 2 ? Compression::kZstd : Compression::kNone;
    auto store = OpenLife(*storage, life, options);
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    (*store)->operations().BeginStream();
    // One table is created under each default.
    const TableId table(static_cast<uint32_t>(life));
    log.Add(LogEntryKind::kCreateTable, table, Concat("table ", life), {});
    for (uint64_t i = 0; i < kKeys; ++i) {
      for (uint32_t each = 1; each <= life; ++each) {
        if (each != 2) log.Add(LogEntryKind::kPut, TableId(each), KeyOf(i), ValueOf(i, "default"));
      }
    }
    const LogBatch batch = log.Take();
    ASSERT_TRUE((*store)->operations().ApplyBatch(batch, applied).ok());
    applied = batch.to;
    ASSERT_TRUE((*store)->Checkpoint([&] { return applied; }).ok());
    // The only table that is compressed has no records.
    EXPECT_EQ(CounterOf(**store, "compressed_bytes_before"), 0u) << life;
    if (life == 3) {
      for (uint64_t i = 0; i < kKeys; ++i) log.Add(LogEntryKind::kPut, TableId(2), KeyOf(i), ValueOf(i, "second"));
      const LogBatch second = log.Take();
      ASSERT_TRUE((*store)->operations().ApplyBatch(second, applied).ok());
      ASSERT_TRUE((*store)->Checkpoint([&] { return second.to; }).ok());
      EXPECT_GT(CounterOf(**store, "compressed_bytes_before"), 0u);
    }
  }
}

// No checkpoint names the table or its parts yet, so nothing contradicts the other default.
TEST(StoreCompressionDefault, ACreationWithoutAChoiceThatIsReplayedTakesTheDefaultOfThatStart) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  RecordStoreOptions options = SmallPages(/*memory_bytes=*/300 << 10);  // so pages are written without a checkpoint
  LogMaker log;
  log.Add(LogEntryKind::kCreateTable, kOther, "without a choice", {});
  for (uint64_t i = 0; i < kKeys; ++i) log.Add(LogEntryKind::kPut, kOther, KeyOf(i), ValueOf(i, "one"));
  const LogBatch batch = log.Take();
  for (uint64_t life = 1; life <= 3; ++life) {
    options.tree.compression = life == 2 ? Compression::kZstd : Compression::kNone;
    auto store = OpenLife(*storage, life, options);
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    (*store)->operations().BeginStream();
    if (life == 3) {
      EXPECT_EQ((*store)->recovered(), batch.to);  // the table keeps the default of the second life
      RecordBatch found;
      ASSERT_TRUE((*store)->operations().Read(kOther, KeyOf(7), &found).ok());
      EXPECT_EQ(found.size(), 1u);
      continue;
    }
    EXPECT_EQ((*store)->recovered(), Position());
    ASSERT_TRUE((*store)->operations().ApplyBatch(batch, Position()).ok());
    if (life == 1) continue;  // the process ends before its first checkpoint
    ASSERT_TRUE((*store)->Checkpoint([&] { return batch.to; }).ok());
    EXPECT_GT(CounterOf(**store, "compressed_bytes_before"), 0u);
  }
}

// A creation that is applied again after a restart, because the checkpoint is older, decides as before.
TEST(StoreCompressionDefault, ACreationIsReplayedWithItsOptions) {
  World world;
  world.Create(kTable, {.compression = Compression::kZstd});
  for (uint64_t i = 0; i < kKeys; ++i) world.Put(KeyOf(i), ValueOf(i, "one"));
  world.Flush();
  world.Restart();  // without a checkpoint
  EXPECT_EQ(world.Counter("compressed_bytes_before"), 0u);
  ASSERT_TRUE(world.Checkpoint().ok());
  EXPECT_GT(world.Counter("compressed_bytes_before"), 0u);
  world.ExpectRight();
}

}  // namespace
}  // namespace deut::dc
