#include "dc/bwtree/stored_marks_check.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/ids.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/leaf_view.h"
#include "dc/bwtree/page_image.h"
#include "dc/bwtree/page_state.h"
#include "dc/page_store/part_buffer.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

struct Entry {
  Version version;
  bool tombstone = false;
  std::string value;
  friend bool operator==(const Entry&, const Entry&) = default;
};

Entry EntryOf(const PageEntry& entry) { return {entry.version, entry.tombstone, std::string(entry.value())}; }

struct Content {
  Timestamp flat;
  std::map<std::string, Entry> records;  // also tombstones

  // By the rules X1 and X2.
  void Apply(std::string_view key, const Entry& entry) {
    if (entry.version.timestamp <= flat) return;
    const auto [at, is_new] = records.try_emplace(std::string(key), entry);
    if (!is_new && entry.version > at->second.version) at->second = entry;
  }
  // True if the content says without this entry, too, that the record is gone.
  bool Implies(const Entry& entry) const { return entry.tombstone && entry.version.timestamp <= flat; }
};

void ExpectSame(const Content& written, const Content& page, std::string_view what) {
  for (const auto& [key, entry] : page.records) {
    const auto at = written.records.find(key);
    if (at == written.records.end()) {
      EXPECT_TRUE(written.Implies(entry)) << what << ": " << key << " is missing";
    } else {
      EXPECT_TRUE(at->second == entry) << what << ": " << key << " is another version";
    }
  }
  for (const auto& [key, entry] : written.records) {
    if (!page.records.contains(key)) EXPECT_TRUE(page.Implies(entry)) << what << ": " << key << " comes back";
  }
}

// The content of an image.
struct Stored {
  Owned<BasePage> page;
  Content base;
  Content image;
};

void ReadStored(StoredTree& t, PageId leaf, const ImageParts& parts, Stored* stored) {
  PartBuffer buffer;
  ASSERT_TRUE(t.store().Read(parts[parts.count() - 1], leaf, &buffer).ok());
  auto page = DecodeBaseImage(buffer.part().payload);
  ASSERT_TRUE(page.ok()) << page.status().ToString();
  stored->page = std::move(*page);
  stored->base.flat = stored->page->flat();
  for (size_t i = 0; i < stored->page->count(); ++i) {
    const PageEntry record = stored->page->record(i);
    stored->base.records.emplace(record.key(), EntryOf(record));
  }
  stored->image = stored->base;
  for (const PageAddress part : parts.all().first(parts.count() - 1)) {
    ASSERT_TRUE(t.store().Read(part, leaf, &buffer).ok());
    const auto deltas = DecodeDeltaImage(buffer.part().payload);
    ASSERT_TRUE(deltas.ok()) << deltas.status().ToString();
    for (const Owned<RecordDelta>& delta : *deltas) {
      stored->image.Apply(delta->key(), {delta->version(), delta->tombstone(), std::string(delta->value())});
    }
  }
}

}  // namespace

void ExpectMarksRight(StoredTree& t, PageId leaf) {
  const ReclamationDomain::Guard guard(t.domain());
  const Node* const head = t.pages().Load(leaf);
  if (head == nullptr) return;
  SCOPED_TRACE(leaf.value);
  const ImageParts parts = t.pages().Image(leaf);
  const StoredIn removals = RemovalsOf(head);
  if (removals == StoredIn::kNoPart) {
    EXPECT_FALSE(IsClean(head));
    return;  // nothing else that the page says counts
  }
  ASSERT_FALSE(parts.empty());
  Stored stored;
  ASSERT_NO_FATAL_FAILURE(ReadStored(t, leaf, parts, &stored));
  EXPECT_EQ(stored.page->low(), head->base->low());
  EXPECT_EQ(stored.page->fence->bounded(), head->fence->bounded());
  EXPECT_EQ(stored.page->fence->high_key(), head->fence->high_key());

  // A stub stands for the content of the image.
  Content page;
  page.flat = head->base->flat();
  if (IsStub(head)) page = stored.image;
  Content appended = stored.image;
  Content replaced = stored.base;
  LeafMerge merge(head, {}, {});
  for (PageEntry record; merge.Next(&record);) {
    const Entry entry = EntryOf(record);
    if (IsStub(head)) {
      page.Apply(record.key(), entry);
    } else {
      page.records.emplace(record.key(), entry);
    }
    if (record.stored_in == StoredIn::kNoPart) appended.Apply(record.key(), entry);
    if (record.stored_in >= StoredIn::kDeltaPart) replaced.Apply(record.key(), entry);
    EXPECT_FALSE(IsClean(head) && record.stored_in == StoredIn::kNoPart) << record.key();
  }
  ExpectSame(appended, page, "a part that is appended");
  if (removals == StoredIn::kBasePart) ExpectSame(replaced, page, "a part that replaces others");
}

}  // namespace deut::dc
