#include "dc/bwtree/mapping_table.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/node.h"
#include "dc/bwtree/page_bits.h"
#include "dc/page_store/page_address.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

TEST(PageWordTest, KindsDoNotOverlap) {
  const Node node;
  EXPECT_FALSE(PageWord().on_storage());
  EXPECT_FALSE(PageWord::Memory(&node).on_storage());
  EXPECT_EQ(PageWord::Memory(&node).head(), &node);
  for (uint32_t next : {0u, 1u, 77u, UINT32_MAX}) {
    EXPECT_FALSE(PageWord::Free(PageId(next)).on_storage());
    EXPECT_EQ(PageWord::Free(PageId(next)).next_free(), PageId(next));
  }
  const PageAddress address = PageAddress::Make(PageAddress::kMaxSegment, PageAddress::kMaxOffset - 128, 40);
  EXPECT_TRUE(PageWord::Storage(address).on_storage());
  EXPECT_EQ(PageWord::Storage(address).head(), nullptr);
  EXPECT_EQ(PageWord::Storage(address).address(), address);
}

TEST(MappingTableTest, ReplacesOnlyWhatWasExpected) {
  auto table = MappingTable::Create(4);
  ASSERT_TRUE(table.ok());
  ReclamationDomain domain;
  const ReclamationDomain::Guard guard(domain);
  const Node first;
  const Node second;
  const PageId id = (*table)->Allocate(&first);
  ASSERT_NE(id, kNoPage);
  EXPECT_EQ((*table)->Load(id), &first);
  EXPECT_FALSE((*table)->Replace(id, &second, &second));
  EXPECT_EQ((*table)->Load(id), &first);
  EXPECT_TRUE((*table)->Replace(id, &first, &second));
  EXPECT_EQ((*table)->Load(id), &second);
}

TEST(MappingTableTest, StopsAtItsLimitAndGoesOnWithFreedIds) {
  constexpr uint32_t kCapacity = 100;
  auto table = std::move(*MappingTable::Create(kCapacity));
  ReclamationDomain domain;
  const Node node;
  std::set<uint32_t> ids;
  {
    const ReclamationDomain::Guard guard(domain);
    for (uint32_t i = 0; i < kCapacity; ++i) ids.insert(table->Allocate(&node).value);
    EXPECT_EQ(ids.size(), kCapacity);
    EXPECT_EQ(ids.count(0), 0u);
    EXPECT_EQ(table->used(), kCapacity);
    EXPECT_EQ(table->Allocate(&node), kNoPage);
    for (uint32_t i = 1; i <= 10; ++i) table->Free(PageId(i), domain);
    // The id is not reused before every guard of that time has ended.
    EXPECT_EQ(table->Allocate(&node), kNoPage);
  }
  domain.Collect();
  EXPECT_EQ(table->used(), kCapacity - 10);
  const ReclamationDomain::Guard guard(domain);
  std::set<uint32_t> again;
  for (int i = 0; i < 10; ++i) again.insert(table->Allocate(&node).value);
  EXPECT_EQ(again, (std::set<uint32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(table->Allocate(&node), kNoPage);
}

TEST(MappingTableTest, AFreedIdComesBackOnlyWhenNoGuardSeesIt) {
  auto table = std::move(*MappingTable::Create(10));
  ReclamationDomain domain;
  const Node node;
  const ReclamationDomain::Guard guard(domain);
  const PageId id = table->Allocate(&node);
  table->Free(id, domain);
  EXPECT_NE(table->Allocate(&node), id);
}

TEST(MappingTableTest, AnIdThatComesBackHasNoMarksOfItsFormerPage) {
  auto table = std::move(*MappingTable::Create(10));
  ReclamationDomain domain;
  const Node node;
  PageId id;
  {
    const ReclamationDomain::Guard guard(domain);
    id = table->Allocate(&node);
    table->MarkLoaded(id, /*transient=*/true);
    table->SetSparse(id);
    table->NoteLarge(id, true);
    table->NoteRead(id, true);
    table->Free(id, domain);
  }
  domain.Collect();
  const ReclamationDomain::Guard guard(domain);
  ASSERT_EQ(table->Allocate(&node), id);
  EXPECT_FALSE(table->used(id));
  EXPECT_FALSE(table->transient(id));
  EXPECT_FALSE(table->sparse(id));
  EXPECT_FALSE(table->large(id));
  EXPECT_FALSE(table->read(id));
}

TEST(MappingTableTest, AFreedIdComesBackOnlyAfterACheckpoint) {
  auto table = std::move(*MappingTable::Create(10));
  table->KeepFreedIds();
  ReclamationDomain domain;
  const Node node;
  PageId id;
  {
    const ReclamationDomain::Guard guard(domain);
    id = table->Allocate(&node);
    table->Free(id, domain);
  }
  domain.Collect();
  const ReclamationDomain::Guard guard(domain);
  EXPECT_NE(table->Allocate(&node), id);
  // One checkpoint that failed, and one that completed.
  table->ReturnLimboIds(table->TakeLimboIds());
  EXPECT_NE(table->Allocate(&node), id);
  table->ReuseLimboIds(table->TakeLimboIds());
  EXPECT_EQ(table->Allocate(&node), id);
}

// A checkpoint reads the images of all ids, also of pages that are freed at that moment (ASan detects it if the list
// is gone).
TEST(MappingTableTest, AnImageMayBeLookedAtWhileItsPageIsFreed) {
  auto table = std::move(*MappingTable::Create(4));
  ReclamationDomain domain;
  const Node node;
  PageId id;
  const PageAddress older = PageAddress::Make(1, 0, 128);
  const PageAddress newer = PageAddress::Make(1, 128, 128);
  {
    const ReclamationDomain::Guard guard(domain);
    id = table->Allocate(&node);
    ImageParts parts(newer);
    parts.Append(older);
    ASSERT_TRUE(table->ClaimImage(id));
    ASSERT_TRUE(table->SetImage(id, parts, domain));
    table->ReleaseImage(id);
  }
  ImageParts taken;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "mapping_table.image.before_list") return;
    ASSERT_TRUE(table->TakeImage(id, &taken, domain));
    for (int i = 0; i < 4; ++i) domain.Collect();
  });
  {
    const ReclamationDomain::Guard guard(domain);
    const ImageParts seen = table->Image(id);
    ASSERT_EQ(seen.count(), 2u);
    EXPECT_EQ(seen[0], newer);
    EXPECT_EQ(seen[1], older);
  }
  testing::SetPointHandler(nullptr);
  EXPECT_EQ(taken.count(), 2u);
}

TEST(MappingTableTest, RefusesATableThatDoesNotFit) {
  EXPECT_EQ(MappingTable::Create(0).status(), ErrorCode::kInvalidArgument);
}

// Threads allocate and free ids; no id is ever held by two threads at once.
TEST(MappingTableTest, AnIdHasOneOwnerUnderContention) {
  constexpr uint32_t kCapacity = 64;
  constexpr uint64_t kTaken = uint64_t{100} * kCapacity;
  auto table = std::move(*MappingTable::Create(kCapacity));
  ReclamationDomain domain;
  std::vector<std::atomic<int>> owners(kCapacity + 1);
  std::atomic<uint64_t> taken{0};
  const Node node;
  const auto body = [&](uint64_t seed) {
    Random random(seed);
    std::vector<PageId> mine;
    while (taken.load() < kTaken) {
      // Freed ids are reused only after this call, and when no older guard is left.
      if (random.OneIn(16)) domain.Collect();
      const ReclamationDomain::Guard guard(domain);
      if (mine.empty() || (mine.size() < 12 && random.OneIn(2))) {
        const PageId id = table->Allocate(&node);
        if (id == kNoPage) continue;
        taken.fetch_add(1);
        ASSERT_EQ(owners[id.value].fetch_add(1), 0);
        mine.push_back(id);
      } else {
        ASSERT_EQ(owners[mine.back().value].fetch_sub(1), 1);
        table->Free(mine.back(), domain);
        mine.pop_back();
      }
    }
  };
  std::vector<std::unique_ptr<Thread>> threads;
  for (uint64_t i = 0; i < 4; ++i) threads.push_back(RealRuntime().StartThread("ids", [&body, i] { body(i); }));
  threads.clear();
  EXPECT_GE(taken.load(), kTaken);
}

// A recovery that fails halfway frees the images that it has restored so far (the address sanitizer checks it).
TEST(MappingTableTest, ARecoveryThatIsGivenUpLeavesNothing) {
  auto table = MappingTable::Create(100);
  ASSERT_TRUE(table.ok());
  ImageParts parts(PageAddress::Make(2, 4096, 100));
  parts.Append(PageAddress::Make(1, 4096, 100));
  (*table)->Restore(PageId(7), parts);
  EXPECT_EQ((*table)->last_id(), 7u);
}

// A checkpoint may name it twice.
TEST(MappingTableTest, AnIdIsRestoredOnce) {
  const auto table = std::move(*MappingTable::Create(100));
  ImageParts parts(PageAddress::Make(2, 4096, 100));
  parts.Append(PageAddress::Make(1, 4096, 100));
  const ImageParts other(PageAddress::Make(3, 4096, 100));
  EXPECT_TRUE(table->Restore(PageId(7), parts));
  EXPECT_FALSE(table->Restore(PageId(7), other));
  EXPECT_FALSE(table->Restore(PageId(7), parts));
  EXPECT_TRUE(table->Restore(PageId(8), other));
  ReclamationDomain domain;
  const ReclamationDomain::Guard guard(domain);
  EXPECT_EQ(table->Image(PageId(7)).newest(), parts.newest());
  EXPECT_EQ(table->Image(PageId(7)).count(), 2u);
}

// Ranges with free ids at their ends, in the middle, everywhere, and nowhere.
TEST(MappingTableTest, IdsThatWereNotRestoredAreFreeInTheirOrder) {
  constexpr uint64_t kLast = 500, kRange = 100;
  const auto is_live = [](uint64_t id) {
    return (id > 1 && id <= 60) || (id > 101 && id < 200) || (id > 300 && id <= 400);
  };
  for (const uint64_t range : {kRange, uint64_t{1}, kLast}) {
    const auto table = std::move(*MappingTable::Create(1000));
    uint64_t live = 0;
    for (uint32_t id = 1; id <= kLast; ++id) {
      if (!is_live(id)) continue;
      ++live;
      table->Restore(PageId(id), ImageParts(PageAddress::Make(1, 4096, 100)));
    }
    std::vector<MappingTable::FreeIds> ranges;
    for (uint64_t first = 1; first <= kLast; first += range) {
      ranges.push_back(table->LinkUnused(first, std::min(first + range, kLast + 1)));
    }
    table->RestoreFree(kLast, ranges);
    EXPECT_EQ(table->used(), live);
    EXPECT_EQ(table->last_id(), kLast);
    ReclamationDomain domain;
    const ReclamationDomain::Guard guard(domain);
    const Node node;
    for (uint32_t id = 1; id <= kLast; ++id) {
      if (!is_live(id)) ASSERT_EQ(table->Allocate(&node), PageId(id));
    }
    EXPECT_EQ(table->used(), kLast);
    EXPECT_EQ(table->Allocate(&node), PageId(kLast + 1));
  }
}

TEST(MappingTableTest, SaysHowMuchMemoryItTakes) {
  auto created = MappingTable::Create(100);
  ASSERT_TRUE(created.ok());
  MappingTable& table = **created;
  ReclamationDomain domain;
  const ReclamationDomain::Guard guard(domain);
  const Node node;
  EXPECT_EQ(table.memory_bytes(), 0u);
  const PageId id = table.Allocate(&node);
  EXPECT_EQ(table.memory_bytes(), MappingTable::kBytesPerId);
  const ImageParts one(PageAddress::Make(1, 4096, 100));
  ImageParts two(PageAddress::Make(2, 4096, 100));
  two.Append(one.newest());
  ASSERT_TRUE(table.ClaimImage(id));
  ASSERT_TRUE(table.SetImage(id, one, domain));
  EXPECT_EQ(table.memory_bytes(), MappingTable::kBytesPerId);
  ASSERT_TRUE(table.SetImage(id, two, domain));
  EXPECT_EQ(table.memory_bytes(), MappingTable::kBytesPerId + sizeof(ImageParts));
  EXPECT_EQ(table.list_bytes(), sizeof(ImageParts));
  table.ReleaseImage(id);
  ASSERT_TRUE(table.ReplaceImage(id, two.newest(), one, domain));
  EXPECT_EQ(table.memory_bytes(), MappingTable::kBytesPerId);
  EXPECT_EQ(domain.pending_bytes(), sizeof(ImageParts));
  ASSERT_TRUE(table.ReplaceImage(id, one.newest(), two, domain));
  ImageParts taken;
  ASSERT_TRUE(table.TakeImage(id, &taken, domain));
  EXPECT_EQ(table.memory_bytes(), MappingTable::kBytesPerId);
  EXPECT_EQ(domain.pending_bytes(), 2 * sizeof(ImageParts));
}

// Appends the ids of a word of marks.
void AppendIds(uint64_t word, uint64_t marks, std::vector<PageId>* ids) {
  for (uint32_t bit = 0; bit < MappingTable::kMarksPerWord; ++bit) {
    if ((marks >> bit & 1) != 0) ids->emplace_back(static_cast<uint32_t>(word * MappingTable::kMarksPerWord + bit));
  }
}

// The ids whose marks a checkpoint takes now.
std::vector<PageId> Changed(MappingTable& table) {
  std::vector<PageId> ids;
  table.TakeChanged([&](uint64_t word, uint64_t marks) { AppendIds(word, marks, &ids); });
  return ids;
}

TEST(MappingTableTest, PagesInMemoryAreNeitherOnStorageNorFreeNorNew) {
  const auto table = std::move(*MappingTable::Create(300));
  table->KeepFreedIds();
  ReclamationDomain domain;
  const Node node;
  std::vector<PageId> expected;
  {
    const ReclamationDomain::Guard guard(domain);
    for (uint32_t i = 1; i <= 200; ++i) {
      const PageId id = table->Allocate(&node);
      if (i % 3 == 0) {
        ASSERT_TRUE(table->Replace(id, PageWord::Memory(&node), PageWord::Storage(PageAddress::Make(1, 4096, 100))));
      } else if (i % 5 == 0) {
        table->FreeUnseen(id);
      } else {
        expected.push_back(id);
      }
    }
  }
  const PageBits found = PagesInMemory(*table);
  std::vector<PageId> ids;
  for (uint32_t id = 0; id < 400; ++id) {
    if (found.Contains(PageId(id))) ids.emplace_back(id);
  }
  EXPECT_EQ(ids, expected);
  EXPECT_EQ(found.Count(), expected.size());
}

TEST(MappingTableTest, DirtyPagesAreMarkedUntilTheMarksAreTaken) {
  const auto table = std::move(*MappingTable::Create(200));
  ReclamationDomain domain;
  const Node node;
  const ReclamationDomain::Guard guard(domain);
  for (int i = 0; i < 150; ++i) ASSERT_NE(table->Allocate(&node), kNoPage);
  const auto dirty = [&] {
    std::vector<PageId> ids;
    table->TakeDirty([&](uint64_t word, uint64_t marks) { AppendIds(word, marks, &ids); });
    return ids;
  };
  EXPECT_TRUE(dirty().empty());
  for (const uint32_t id : {150, 63, 64, 63, 1}) table->MarkDirty(PageId(id));
  EXPECT_TRUE(Changed(*table).empty());  // the marks of changed images are others
  EXPECT_EQ(dirty(), (std::vector<PageId>{PageId(1), PageId(63), PageId(64), PageId(150)}));
  EXPECT_TRUE(dirty().empty());
  table->MarkDirty(PageId(63));
  EXPECT_EQ(dirty(), std::vector<PageId>{PageId(63)});
}

// Every way in which an image changes: `change(i)` is the i-th.
class ChangedImageTest : public ::testing::Test {
 protected:
  static constexpr int kWays = 3;
  ChangedImageTest() : table_(std::move(*MappingTable::Create(200))) {
    const ReclamationDomain::Guard guard(domain_);
    for (int i = 0; i < 150; ++i) id_ = table_->Allocate(&node_);
  }
  ~ChangedImageTest() override { testing::SetPointHandler(nullptr); }

  void Change(int way) {
    const ReclamationDomain::Guard guard(domain_);
    const PageAddress first = PageAddress::Make(1, 4096, 100);
    if (way == 0) {
      ASSERT_TRUE(table_->ClaimImage(id_));
      ASSERT_TRUE(table_->SetImage(id_, ImageParts(first), domain_));
      table_->ReleaseImage(id_);
    } else if (way == 1) {
      ASSERT_TRUE(table_->ReplaceImage(id_, first, ImageParts(PageAddress::Make(2, 4096, 100)), domain_));
    } else {
      ImageParts taken;
      ASSERT_TRUE(table_->TakeImage(id_, &taken, domain_));
    }
  }

  const Node node_;
  ReclamationDomain domain_;
  const std::unique_ptr<MappingTable> table_;
  PageId id_;
};

TEST_F(ChangedImageTest, EachChangeMarksItsIdUntilTheMarksAreTaken) {
  EXPECT_TRUE(Changed(*table_).empty());
  for (int way = 0; way < kWays; ++way) {
    Change(way);
    EXPECT_EQ(Changed(*table_), std::vector<PageId>{id_}) << way;
    EXPECT_TRUE(Changed(*table_).empty()) << way;
  }
  table_->MarkChanged(PageId(3));
  EXPECT_EQ(Changed(*table_), std::vector<PageId>{PageId(3)});
}

// A checkpoint takes the marks just before the image is exchanged, and so reads the older image.
TEST_F(ChangedImageTest, AChangeBehindACheckpointIsLeftForTheNextOne) {
  for (const std::string_view before :
       {"mapping_table.set_image.before_cas", "mapping_table.replace_image.before_cas"}) {
    bool taken = false;
    testing::SetPointHandler([&](std::string_view point) {
      if (point != before) return;
      taken = true;
      (void)Changed(*table_);
    });
    Change(before == "mapping_table.set_image.before_cas" ? 0 : 1);
    testing::SetPointHandler(nullptr);
    EXPECT_TRUE(taken);
    EXPECT_EQ(Changed(*table_), std::vector<PageId>{id_}) << before;
  }
}

// A thread stops between its exchange and its second mark; the image is there already.
TEST_F(ChangedImageTest, ACheckpointFindsAnImageWhoseThreadHasStopped) {
  for (int way = 0; way < kWays; ++way) {
    std::vector<PageId> found;
    testing::SetPointHandler([&](std::string_view point) {
      if (point == "mapping_table.image.before_mark") found = Changed(*table_);
    });
    Change(way);
    testing::SetPointHandler(nullptr);
    EXPECT_EQ(found, std::vector<PageId>{id_}) << way;
  }
}

}  // namespace
}  // namespace deut::dc
