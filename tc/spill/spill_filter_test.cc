// Which keys a filter admits. The hash has a fixed key, so the shares are the same in every run.
#include "tc/spill/spill_filter.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "common/base/concat.h"
#include "common/base/ids.h"

namespace deut::tc {
namespace {

uint64_t HashOf(uint64_t i, uint32_t table = 1) { return SpillFilter::Hash(TableId{table}, Concat("user", i * 7)); }

TEST(SpillFilterTest, AdmitsEveryKeyThatWasAdded) {
  for (const uint64_t keys : {1, 2, 25, 26, 1000, 20'000}) {
    SpillFilter filter(keys);
    EXPECT_EQ(filter.memory_bytes(), SpillFilter::BytesFor(keys));
    // Twice as many as it was made for are admitted as well.
    for (uint64_t i = 0; i < 2 * keys; ++i) filter.Add(HashOf(i));
    for (uint64_t i = 0; i < 2 * keys; ++i) ASSERT_TRUE(filter.Admits(HashOf(i))) << i << " of " << keys;
  }
}

TEST(SpillFilterTest, AdmitsFewerThanTwoInAHundredOtherKeys) {
  constexpr uint64_t kKeys = 50'000;
  SpillFilter filter(kKeys);
  for (uint64_t i = 0; i < kKeys; ++i) filter.Add(HashOf(i));
  EXPECT_LE(filter.memory_bytes() * 8, kKeys * (SpillFilter::kBitsPerKey + 1));
  uint64_t others = 0, of_other_table = 0;
  for (uint64_t i = 0; i < kKeys; ++i) {
    others += filter.Admits(HashOf(kKeys + i)) ? 1 : 0;
    of_other_table += filter.Admits(HashOf(i, 2)) ? 1 : 0;
  }
  EXPECT_LT(others, kKeys / 50);
  EXPECT_LT(of_other_table, kKeys / 50);
}

TEST(SpillFilterTest, WithoutKeysItAdmitsAllAndTakesNoMemory) {
  const SpillFilter none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.memory_bytes(), 0u);
  EXPECT_TRUE(none.Admits(HashOf(1)));
}

}  // namespace
}  // namespace deut::tc
