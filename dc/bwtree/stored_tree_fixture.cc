#include "dc/bwtree/stored_tree_fixture.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/named_page.h"
#include "dc/bwtree/page_load.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_store/segment_format.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

constexpr DcId kDc{1};
const char* const kDirectory = "/pages";

Status LoadInto(BwTree& tree, SegmentStore& store, const Target& target) {
  PageLoad load;
  if (!tree.BeginLoad(target, &load)) return Status::Ok();
  DEUT_RETURN_IF_ERROR(load.ReadImage(store));
  return tree.FinishLoad(target, &load);
}

class Visitor final : public PageVisitor {
 public:
  explicit Visitor(const StoredTree::Visit& visit) : visit_(visit) {}
  void Visit(const VisitedPage& page) override { visit_(page); }

 private:
  const StoredTree::Visit& visit_;
};

}  // namespace

StoredTree::StoredTree(const BwTreeOptions& options)
    : options_(options), disk_(RealRuntime(), /*seed=*/1), storage_(disk_.Mount()) {
  store_ = std::move(*SegmentStore::Create(*storage_, RealRuntime(), kDirectory, kDc, SegmentStoreOptions()));
  pages_ = std::move(*MappingTable::Create(1 << 16));
  tree_ = std::move(*BwTree::Create(environment(), options_, kTable));
  NewFlusher();
}

void StoredTree::NewFlusher() { flusher_ = std::move(*PageFlusher::Create(environment(), *store_, *this)); }

StoredTree::~StoredTree() {
  testing::SetPointHandler({});
  testing::SetCasHandler({});
}

void StoredTree::Update(uint64_t number, const std::string_view* value) {
  const std::string key = KeyOf(number);
  ++now_;
  for (;;) {
    const auto outcome = value == nullptr ? tree_->Delete(key, V(now_)) : tree_->Put(key, *value, V(now_));
    DEUT_CHECK(outcome.ok());
    if (*outcome != BwTree::Outcome::kNotLoaded) return;
    ASSERT_TRUE(Load(Target(key, Side::kAt)).ok());
  }
}

void StoredTree::Put(uint64_t number, std::string_view value) {
  Update(number, &value);
  records_[KeyOf(number)] = value;
}

void StoredTree::Delete(uint64_t number) {
  Update(number, nullptr);
  records_.erase(KeyOf(number));
}

void StoredTree::Fill(uint64_t first, uint64_t last) {
  for (uint64_t i = first; i < last; ++i) Put(i, kValue);
}

void StoredTree::FillSettled(uint64_t last) {
  Fill(0, last);
  for (uint64_t before = UINT64_MAX; tree_->statistics().splits != before;) {
    before = tree_->statistics().splits;
    Fill(0, last);
  }
  Flush();
  Evict();
  for (uint64_t i = 0; i < last; ++i) ASSERT_TRUE(Load(i).ok());
}

Status StoredTree::Scan(BwTree& tree, Records* found) {
  ScanCursor cursor;
  while (!cursor.complete) {
    RecordBatch batch;
    ScanBudget budget;
    if (!tree.ScanAscending(&cursor, &budget, &batch)) {
      const std::string low = cursor.low;
      DEUT_RETURN_IF_ERROR(LoadInto(tree, *store_, Target(low, Side::kAt)));
    }
    for (RecordBatch::Iterator it(batch); it.Valid(); it.Next())
      (*found)[std::string(it.record().key)] = it.record().value;
  }
  return Status::Ok();
}

void StoredTree::ExpectRight() {
  testing::SetPointHandler({});
  Records found;
  const Status scanned = Scan(*tree_, &found);
  ASSERT_TRUE(scanned.ok()) << scanned.ToString();
  EXPECT_EQ(found, records_);
  for (const auto& [key, value] : records_) {
    ASSERT_TRUE(Load(Target(key, Side::kAt)).ok());
    RecordBatch batch;
    ASSERT_EQ(tree_->Read(key, &batch), BwTree::Found::kYes) << key;
    ASSERT_EQ(RecordBatch::Iterator(batch).record().value, value) << key;
  }
}

void StoredTree::Walk(uint8_t level, const Visit& visit, const PageBits* only) {
  Visitor visitor(visit);
  BwTree::Walk walk;
  while (!walk.complete) tree_->VisitPages(level, &walk, &visitor, only);
}

std::vector<PageId> StoredTree::Pages(uint8_t level) {
  std::vector<PageId> pages;
  Walk(level, [&](const VisitedPage& page) { pages.push_back(page.id); });
  return pages;
}

PageId StoredTree::LeafOf(uint64_t number) {
  const std::string key = KeyOf(number);
  PageId leaf;
  Walk(0, [&](const VisitedPage& page) {
    if (!page.bounded || key < page.high) leaf = page.id;
  });
  return leaf;
}

const Node* StoredTree::HeadOf(PageId id) {
  const ReclamationDomain::Guard guard(domain_);
  return pages_->Load(id);
}

ImageParts StoredTree::ImageOf(PageId id) {
  const ReclamationDomain::Guard guard(domain_);
  return pages_->Image(id);
}

StoredTree::Images StoredTree::AllImages() {
  Images images;
  for (uint32_t id = 1; id <= pages_->last_id(); ++id) {
    const ImageParts parts = ImageOf(PageId(id));
    if (!parts.empty()) images[PageId(id)] = parts;
  }
  return images;
}

Result<PageFlusher::Added> StoredTree::Add(PageFlusher& flusher, PageId id) {
  const ReclamationDomain::Guard guard(domain_);
  return flusher.Add(*tree_, id);
}

void StoredTree::Flush(PageId id) {
  const auto added = Add(id);
  ASSERT_TRUE(added.ok()) << added.status().ToString();
  ASSERT_EQ(*added, PageFlusher::Added::kAdded);
  const Status written = flusher_->Write();
  ASSERT_TRUE(written.ok()) << written.ToString();
}

void StoredTree::Flush(bool leaves_only) {
  for (int level = 0; level <= (leaves_only ? 0 : tree_->root_level()); ++level) {
    Walk(static_cast<uint8_t>(level), [this](const VisitedPage& page) { flusher_->Add(*tree_, page.id); });
    ASSERT_TRUE(flusher_->Write().ok());
  }
}

int StoredTree::Evict() {
  int evicted = 0;
  Walk(0, [&](const VisitedPage& page) { evicted += tree_->Evict(page) ? 1 : 0; });
  return evicted;
}

bool StoredTree::Evict(PageId leaf) {
  bool evicted = false;
  Walk(0, [&](const VisitedPage& page) {
    if (page.id == leaf) evicted = tree_->Evict(page);
  });
  return evicted;
}

Status StoredTree::Load(const Target& target) { return LoadInto(*tree_, *store_, target); }

Status StoredTree::Load(uint64_t number) {
  const std::string key = KeyOf(number);
  return Load(Target(key, Side::kAt));
}

Status StoredTree::Restore(const Images& images, Records* found, const std::function<void(BwTree&)>& then) {
  ReclamationDomain domain;
  const auto pages = std::move(*MappingTable::Create(1 << 16));
  for (const auto& [id, parts] : images) pages->Restore(id, parts);
  // The images still belong to the tree that has written them.
  const BwTreeEnvironment restored{*pages, domain, consolidation_, nullptr, /*images=*/nullptr};
  const std::unique_ptr<BwTree> tree = BwTree::Restore(restored, options_, kTable, tree_->root());
  BwTree::NamedPages level;
  level.inner.push_back(NamedRoot(tree->root()));
  while (!level.inner.empty()) {
    BwTree::NamedPages below;
    for (const NamedPage& page : level.inner) {
      DEUT_RETURN_IF_ERROR(tree->RestorePage(page, *store_, &below));
    }
    for (size_t i = 0; i < level.inner.size(); ++i) {
      const PageId next = i + 1 == level.inner.size() ? kNoPage : level.inner[i + 1].id;
      DEUT_RETURN_IF_ERROR(tree->CheckSibling(level.inner[i].id, next));
    }
    level = std::move(below);
  }
  pages->RestoreFree(pages_->last_id());
  if (then) then(*tree);
  return Scan(*tree, found);
}

void StoredTree::FlipBit(const ImageParts& image, size_t part, uint64_t at, int bit) {
  const PageAddress address = image[part];
  const SegmentKind kind = part + 1 == image.count() ? SegmentKind::kBase : SegmentKind::kDelta;
  const std::string path = Concat(kDirectory, "/", SegmentName(kind, address.segment()));
  ASSERT_TRUE(disk_.FlipBit(path, address.offset() + at, bit).ok());
}

PageAddress StoredTree::Append(const PartHeader& header, std::string_view payload) {
  const auto appender = store_->NewAppender(header.kind == PartKind::kBase ? SegmentKind::kBase : SegmentKind::kDelta);
  DEUT_CHECK(appender.ok());
  const auto address = (*appender)->Append(header, payload);
  DEUT_CHECK(address.ok() && (*appender)->Write().ok());
  return *address;
}

void StoredTree::SetImage(PageId id, const ImageParts& parts) {
  const ReclamationDomain::Guard guard(domain_);
  ASSERT_TRUE(pages_->ClaimImage(id));
  ASSERT_TRUE(pages_->SetImage(id, parts, domain_));
  pages_->ReleaseImage(id);
}

uint64_t StoredTree::BytesOfImages() {
  uint64_t bytes = 0;
  for (const auto& [id, parts] : AllImages()) {
    for (const PageAddress part : parts.all()) bytes += part.length_bound();
  }
  return bytes;
}

void StoredTree::AtPoint(std::string name, std::function<void()> then) {
  auto done = std::make_shared<std::atomic<bool>>(false);
  testing::SetPointHandler([name = std::move(name), then = std::move(then), done](std::string_view at) {
    if (at != name || done->exchange(true)) return;
    RealRuntime().StartThread("other", then)->Join();
  });
}

}  // namespace deut::dc
