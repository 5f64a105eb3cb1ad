#include "dc/bwtree/page_image.h"

#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/coding/fixed.h"
#include "dc/bwtree/leaf_view.h"

namespace deut::dc {
namespace {

constexpr size_t kBaseHeaderBytes = 36;
constexpr size_t kDeltaHeaderBytes = 4;
constexpr size_t kRecordBytes = 19;
constexpr uint8_t kMaxLevel = 63;
enum RecordKind : uint8_t { kPutRecord = 1, kTombstoneRecord = 2 };

Status Bad(std::string_view what) { return DEUT_ERROR(kCorruption, "page image: ", what); }

// Reads numbers and strings from the front. After the first one that is missing, every further read fails.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Read() {
    T value{};
    const std::string_view bytes = ReadBytes(sizeof(T));
    if (ok_) value = LoadFixed<T>(bytes.data());
    return value;
  }
  std::string_view ReadBytes(size_t bytes) {
    if (!ok_ || bytes > bytes_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = bytes_.substr(0, bytes);
    bytes_.remove_prefix(bytes);
    return taken;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

void PutRecord(const PageEntry& record, std::string* out) {
  out->push_back(static_cast<char>(record.tombstone ? kTombstoneRecord : kPutRecord));
  AppendU16(out, record.key_bytes);
  AppendU32(out, record.value_bytes);
  AppendU64(out, record.version.timestamp.value);
  AppendU32(out, record.version.sequence);
  out->append(record.key());
  out->append(record.value());
}

}  // namespace

void EncodeBaseImage(const BasePage& page, std::string* out) {
  DEUT_CHECK(!page.stub());
  const uint32_t count = page.count();
  const Fence& fence = *page.fence;
  // DecodeBaseImage refuses the opposite of each of these as damage.
  DEUT_CHECK(fence.sibling != kUnknownPage);
  DEUT_CHECK(!fence.bounded() || page.low() < fence.high_key());
  DEUT_CHECK(page.is_leaf() || count != 0);
  out->push_back(static_cast<char>(page.level));
  out->push_back(static_cast<char>(fence.bounded() ? 1 : 0));
  AppendU16(out, 0);
  AppendU32(out, count);
  AppendU64(out, page.flat().value);
  AppendU32(out, fence.sibling.value);
  AppendU32(out, static_cast<uint32_t>(page.low().size()));
  AppendU32(out, fence.high_bytes);
  AppendU32(out, static_cast<uint32_t>(page.run_bytes(0, count)));
  AppendU32(out, page.is_leaf() ? page.tombstones() : 0);
  out->append(page.low());
  out->append(fence.high_key());
  // The entries have the format of an answer, which has no tombstones. So their numbers are listed.
  if (page.is_leaf() && page.tombstones() != 0) {
    for (uint32_t i = 0; i < count; ++i) {
      if (page.tombstone(i)) AppendU32(out, i);
    }
  }
  out->append(page.run(0, count));
}

size_t BaseImageBytes(const BasePage& page) {
  const size_t tombstones = page.is_leaf() ? page.tombstones() : 0;
  return kBaseHeaderBytes + page.low().size() + page.fence->high_bytes + tombstones * sizeof(uint32_t) +
         page.run_bytes(0, page.count());
}

namespace {

Status DecodeEntries(Reader* entries, uint8_t level, uint32_t count, const std::vector<uint32_t>& tombstones,
                     const BasePage::Bounds& bounds, bool bounded, BasePage::Content* content) {
  size_t next_tombstone = 0;
  std::string_view last;
  for (uint32_t i = 0; i < count; ++i) {
    PageEntry entry;
    entry.key_bytes = entries->Read<uint16_t>();
    if (level == 0) {
      entry.value_bytes = entries->Read<uint32_t>();
      entry.version.timestamp = Timestamp(entries->Read<uint64_t>());
      entry.version.sequence = entries->Read<uint32_t>();
      entry.tombstone = next_tombstone < tombstones.size() && tombstones[next_tombstone] == i;
      next_tombstone += entry.tombstone ? 1 : 0;
    } else {
      entry.child = PageId(entries->Read<uint32_t>());
    }
    const std::string_view data = entries->ReadBytes(size_t{entry.key_bytes} + entry.value_bytes);
    if (!entries->ok()) return Bad("the entries are cut off");
    entry.data = data.data();
    const std::string_view key = entry.key();
    if (key.size() > kMaxKeyBytes || entry.value_bytes > kMaxValueBytes) return Bad("an entry is too long");
    if (level == 0 && key.empty()) return Bad("a record has no key");
    if (level == 0 && entry.tombstone && entry.value_bytes != 0) return Bad("a tombstone has a value");
    if (level != 0 && (entry.child == kNoPage || entry.child == kUnknownPage)) return Bad("an entry names no page");
    if (i == 0 && level != 0 ? key != bounds.low : key < bounds.low) return Bad("a key lies below the page");
    if (i != 0 && key <= last) return Bad("the keys are not in order");
    if (bounded && key >= bounds.high) return Bad("a key lies above the page");
    last = key;
    content->Add(entry);
  }
  return next_tombstone == tombstones.size() ? Status::Ok() : Bad("a tombstone is no entry");
}

}  // namespace

Result<Owned<BasePage>> DecodeBaseImage(std::string_view image) {
  Reader reader(image);
  const auto level = reader.Read<uint8_t>();
  const auto flags = reader.Read<uint8_t>();
  const auto zero = reader.Read<uint16_t>();
  const auto count = reader.Read<uint32_t>();
  const Timestamp flat(reader.Read<uint64_t>());
  BasePage::Bounds bounds;
  bounds.sibling = PageId(reader.Read<uint32_t>());
  const auto low_bytes = reader.Read<uint32_t>();
  const auto high_bytes = reader.Read<uint32_t>();
  const auto entries_bytes = reader.Read<uint32_t>();
  const auto tombstone_count = reader.Read<uint32_t>();
  static_assert(kBaseHeaderBytes == 36);
  bounds.low = reader.ReadBytes(low_bytes);
  bounds.high = reader.ReadBytes(high_bytes);
  if (!reader.ok() || low_bytes > kMaxKeyBytes || high_bytes > kMaxKeyBytes) return Bad("the header is cut off");
  // Every length is checked against the remaining bytes before it is used, so no input makes the decoder read out of
  // bounds.
  const bool bounded = flags == 1;
  if (level > kMaxLevel || flags > 1 || zero != 0) return Bad("the header is not one of this format");
  if (bounded != (bounds.sibling != kNoPage) || bounded == bounds.high.empty() || bounds.sibling == kUnknownPage ||
      (bounded && bounds.high <= bounds.low)) {
    return Bad("the bounds contradict each other");
  }
  if (tombstone_count > count || (level != 0 && tombstone_count != 0)) return Bad("more tombstones than entries");
  if (level != 0 && count == 0) return Bad("an inner page without children");
  std::vector<uint32_t> tombstones;
  for (uint32_t i = 0; i < tombstone_count && reader.ok(); ++i) {
    tombstones.push_back(reader.Read<uint32_t>());
    if (i != 0 && tombstones[i] <= tombstones[i - 1]) return Bad("the tombstones are not in order");
  }
  Reader entries(reader.ReadBytes(entries_bytes));
  if (!reader.at_end()) return Bad("the length contradicts the header");
  BasePage::Content content;
  DEUT_RETURN_IF_ERROR(DecodeEntries(&entries, level, count, tombstones, bounds, bounded, &content));
  if (!entries.at_end()) return Bad("bytes follow the last entry");
  return BasePage::Build(level, bounds, flat, content);
}

uint32_t EncodeDeltaImage(const Node* head, StoredIn lacked_by, std::string* out) {
  DEUT_DCHECK(head->is_leaf());
  const size_t start = out->size();
  AppendU32(out, 0);
  uint32_t count = 0;
  LeafMerge merge(head, {}, {});
  const auto put_if_lacked = [&](const PageEntry& entry) {
    if (entry.stored_in < lacked_by) return;
    PutRecord(entry, out);
    ++count;
  };
  for (PageEntry entry;;) {
    size_t begin;
    size_t end;
    merge.NextRun(&begin, &end);
    // Most entries of most runs are in the image, so the offsets decide which ones are read at all.
    const BasePage& base = merge.base();
    for (size_t i = begin; i < end && merge.base_stored_in() >= lacked_by; ++i) {
      if (base.stored_in(i) >= lacked_by) put_if_lacked(base.record(i));
    }
    merge.SkipRun(end - begin);
    if (!merge.Next(&entry)) break;
    put_if_lacked(entry);
  }
  StoreU32(out->data() + start, count);
  return count;
}

Result<std::vector<Owned<RecordDelta>>> DecodeDeltaImage(std::string_view image) {
  Reader reader(image);
  const auto count = reader.Read<uint32_t>();
  if (!reader.ok() || count > (image.size() - kDeltaHeaderBytes) / kRecordBytes) return Bad("more updates than bytes");
  std::vector<Owned<RecordDelta>> deltas;
  deltas.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const auto kind = reader.Read<uint8_t>();
    const auto key_bytes = reader.Read<uint16_t>();
    const auto value_bytes = reader.Read<uint32_t>();
    Version version;
    version.timestamp = Timestamp(reader.Read<uint64_t>());
    version.sequence = reader.Read<uint32_t>();
    const std::string_view key = reader.ReadBytes(key_bytes);
    const std::string_view value = reader.ReadBytes(value_bytes);
    if (!reader.ok()) return Bad("an update is cut off");
    if (kind != kPutRecord && kind != kTombstoneRecord) return Bad("an update of an unknown kind");
    if (key.empty() || key.size() > kMaxKeyBytes || value.size() > kMaxValueBytes) return Bad("an update is too long");
    if (kind == kTombstoneRecord && !value.empty()) return Bad("a tombstone has a value");
    deltas.push_back(RecordDelta::New(kind == kPutRecord ? NodeKind::kPut : NodeKind::kTombstone, key, value, version));
  }
  if (!reader.at_end()) return Bad("bytes follow the last update");
  return deltas;
}

}  // namespace deut::dc
