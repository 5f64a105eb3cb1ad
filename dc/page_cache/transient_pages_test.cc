#include "dc/page_cache/transient_pages.h"

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

class TransientPagesTest : public ::testing::Test {
 protected:
  void Add(uint32_t parent) { pages_.Add({.table = TableId(1), .parent = PageId(parent), .high = "k"}); }
  // Takes the oldest place; 0: there is none.
  uint32_t Take() {
    const std::optional<TransientPages::Place> place = pages_.Take();
    return place.has_value() ? place->parent.value : 0;
  }

  TransientPages pages_{RealRuntime()};
};

TEST_F(TransientPagesTest, TheOldestPlaceComesFirst) {
  for (const uint32_t parent : {3, 1, 2}) Add(parent);
  EXPECT_EQ(pages_.size(), 3u);
  EXPECT_EQ(Take(), 3u);
  EXPECT_EQ(Take(), 1u);
  EXPECT_EQ(Take(), 2u);
  EXPECT_EQ(Take(), 0u);
}

TEST_F(TransientPagesTest, APlaceThatIsAddedAgainKeepsItsTurn) {
  for (const uint32_t parent : {1, 2, 1}) Add(parent);
  EXPECT_EQ(pages_.size(), 2u);
  EXPECT_EQ(Take(), 1u);
  Add(1);  // it is not among them any more
  EXPECT_EQ(Take(), 2u);
  EXPECT_EQ(Take(), 1u);
}

TEST_F(TransientPagesTest, OfTooManyPlacesTheOldestIsForgotten) {
  for (uint32_t parent = 1; parent <= TransientPages::kMaxPlaces + 2; ++parent) Add(parent);
  EXPECT_EQ(pages_.size(), TransientPages::kMaxPlaces);
  EXPECT_EQ(Take(), 3u);
  Add(1);
  EXPECT_EQ(pages_.size(), TransientPages::kMaxPlaces);
}

}  // namespace
}  // namespace deut::dc
