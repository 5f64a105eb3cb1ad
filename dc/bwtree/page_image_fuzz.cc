// Fuzzes the image of a page with any bytes. The decoder refuses them with CORRUPTION, or returns a page that encodes
// to exactly these bytes. An accepted image must be usable: deltas are merged into a page, and a page finds all its
// keys.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/consolidate.h"
#include "dc/bwtree/named_page.h"
#include "dc/bwtree/node.h"
#include "dc/bwtree/page_image.h"

namespace deut::dc {
namespace {

void PlayBase(std::string_view bytes) {
  const auto page = DecodeBaseImage(bytes);
  if (!page.ok()) {
    DEUT_CHECK(page.status() == ErrorCode::kCorruption);
    return;
  }
  std::string again;
  EncodeBaseImage(**page, &again);
  DEUT_CHECK(again == bytes);
  const BasePage& image = **page;
  for (size_t i = 0; i < image.count(); ++i) {
    if (image.is_leaf()) {
      DEUT_CHECK(image.Find(image.key(i)) == i && image.record(i).key() == image.key(i));
    } else {
      const NamedPage child = NamedChild(image, i);
      DEUT_CHECK(child.id != PageId() && child.level + 1 == image.level);
      DEUT_CHECK(!child.bounded || child.low < child.high);
    }
  }
}

void PlayDelta(std::string_view bytes) {
  auto deltas = DecodeDeltaImage(bytes);
  if (!deltas.ok()) {
    DEUT_CHECK(deltas.status() == ErrorCode::kCorruption);
    return;
  }
  Owned<BasePage> base = BasePage::Build(/*level=*/0, {}, Timestamp(), {});
  base->SetStored(/*serial=*/0, StoredIn::kBasePart);
  const Node* head = base.get();
  for (size_t i = deltas->size(); i > 0; --i) {
    (*deltas)[i - 1]->LinkTo(head);
    head = (*deltas)[i - 1].get();
  }
  const Owned<BasePage> merged = BuildConsolidated(head, Timestamp());
  // The encoder writes one version of each key, in the order of keys. So its own bytes are reproduced exactly.
  std::string again;
  DEUT_CHECK(EncodeDeltaImage(head, StoredIn::kNoPart, &again) == merged->count());
  std::string third;
  DEUT_CHECK(EncodeDeltaImage(merged.get(), StoredIn::kNoPart, &third) == merged->count() && third == again);
  const auto decoded = DecodeDeltaImage(again);
  DEUT_CHECK(decoded.ok() && decoded->size() == merged->count());
  DEUT_CHECK(merged->count() <= deltas->size());
  for (const Owned<RecordDelta>& delta : *deltas) {
    // An update at or below the flat timestamp, 0 here, counts as applied (rule X1).
    DEUT_CHECK(delta->timestamp == Timestamp() || merged->Find(delta->key()) < merged->count());
  }
}

}  // namespace
}  // namespace deut::dc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 2 == 0) {
    deut::dc::PlayBase(bytes);
  } else {
    deut::dc::PlayDelta(bytes);
  }
  return 0;
}
