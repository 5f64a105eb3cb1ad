#include "dc/bwtree/mapping_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/check.h"
#include "common/sync/raise_to.h"
#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

struct FreedId {
  MappingTable* table;
  PageId id;
};

}  // namespace

Result<std::unique_ptr<MappingTable>> MappingTable::Create(uint32_t capacity) {
  if (capacity == 0) return DEUT_ERROR(kInvalidArgument, "mapping table: the capacity must be at least 1 page");
  // Untouched memory of the mapping reads as zero, which is the empty word.
  void* memory =
      ::mmap(nullptr, BytesFor(capacity), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return DEUT_ERROR(kResourceExhausted, "mapping table: cannot reserve ", BytesFor(capacity),
                      " bytes of address space for ", capacity, " pages: ", std::strerror(errno));
  }
  return std::unique_ptr<MappingTable>(new MappingTable(memory, capacity));
}

MappingTable::MappingTable(void* memory, uint32_t capacity)
    : slots_(static_cast<Slot*>(memory)),
      changed_(reinterpret_cast<std::atomic<uint64_t>*>(slots_ + size_t{capacity} + 1)),
      dirty_(changed_ + WordsOfMarks(capacity)),
      records_(reinterpret_cast<std::atomic<uint32_t>*>(dirty_ + WordsOfMarks(capacity))),
      marks_(reinterpret_cast<std::atomic<uint8_t>*>(records_ + size_t{capacity} + 1)),
      capacity_(capacity) {
  static_assert(sizeof(Slot) + sizeof(std::atomic<uint32_t>) + sizeof(std::atomic<uint8_t>) == kBytesPerId);
}

MappingTable::~MappingTable() {
  for (uint64_t id = 1; id <= last_id(); ++id) {
    const uint64_t image = slots_[id].image.load(std::memory_order_relaxed);
    if (image != kDoomed) DeleteList(image);
  }
  // Every list of parts was of one image, or was retired. No id is in the list of free ids twice.
  DEUT_DCHECK(lists_.load(std::memory_order_relaxed) == 0);
  DEUT_DCHECK(free_count_.load(std::memory_order_relaxed) <= last_id());
  DEUT_CHECK(::munmap(slots_, BytesFor(capacity_)) == 0);
}

size_t MappingTable::BytesFor(uint64_t capacity) {
  return (capacity + 1) * kBytesPerId + 2 * WordsOfMarks(capacity) * sizeof(uint64_t);
}

PageId MappingTable::PopFree() {
  for (;;) {
    uint32_t top = free_top_.load(std::memory_order_acquire);
    if (top == 0) return kNoPage;
    // If another thread pops `top` meanwhile, the word is no longer a free word; then the compare-and-swap fails.
    const PageWord word(slots_[top].word.load(std::memory_order_acquire));
    DEUT_POINT("mapping_table.pop.before_cas");
    if (!DEUT_CAS_FAILS("mapping_table.pop.cas") &&
        free_top_.compare_exchange_strong(top, word.next_free().value, std::memory_order_acq_rel)) {
      // Inside this thread's guard, `top` cannot leave the list and come back. So the word that was read is a free one.
      DEUT_CHECK(word.is_free());
      // An id is counted before it is pushed.
      const uint64_t counted = free_count_.fetch_sub(1, std::memory_order_relaxed);
      DEUT_DCHECK(counted != 0);
      return PageId(top);
    }
  }
}

PageId MappingTable::Allocate(const Node* head) {
  PageId id = PopFree();
  if (id == kNoPage) {
    // The counter may run past the capacity by one for each thread that finds the table full at the same time.
    if (ever_used_.load(std::memory_order_relaxed) >= capacity_) return kNoPage;
    const uint64_t number = ever_used_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (number > capacity_) {
      ever_used_.fetch_sub(1, std::memory_order_relaxed);
      return kNoPage;
    }
    id = PageId(static_cast<uint32_t>(number));
  }
  // A page that had the id before may have been transient, say. No guard that could mark it is left.
  marks_[id.value].store(0, std::memory_order_relaxed);
  slots_[id.value].word.store(PageWord::Memory(head).bits(), std::memory_order_release);
  return id;
}

void MappingTable::Free(PageId id, ReclamationDomain& domain) {
  if (DEUT_OMITTED("pages.free_unseen")) return FreeUnseen(id);
  domain.Retire(
      new FreedId{this, id},
      [](void* object) {
        const std::unique_ptr<FreedId> freed(static_cast<FreedId*>(object));
        freed->table->FreeUnseen(freed->id);
      },
      sizeof(FreedId));
}

void MappingTable::Push(PageId id, std::atomic<uint32_t>* top_word) {
  uint32_t top = top_word->load(std::memory_order_relaxed);
  do {
    slots_[id.value].word.store(PageWord::Free(PageId(top)).bits(), std::memory_order_release);
    DEUT_POINT("mapping_table.push.before_cas");
  } while (DEUT_CAS_FAILS("mapping_table.push.cas") ||
           !top_word->compare_exchange_strong(top, id.value, std::memory_order_acq_rel));
}

void MappingTable::FreeUnseen(PageId id) {
  DEUT_DCHECK(id != kNoPage);
  // An id that is freed twice would be allocated to two pages.
  DEUT_CHECK(!PageWord(slots_[id.value].word.load(std::memory_order_relaxed)).is_free());
  if (keep_freed_ && DEUT_STEP("pages.free_durable")) return Push(id, &limbo_top_);
  free_count_.fetch_add(1, std::memory_order_relaxed);
  Push(id, &free_top_);
}

uint32_t MappingTable::TakeLimboIds() { return limbo_top_.exchange(0, std::memory_order_acq_rel); }

void MappingTable::ReuseLimboIds(uint32_t list) {
  while (list != 0) {
    const PageId id(list);
    list = PageWord(slots_[id.value].word.load(std::memory_order_acquire)).next_free().value;
    free_count_.fetch_add(1, std::memory_order_relaxed);
    Push(id, &free_top_);
  }
}

void MappingTable::ReturnLimboIds(uint32_t list) {
  while (list != 0) {
    const PageId id(list);
    list = PageWord(slots_[id.value].word.load(std::memory_order_acquire)).next_free().value;
    Push(id, &limbo_top_);
  }
}

ImageParts MappingTable::PartsOf(uint64_t image) {
  if ((image & ~kClaimed) == 0 || image == kDoomed) return ImageParts();
  if ((image & kList) != 0) return *reinterpret_cast<const ImageParts*>(image & ~kDoomed);
  return ImageParts(PageAddress::FromRaw(image >> 2));
}

uint64_t MappingTable::ImageOf(const ImageParts& parts) {
  if (parts.empty()) return 0;
  if (parts.count() == 1) return parts.newest().raw() << 2;
  lists_.fetch_add(1, std::memory_order_relaxed);
  return reinterpret_cast<uint64_t>(new ImageParts(parts)) | kList;
}

void MappingTable::DeleteList(uint64_t image) {
  if ((image & kList) == 0) return;
  lists_.fetch_sub(1, std::memory_order_relaxed);
  delete reinterpret_cast<ImageParts*>(image & ~kDoomed);
}

void MappingTable::RetireList(uint64_t image, ReclamationDomain& domain) {
  if ((image & kList) == 0) return;
  lists_.fetch_sub(1, std::memory_order_relaxed);
  domain.RetireObject(reinterpret_cast<ImageParts*>(image & ~kDoomed));
}

ImageParts MappingTable::Image(PageId id) const {
  const uint64_t image = slots_[id.value].image.load(std::memory_order_acquire);
  DEUT_POINT("mapping_table.image.before_list");
  return PartsOf(image);
}

bool MappingTable::ClaimImage(PageId id) {
  uint64_t image = slots_[id.value].image.load(std::memory_order_relaxed);
  // The exchange is lost if another thread has the claim, if the page was freed, or if its image was just replaced.
  // The last case counts as a very short claim.
  return (image & kClaimed) == 0 &&
         slots_[id.value].image.compare_exchange_strong(image, image | kClaimed, std::memory_order_acq_rel);
}

bool MappingTable::SetImage(PageId id, const ImageParts& parts, ReclamationDomain& domain) {
  DEUT_DCHECK(!parts.empty());  // a page loses its image only when it is freed
  uint64_t old = slots_[id.value].image.load(std::memory_order_acquire);
  DEUT_DCHECK((old & kClaimed) != 0);
  const uint64_t image = ImageOf(parts);
  if (DEUT_STEP("checkpoint.mark_before")) MarkChanged(id);
  DEUT_POINT("mapping_table.set_image.before_cas");
  if (old == kDoomed ||
      !slots_[id.value].image.compare_exchange_strong(old, image | kClaimed, std::memory_order_acq_rel)) {
    DeleteList(image);
    return false;
  }
  DEUT_POINT("mapping_table.image.before_mark");
  if (DEUT_STEP("checkpoint.mark_after")) MarkChanged(id);
  RetireList(old, domain);
  return true;
}

void MappingTable::ReleaseImage(PageId id) {
  uint64_t image = slots_[id.value].image.load(std::memory_order_acquire);
  DEUT_DCHECK((image & kClaimed) != 0);
  if (image != kDoomed &&
      slots_[id.value].image.compare_exchange_strong(image, image & ~kClaimed, std::memory_order_acq_rel)) {
    return;
  }
  // The image is doomed, so the holder of the claim frees the id.
  slots_[id.value].image.store(0, std::memory_order_release);
  FreeUnseen(id);
}

bool MappingTable::ReplaceImage(PageId id, PageAddress newest, const ImageParts& parts, ReclamationDomain& domain) {
  uint64_t old = slots_[id.value].image.load(std::memory_order_acquire);
  if ((old & kClaimed) != 0) return false;
  // No address is used twice, so the same newest part means the same image. A new list cannot lie at the old one's
  // address, because of the guard.
  const ImageParts now = PartsOf(old);
  if ((now.empty() || now.newest() != newest) && DEUT_STEP("clean.checks_image")) return false;
  const uint64_t image = ImageOf(parts);
  if (DEUT_STEP("checkpoint.mark_before")) MarkChanged(id);
  DEUT_POINT("mapping_table.replace_image.before_cas");
  if (DEUT_CAS_FAILS("mapping_table.replace_image.cas") ||
      !slots_[id.value].image.compare_exchange_strong(old, image, std::memory_order_acq_rel)) {
    DeleteList(image);
    return false;
  }
  DEUT_POINT("mapping_table.image.before_mark");
  if (DEUT_STEP("checkpoint.mark_after")) MarkChanged(id);
  RetireList(old, domain);
  return true;
}

bool MappingTable::TakeImage(PageId id, ImageParts* parts, ReclamationDomain& domain) {
  const ReclamationDomain::Guard guard(domain);
  if (DEUT_STEP("checkpoint.mark_before")) MarkChanged(id);
  uint64_t image = slots_[id.value].image.load(std::memory_order_acquire);
  while (!slots_[id.value].image.compare_exchange_weak(image, (image & kClaimed) != 0 ? kDoomed : 0,
                                                       std::memory_order_acq_rel)) {
  }
  DEUT_CHECK(image != kDoomed);  // a page is freed once
  DEUT_POINT("mapping_table.image.before_mark");
  if (DEUT_STEP("checkpoint.mark_after")) MarkChanged(id);
  *parts = PartsOf(image);
  // No other thread can see the page, but a thread that reads the images of all ids can see the list.
  RetireList(image, domain);
  return (image & kClaimed) == 0;
}

void MappingTable::RestoreUpTo(PageId last) {
  DEUT_CHECK(last.value <= capacity_);
  RaiseTo(ever_used_, uint64_t{last.value});
}

bool MappingTable::Restore(PageId id, const ImageParts& parts) {
  DEUT_CHECK(id != kNoPage && id.value <= capacity_);  // the reader of the checkpoint refuses ids beyond the last one
  if (slots_[id.value].word.load(std::memory_order_relaxed) != 0) return false;
  RaiseTo(ever_used_, uint64_t{id.value});
  slots_[id.value].image.store(ImageOf(parts), std::memory_order_relaxed);
  slots_[id.value].word.store(PageWord::Storage(parts.newest()).bits(), std::memory_order_release);
  return true;
}

ImageParts MappingTable::RestoreUnnamed(PageId id, ReclamationDomain& domain) {
  ImageParts parts;
  DEUT_CHECK(TakeImage(id, &parts, domain));
  slots_[id.value].word.store(0, std::memory_order_relaxed);
  return parts;
}

MappingTable::FreeIds MappingTable::LinkUnused(uint64_t first, uint64_t end) {
  DEUT_CHECK(first > 0 && end <= capacity_ + 1);
  FreeIds ids;
  for (uint64_t number = first; number < end; ++number) {
    if (slots_[number].word.load(std::memory_order_relaxed) != 0) continue;
    const auto id = static_cast<uint32_t>(number);
    if (ids.count++ == 0) {
      ids.first = id;
    } else {
      slots_[ids.last].word.store(PageWord::Free(PageId(id)).bits(), std::memory_order_relaxed);
    }
    ids.last = id;
  }
  return ids;
}

void MappingTable::RestoreFree(uint64_t last, std::span<const FreeIds> ranges) {
  DEUT_CHECK(last <= capacity_);
  DEUT_CHECK(last >= last_id());  // else a restored id would be allocated to a new page
  ever_used_.store(last, std::memory_order_relaxed);
  // From the last range to the first, so that small ids are allocated first.
  uint32_t top = free_top_.load(std::memory_order_relaxed);
  for (size_t i = ranges.size(); i > 0; --i) {
    const FreeIds& ids = ranges[i - 1];
    if (ids.count == 0) continue;
    slots_[ids.last].word.store(PageWord::Free(PageId(top)).bits(), std::memory_order_relaxed);
    free_count_.fetch_add(ids.count, std::memory_order_relaxed);
    top = ids.first;
  }
  free_top_.store(top, std::memory_order_release);
}

uint64_t MappingTable::last_id() const { return std::min(ever_used_.load(std::memory_order_acquire), capacity_); }

uint64_t MappingTable::memory_bytes() const { return last_id() * kBytesPerId + list_bytes(); }

uint64_t MappingTable::used() const {
  const uint64_t free = free_count_.load(std::memory_order_relaxed);
  const uint64_t ever = std::min(ever_used_.load(std::memory_order_relaxed), capacity_);
  return ever > free ? ever - free : 0;
}

}  // namespace deut::dc
