#include "tc/mvcc/committed_run.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::tc {

void CommittedRun::Builder::Reserve(size_t entries, size_t key_bytes) {
  run_->keys_.reserve(key_bytes);
  run_->entries_.reserve(entries);
}

void CommittedRun::Builder::Append(std::string_view key, Timestamp first_timestamp, Lsn last_commit, bool removed) {
  CommittedRun& run = *run_;
  if (run.size() != 0 && run.key(run.size() - 1) == key) {
    Entry& entry = run.entries_.back();
    entry.first_timestamp = DEUT_OMITTED("S8.first_timestamp") ? first_timestamp.value
                                                               : std::min(entry.first_timestamp, first_timestamp.value);
    if (DEUT_STEP("S8.last_commit")) entry.last_commit = std::max(entry.last_commit, last_commit.value);
    entry.removed = entry.removed || removed;
    return;
  }
  DEUT_DCHECK(run.size() == 0 || run.key(run.size() - 1) < key);
  run.keys_.append(key);
  DEUT_CHECK(run.keys_.size() <= UINT32_MAX);
  run.entries_.push_back({.first_timestamp = first_timestamp.value,
                          .last_commit = last_commit.value,
                          .end = static_cast<uint32_t>(run.keys_.size()),
                          .removed = removed});
}

std::shared_ptr<const CommittedRun> CommittedRun::Builder::Finish(Position last) {
  CommittedRun& run = *run_;
  // A run is dropped as a whole when `last` is applied.
  DEUT_DCHECK(std::ranges::all_of(run.entries_, [&](const Entry& e) { return e.last_commit <= last.commit.value; }));
  run.last_ = last;
  run.keys_.shrink_to_fit();
  run.entries_.shrink_to_fit();
  if (run.size() != 0) {
    const std::string_view lowest = run.key(0), highest = run.key(run.size() - 1);
    const auto differ = std::mismatch(lowest.begin(), lowest.end(), highest.begin(), highest.end());
    run.prefix_bytes_ = static_cast<size_t>(differ.first - lowest.begin());
  }
  run.heads_.reserve(run.size());
  for (size_t i = 0; i < run.size(); ++i) run.heads_.push_back(HeadOf(run.key(i), run.prefix_bytes_));
  run.heads_by_16_.reserve((run.size() + kBlock - 1) / kBlock);
  for (size_t i = 0; i < run.size(); i += kBlock) run.heads_by_16_.push_back(run.heads_[i]);
  for (size_t i = 0; i < run.heads_by_16_.size(); i += kBlock) run.heads_by_256_.push_back(run.heads_by_16_[i]);
  return std::shared_ptr<const CommittedRun>(run_.release());
}

size_t CommittedRun::bytes() const {
  return sizeof(*this) + keys_.capacity() + entries_.capacity() * sizeof(Entry) +
         (heads_.capacity() + heads_by_16_.capacity() + heads_by_256_.capacity()) * sizeof(uint64_t);
}

uint64_t CommittedRun::HeadOf(std::string_view key, size_t behind) {
  uint64_t head = 0;
  if (key.size() >= behind + sizeof head) {
    std::memcpy(&head, key.data() + behind, sizeof head);
  } else if (key.size() > behind) {
    std::memcpy(&head, key.data() + behind, key.size() - behind);
  }
  return __builtin_bswap64(head);
}

size_t CommittedRun::LastBelow(const std::vector<uint64_t>& firsts, size_t begin, size_t end, uint64_t head) {
  const auto from = firsts.begin() + static_cast<ptrdiff_t>(begin);
  const auto not_below = std::lower_bound(from, firsts.begin() + static_cast<ptrdiff_t>(end), head);
  return not_below == from ? begin : static_cast<size_t>(not_below - firsts.begin()) - 1;
}

size_t CommittedRun::BlockOf(std::string_view bound) const {
  const int order = bound.substr(0, prefix_bytes_).compare(prefix());
  if (size() == 0 || order != 0) return order < 0 ? kBefore : kBehind;
  const uint64_t head = HeadOf(bound, prefix_bytes_);
  const size_t top = LastBelow(heads_by_256_, 0, heads_by_256_.size(), head) * kBlock;
  const size_t block = LastBelow(heads_by_16_, top, std::min(top + kBlock, heads_by_16_.size()), head);
  __builtin_prefetch(&heads_[block * kBlock]);
  __builtin_prefetch(&heads_[std::min(block * kBlock + kBlock / 2, size() - 1)]);
  return block;
}

size_t CommittedRun::LowerBoundIn(size_t block, std::string_view bound) const {
  if (block == kBefore || block == kBehind) return block == kBefore ? 0 : size();
  const uint64_t head = HeadOf(bound, prefix_bytes_);
  const auto begin = heads_.begin() + static_cast<ptrdiff_t>(block * kBlock);
  const auto first =
      std::lower_bound(begin, heads_.begin() + static_cast<ptrdiff_t>(std::min(size(), (block + 1) * kBlock)), head);
  if (first == heads_.end() || *first != head) return static_cast<size_t>(first - heads_.begin());
  // Most heads occur once, so the search for the end of the equal heads starts with small steps.
  size_t low = static_cast<size_t>(first - heads_.begin()), step = 1;
  while (low + step < size() && heads_[low + step] == head) step *= 2;
  size_t high = static_cast<size_t>(
      std::upper_bound(first, heads_.begin() + static_cast<ptrdiff_t>(std::min(size(), low + step)), head) -
      heads_.begin());
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (key(middle) < bound) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace deut::tc
