#include "dc/page_store/open_files.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::dc {

OpenFiles::OpenFiles(Storage& storage, ReclamationDomain& domain, const SegmentTable& table, std::atomic<size_t>& open,
                     size_t limit)
    : storage_(storage), domain_(domain), table_(table), open_(open), limit_(std::max<size_t>(limit, 1)) {}

std::shared_ptr<File> OpenFiles::Find(Segment& segment) {
  const ReclamationDomain::Guard guard(domain_);
  const FileHolder* const holder = segment.file.load();
  if (holder == nullptr) return nullptr;
  if (!segment.touched.load(std::memory_order_relaxed)) segment.touched.store(true, std::memory_order_relaxed);
  DEUT_POINT("page_store.files.found");
  return holder->file;
}

Result<std::shared_ptr<File>> OpenFiles::Get(Segment& segment) {
  if (std::shared_ptr<File> file = Find(segment)) return file;
  return Open(segment, /*once=*/false);
}

Result<std::shared_ptr<File>> OpenFiles::Open(Segment& segment, bool once) {
  DEUT_ASSIGN_OR_RETURN(std::shared_ptr<File> file, storage_.Open(segment.path, {.direct = true, .once = once}));
  auto holder = std::make_unique<FileHolder>(file, open_);
  FileHolder* nobody = nullptr;
  DEUT_POINT("page_store.files.before_cas");
  if (!DEUT_CAS_FAILS("page_store.files.cas") && segment.file.compare_exchange_strong(nobody, holder.get())) {
    [[maybe_unused]] const FileHolder* of_the_segment = holder.release();
    segment.touched.store(true, std::memory_order_relaxed);
    if (open_.load() > limit_) CloseSome();
  }
  return file;
}

void OpenFiles::Close(Segment& segment) {
  const ReclamationDomain::Guard guard(domain_);
  if (FileHolder* holder = segment.file.exchange(nullptr)) {
    holder->StopCounting();
    domain_.RetireObject(holder);
  }
}

void OpenFiles::CloseSome() {
  wanted_.store(true);
  // A thread that loses the exchange has already set `wanted_`. The winner checks `wanted_` again after it clears
  // `closing_`, so no request is lost.
  while (wanted_.load() && !closing_.exchange(true)) {
    wanted_.store(false);
    if (open_.load() > limit_) Sweep();
    closing_.store(false);
  }
}

void OpenFiles::Sweep() {
  DEUT_CHECK(closing_.load());
  // The goal is a little below the limit, so that a pass over the table is worth its cost.
  const size_t goal = limit_ - std::min(limit_ / 8, limit_ - 1);
  size_t left = open_.load();
  DEUT_POINT("page_store.files.sweeping");
  // Two full turns of the clock, from the hand on: the first clears the `touched` marks, the second closes the files.
  for (int half = 0; half < 4 && left > goal; ++half) {
    const uint64_t from = half % 2 == 0 ? hand_ : 0, to = half % 2 == 0 ? UINT64_MAX : hand_;
    table_.ForEach([&](const std::shared_ptr<Segment>& segment) {
      if (left <= goal || segment->number < from || segment->number >= to || segment->file.load() == nullptr) return;
      if (segment->touched.exchange(false, std::memory_order_relaxed)) return;
      Close(*segment);
      --left;
      last_closed_ = segment->number;
    });
  }
  hand_ = last_closed_;
  domain_.Collect();
}

}  // namespace deut::dc
