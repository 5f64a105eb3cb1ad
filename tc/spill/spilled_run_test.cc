#include "tc/spill/spilled_run.h"

#include <string>
#include <vector>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "tc/spill/spill_test_util.h"

namespace deut::tc {
namespace {

class SpilledRunTest : public ::testing::Test {
 protected:
  SpilledRunTest() { EXPECT_TRUE(runs_.LockAndEmpty().ok()); }

  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  ReclamationDomain domain_;
  SpilledRuns runs_{"dir", RealRuntime(), *storage_, domain_};
};

TEST_F(SpilledRunTest, IsInOrderAndKeepsAVersionOnce) {
  SpilledVersion removed = SpilledAt("b", 8);
  removed.tombstone = true;
  const auto run = RunOf(runs_, {SpilledAt("b", 3), SpilledAt("a", 5), removed, SpilledAt("a", 5), SpilledAt("a", 9)});
  EXPECT_EQ(TextOf(*run), "a@9 a@5 b@8! b@3");
  EXPECT_EQ(run->versions(), 4u);
  EXPECT_EQ(run->span().first, Timestamp{3});
  EXPECT_EQ(run->span().last, (Position{Lsn{90}, 1}));
}

TEST_F(SpilledRunTest, TheIndexLeadsToEachKeyOfEachTable) {
  // Keys with long common prefixes, some with versions over several blocks; two tables of the same keys.
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) keys.push_back(Concat(std::string(1000, 'x'), 1000 + i / 3 * 7, i % 3));
  std::vector<SpilledVersion> versions;
  for (const uint32_t table : {1u, 256u}) {
    for (size_t i = 0; i < keys.size(); ++i) {
      for (uint64_t t = 1; t <= (i % 50 == 0 ? 40u : 1u); ++t)
        versions.push_back(SpilledAt(keys[i], 100 * i + t, TableId{table}));
    }
  }
  const auto run = RunOf(runs_, versions);
  EXPECT_GT(run->blocks(), 40u);
  // A separator is shorter than its key only if it differs early from the key before.
  EXPECT_LT(run->memory_bytes(), run->blocks() * 1100);
  for (const uint32_t table : {1u, 256u}) {
    for (const std::string& key : keys) {
      const size_t from = run->FirstBlock(TableId{table}, key);
      // The block before has nothing of the key; this one or the next one has it.
      const auto has = [&](size_t b) {
        const Result<std::shared_ptr<const SpillBlock>> block = run->Read(b);
        for (const SpilledVersion& v : (*block)->versions()) {
          if (v.table == TableId{table} && v.key == key) return true;
        }
        return false;
      };
      EXPECT_TRUE(has(from) || (from + 1 < run->blocks() && has(from + 1)));
      if (from > 0) EXPECT_FALSE(has(from - 1));
    }
  }
}

TEST_F(SpilledRunTest, TheFileGoesWithIt) {
  auto run = RunOf(runs_, {SpilledAt("a", 1)});
  EXPECT_EQ(storage_->List("dir")->size(), 3u);  // the file, the lock and the owner file
  EXPECT_GT(run->file_bytes(), 24u);
  run.reset();
  EXPECT_EQ(storage_->List("dir")->size(), 2u);
  {
    Result<SpilledRun::Builder> given_up = runs_.NewRun(100);
    ASSERT_TRUE(given_up->Add(SpilledAt("a", 1)).ok());
    EXPECT_EQ(storage_->List("dir")->size(), 3u);  // the file, the lock and the owner file
  }
  EXPECT_EQ(storage_->List("dir")->size(), 2u);
}

}  // namespace
}  // namespace deut::tc
