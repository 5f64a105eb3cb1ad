// Parts that are intact, but in the wrong place: only the tree's description reveals them.
#include "dc/verify/tree_walk.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/coding/fixed.h"
#include "common/runtime/random.h"
#include "dc/verify/checkpoint_contents.h"
#include "dc/verify/store_on_disk.h"
#include "dc/verify/verify.h"
#include "dc/verify/verify_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

// Offset of the right sibling in the payload of a base part.
constexpr size_t kSiblingAt = 16;

// Returns the place of the part's page, as messages name it.
std::string Place(const StoreOnDisk::Part& part) {
  return Concat("page ", part.header.page.value, " in segment ", part.address.segment(), " at ", part.address.offset());
}

class WrongInPlace : public ::testing::Test {
 protected:
  WrongInPlace() {
    store_.Fill(3000);
    const auto contents = ReadContents(store_.storage(), StoreOnDisk::PathOf("pages"), CheckpointNumber(4),
                                       StoreOnDisk::kDc, WithImages::kYes);
    std::map<PageAddress, StoreOnDisk::Part> all;
    for (const StoreOnDisk::Part& part : store_.Parts()) all[part.address] = part;
    for (size_t i = 0; i < contents->images.size(); ++i) {
      for (const PageAddress part : contents->images.parts(i)) {
        (part == contents->images.parts(i).back() ? bases_ : deltas_).push_back(all.at(part));
      }
    }
  }

  // Returns the `n`th live base part of this level of the big table.
  StoreOnDisk::Part Base(uint8_t level, size_t n = 2) const {
    for (const StoreOnDisk::Part& part : bases_) {
      if (part.header.level == level && part.header.table == StoreOnDisk::kAccounts && n-- == 0) return part;
    }
    ADD_FAILURE() << "no such page";
    return {};
  }
  VerifyReport With(const StoreOnDisk::Part& part) {
    store_.Put(part);
    VerifyReport report = Verified(store_);
    EXPECT_EQ(std::ranges::count(report.findings, Damaged::kSegment, &Finding::what), 0) << ReportText(report);
    return report;
  }
  // Returns the offset of the child of an inner page's entry in the payload.
  static size_t ChildAt(const std::string& payload, int entry) {
    size_t at = 36 + LoadU32(payload.data() + 20) + LoadU32(payload.data() + 24);
    for (; entry > 0; --entry) at += 6 + LoadU16(payload.data() + at);
    return at + 2;
  }

  StoreOnDisk store_;
  std::vector<StoreOnDisk::Part> bases_;
  std::vector<StoreOnDisk::Part> deltas_;
};

TEST_F(WrongInPlace, OfAnotherPage) {
  StoreOnDisk::Part part = Base(0);
  const PageId page = part.header.page;
  part.header.page = PageId(page.value + 1);
  EXPECT_TRUE(
      Found(With(part), Damaged::kPage, {Concat("page ", page.value), Concat("a part of page ", page.value + 1)}));
}

TEST_F(WrongInPlace, TheContentOfAnotherPage) {
  const StoreOnDisk::Part part = Base(0);
  for (const StoreOnDisk::Part& other : bases_) {
    if (other.header.level != 0 || other.address == part.address || other.payload.size() != part.payload.size())
      continue;
    StoreOnDisk::Part changed = part;
    changed.payload = other.payload;
    EXPECT_TRUE(Found(With(changed), Damaged::kPage, {Concat("page ", part.header.page.value), "bounds"}));
    return;
  }
  FAIL() << "no two pages of one length";
}

TEST_F(WrongInPlace, OfAnotherTableOrLevel) {
  const StoreOnDisk::Part right = Base(0);
  StoreOnDisk::Part part = right;
  part.header.table = StoreOnDisk::kOrders;
  EXPECT_TRUE(Found(With(part), Damaged::kPage, {Concat("page ", right.header.page.value), "table"}));
  part = right;
  part.header.level = 1;
  EXPECT_TRUE(Found(With(part), Damaged::kPage, {Concat("page ", right.header.page.value), "level"}));
  StoreOnDisk::Part delta = deltas_.at(0);
  delta.header.table = StoreOnDisk::kOrders;
  part = right;
  store_.Put(part);
  EXPECT_TRUE(Found(With(delta), Damaged::kPage, {Concat("page ", delta.header.page.value), "not the next one"}));
}

TEST_F(WrongInPlace, DeltaOfAnotherPart) {
  StoreOnDisk::Part delta = deltas_.at(0);
  delta.header.previous = bases_.at(0).address == delta.header.previous ? bases_.at(1).address : bases_.at(0).address;
  EXPECT_TRUE(Found(With(delta), Damaged::kPage, {Concat("page ", delta.header.page.value), "not the next one"}));
}

TEST_F(WrongInPlace, Sibling) {
  StoreOnDisk::Part part = Base(0);
  StoreU32(part.payload.data() + kSiblingAt, LoadU32(part.payload.data() + kSiblingAt) + 1);
  EXPECT_TRUE(Found(With(part), Damaged::kPage, {Place(part), "as its right sibling"}));
}

// Every inner page in turn names other right siblings, of all sizes. A start refuses what the check finds, by the same
// place. An image that the newest checkpoint does not name is no reason to refuse it.
TEST(VerifyTest, AWrongSiblingOfAnInnerPageIsFoundAndRefusedByAStart) {
  StoreOnDisk store;
  store.Fill(600);
  const auto contents = ReadContents(store.storage(), StoreOnDisk::PathOf("pages"), CheckpointNumber(4),
                                     StoreOnDisk::kDc, WithImages::kYes);
  ASSERT_TRUE(contents.ok());
  Random random(3);
  uint64_t refused = 0;
  for (const StoreOnDisk::Part& right : store.Parts()) {
    if (right.header.level == 0) continue;
    const bool live = right.header.table == StoreOnDisk::kAccounts || right.header.table == StoreOnDisk::kOrders;
    const auto place = contents->images.Find(right.header.page);
    const bool named =
        live && place.has_value() && std::ranges::count(contents->images.parts(*place), right.address) != 0;
    for (const uint32_t bits : {1u, 1u << (1 + random.Below(31)), UINT32_MAX}) {
      StoreOnDisk::Part part = right;
      StoreU32(part.payload.data() + kSiblingAt, LoadU32(part.payload.data() + kSiblingAt) ^ bits);
      store.Put(part);
      const Status started = store.TryStart();
      const VerifyReport report = Verified(store);
      if (!named) {
        EXPECT_TRUE(started.ok()) << started.ToString();
        continue;
      }
      EXPECT_EQ(started, ErrorCode::kCorruption) << Place(part) << " bits " << bits;
      EXPECT_TRUE(Has(started.message(), Place(part))) << started.ToString();
      EXPECT_TRUE(Found(report, Damaged::kPage, {Place(part)})) << started.ToString() << "\n" << ReportText(report);
      ++refused;
    }
    store.Put(right);
  }
  EXPECT_GT(refused, 15u);
  EXPECT_TRUE(store.TryStart().ok());
  EXPECT_TRUE(Verified(store).clean());
}

TEST_F(WrongInPlace, ChildrenExchanged) {
  StoreOnDisk::Part part = Base(1);
  const size_t first = ChildAt(part.payload, 1), second = ChildAt(part.payload, 2);
  const uint32_t child = LoadU32(part.payload.data() + first);
  StoreU32(part.payload.data() + first, LoadU32(part.payload.data() + second));
  StoreU32(part.payload.data() + second, child);
  const VerifyReport report = With(part);
  EXPECT_TRUE(Found(report, Damaged::kPage, {"its bounds are not those that its parent says"})) << ReportText(report);
}

TEST_F(WrongInPlace, AChildTwice) {
  StoreOnDisk::Part part = Base(1);
  StoreU32(part.payload.data() + ChildAt(part.payload, 2), LoadU32(part.payload.data() + ChildAt(part.payload, 1)));
  const VerifyReport report = With(part);
  EXPECT_TRUE(Found(report, Damaged::kPage, {"was named by another one"})) << ReportText(report);
  EXPECT_GT(report.checkpoints[0].unreached_pages, 0u);
}

TEST_F(WrongInPlace, AChildWithoutAnImage) {
  StoreOnDisk::Part part = Base(1);
  StoreU32(part.payload.data() + ChildAt(part.payload, 1), 999999);
  EXPECT_TRUE(Found(With(part), Damaged::kPage, {"page 999999", "has no image in the checkpoint"}));
}

TEST_F(WrongInPlace, AnInnerPageThatNamesItself) {
  StoreOnDisk::Part part = Base(2, 0);
  StoreU32(part.payload.data() + ChildAt(part.payload, 1), part.header.page.value);
  EXPECT_TRUE(Found(With(part), Damaged::kPage, {"was named by another one"}));
}

TEST_F(WrongInPlace, KeysOutOfOrder) {
  StoreOnDisk::Part part = Base(0);
  const size_t first = 36 + LoadU32(part.payload.data() + 20) + LoadU32(part.payload.data() + 24) +
                       4 * LoadU32(part.payload.data() + 32) + 18;
  part.payload[first + 9] = 'z';
  EXPECT_TRUE(Found(With(part), Damaged::kPage, {Concat("page ", part.header.page.value)}));
}

// Parts with a right checksum around wrong payloads, so that the code behind the checksum is reached.
TEST_F(WrongInPlace, AnyPayload) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    const std::vector<StoreOnDisk::Part>& from = round % 3 == 0 ? deltas_ : bases_;
    const StoreOnDisk::Part& right = from[random.Below(from.size())];
    StoreOnDisk::Part part = right;
    const uint64_t header = std::min<uint64_t>(part.payload.size(), 60);
    const uint64_t at = random.Below(random.Below(2) == 0 ? header : part.payload.size());
    part.payload[at] = static_cast<char>(random.Next());
    store_.Put(part);
    (void)Verified(store_);
    store_.Put(right);
  }
  EXPECT_TRUE(Verified(store_).clean());
}

}  // namespace
}  // namespace deut::dc
