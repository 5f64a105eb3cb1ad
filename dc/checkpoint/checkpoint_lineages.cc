#include "dc/checkpoint/checkpoint_lineages.h"

#include <algorithm>
#include <bit>
#include <span>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

// Each range has at least this part of all images, so that a round has at most this number of files.
constexpr uint64_t kMaxFilesOfRound = 64;
// A lineage has at most these files. A round that a growing store makes longer does not exceed it either.
constexpr size_t kMaxFiles = 4 * kMaxFilesOfRound;
static_assert(kMaxFiles <= kMaxAncestors);
// Ids that are captured under one guard, so that retired memory is given back meanwhile.
constexpr uint32_t kIdsOfGuard = 4096;
constexpr uint64_t kWordIds = PageBits::kIdsOfWord;

constexpr uint64_t kNoBound = UINT64_MAX;

bool Has(const PageBits& bits, uint64_t number) { return bits.Contains(PageId(static_cast<uint32_t>(number))); }

uint64_t NumberAt(const std::vector<uint64_t>& images, size_t place) {
  return place < images.size() ? images[place] >> 8 : kNoBound;
}

size_t PartsAt(const std::vector<uint64_t>& images, size_t place) { return images[place] & 0xff; }

}  // namespace

CheckpointLineages::CheckpointLineages(MappingTable& pages, ReclamationDomain& domain, const RecoveredLineages& found,
                                       const CheckpointLineagesOptions& options)
    : pages_(pages), domain_(domain), options_(options) {
  lineages_[newest_].files = found.opened;
  running().files = found.previous;
  for (Lineage& lineage : lineages_) {
    if (!lineage.files.empty()) lineage.next_range = lineage.files.back().pages.end;
  }
}

uint64_t CheckpointLineages::CompleteBytes() const {
  // A page with one part has two numbers in the capture. A list of parts takes as much memory as the numbers of its page.
  return pages_.used() * 2 * sizeof(uint64_t) + pages_.list_bytes();
}

uint64_t CheckpointLineages::memory_bytes() const {
  return (images_.capacity() + later_.capacity()) * sizeof(uint64_t) + lineages_[0].changed.memory_bytes() +
         lineages_[1].changed.memory_bytes();
}

template <typename Use>
void CheckpointLineages::TakeMarks(Use&& use) {
  pages_.TakeChanged([&](uint64_t word, uint64_t marks) {
    running().changed.AddWord(word, marks);
    if (DEUT_STEP("checkpoint.both_lineages")) lineages_[newest_].changed.AddWord(word, marks);
    use(word, marks);
  });
}

bool CheckpointLineages::MustBeComplete(uint64_t changed_bytes, uint64_t range_bytes) const {
  const CheckpointLineage& files = running().files;
  return files.empty() || files.size() >= kMaxFiles || changed_bytes + range_bytes >= CompleteBytes();
}

void CheckpointLineages::ForgetFiles() {
  for (Lineage& lineage : lineages_) lineage.files.clear();
}

void CheckpointLineages::Begin(bool complete) {
  Clear();
  TakeMarks([](uint64_t, uint64_t) {});
  const uint64_t changed = running().changed.Count();
  const uint64_t all_bytes = CompleteBytes();
  const uint64_t changed_bytes = changed * (all_bytes / std::max<uint64_t>(pages_.used(), 1));
  const uint64_t range_bytes = std::max(changed_bytes + all_bytes / kMaxFilesOfRound, options_.min_range_bytes);
  const PageId end(static_cast<uint32_t>(pages_.last_id() + 1));
  range_ = {};
  if (complete || MustBeComplete(changed_bytes, range_bytes)) {
    Capture(PageId(1), end, /*of=*/nullptr, kNoBound);
    return;
  }
  range_.first = running().next_range < end ? running().next_range : PageId(1);
  Capture(PageId(1), range_.first, &running().changed, kNoBound);
  range_.end = Capture(range_.first, end, /*of=*/nullptr, range_bytes);
  Capture(range_.end, end, &running().changed, kNoBound);
}

PageId CheckpointLineages::Capture(PageId first, PageId end, const PageBits* of, uint64_t bytes) {
  const PageBits& recent = lineages_[newest_].changed;
  const size_t begin = images_.size();
  uint64_t number = first.value;
  while (number < end.value) {
    const ReclamationDomain::Guard guard(domain_);
    const uint64_t pause = std::min<uint64_t>(number + kIdsOfGuard, end.value);
    while (number < pause) {
      if (of != nullptr && number % kWordIds == 0 && of->Word(number / kWordIds) == 0) {
        number = std::min(number + kWordIds, pause);
        continue;
      }
      if (of == nullptr) {
        if ((images_.size() - begin) * sizeof(uint64_t) >= bytes) return PageId(static_cast<uint32_t>(number));
        CaptureImage(number, /*without_parts=*/Has(recent, number), &images_);
      } else if (Has(*of, number)) {
        CaptureImage(number, /*without_parts=*/true, &images_);
      }
      ++number;
    }
  }
  return PageId(static_cast<uint32_t>(number));
}

void CheckpointLineages::CaptureImage(uint64_t number, bool without_parts, Images* to) const {
  const PageId id(static_cast<uint32_t>(number));
  if (!without_parts && !pages_.HasImage(id)) return;
  const ImageParts parts = pages_.Image(id);
  if (!without_parts && parts.empty()) return;
  to->push_back((number << 8) | parts.count());
  for (const PageAddress part : parts.all()) to->push_back(part.raw());
}

void CheckpointLineages::End() {
  const ReclamationDomain::Guard guard(domain_);
  TakeMarks([this](uint64_t word, uint64_t marks) {
    for (uint64_t rest = marks; rest != 0; rest &= rest - 1) {
      CaptureImage(word * kWordIds + static_cast<uint64_t>(std::countr_zero(rest)), /*without_parts=*/true, &later_);
    }
  });
  // Behind the last id that was captured.
  next_page_ = PageId(static_cast<uint32_t>(pages_.last_id() + 1));
  SetAncestors();
}

void CheckpointLineages::SetAncestors() {
  ancestors_ = running().files;
  ancestors_.push_back({.number = {}, .blocks = 1, .checksum = 0, .next_page = next_page_, .pages = range_});
  DropSuperfluous(&ancestors_);
  ancestors_.pop_back();
  // A range that has all ids makes the file complete.
  if (ancestors_.empty()) range_ = {};
}

void CheckpointLineages::FillHead(CheckpointHead* head) const {
  head->next_page = next_page_;
  head->pages = range_;
  head->ancestors = ancestors_;
  head->previous = lineages_[newest_].files;
}

Status CheckpointLineages::AddPages(CheckpointWriter* writer) const {
  const Lineage& previous = lineages_[newest_];
  std::vector<PageAddress> parts;
  for (size_t i = 0, later = 0;;) {
    const uint64_t number = std::min(NumberAt(images_, i), NumberAt(later_, later));
    if (number == kNoBound) return Status::Ok();
    const bool is_later = NumberAt(later_, later) == number;
    const Images& from = is_later ? later_ : images_;
    const size_t place = is_later ? later : i;
    parts.clear();
    for (size_t n = 1; n <= PartsAt(from, place); ++n) parts.push_back(PageAddress::FromRaw(from[place + n]));
    // The image of End replaces that of Begin.
    if (NumberAt(images_, i) == number) i += 1 + PartsAt(images_, i);
    if (is_later) later += 1 + PartsAt(later_, later);
    const PageId page(static_cast<uint32_t>(number));
    const bool recent = !previous.files.empty() && previous.changed.Contains(page);
    // In the range, a page without a record has no image. Only the other lineage may have to know that it had one.
    if (parts.empty() && range_.first <= page && page < range_.end && !recent) continue;
    DEUT_RETURN_IF_ERROR(writer->AddPage(page, parts, recent));
  }
}

void CheckpointLineages::Completed(const CheckpointAncestor& file) {
  Lineage& lineage = running();
  lineage.files = ancestors_;
  lineage.files.push_back(file);
  lineage.changed.Clear();
  lineage.next_range = range_.end;
  newest_ = 1 - newest_;
  Clear();
}

void CheckpointLineages::Clear() {
  Images().swap(images_);
  Images().swap(later_);
}

}  // namespace deut::dc
