#include "tc/mvcc/committed_run.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::tc {

void CommittedRun::Builder::Reserve(size_t entries, size_t key_bytes) {
  run_->keys_.reserve(key_bytes);
  run_->ends_.reserve(entries + 1);
  run_->first_timestamps_.reserve(entries);
  run_->last_commits_.reserve(entries);
}

void CommittedRun::Builder::Append(std::string_view key, Timestamp first_timestamp, Lsn last_commit) {
  CommittedRun& run = *run_;
  if (run.size() != 0 && run.key(run.size() - 1) == key) {
    uint64_t& first = run.first_timestamps_.back();
    uint64_t& last = run.last_commits_.back();
    first = DEUT_OMITTED("S8.first_timestamp") ? first_timestamp.value : std::min(first, first_timestamp.value);
    if (!DEUT_OMITTED("S8.last_commit")) last = std::max(last, last_commit.value);
    return;
  }
  run.keys_.append(key);
  DEUT_CHECK(run.keys_.size() <= UINT32_MAX);
  run.ends_.push_back(static_cast<uint32_t>(run.keys_.size()));
  run.first_timestamps_.push_back(first_timestamp.value);
  run.last_commits_.push_back(last_commit.value);
}

std::shared_ptr<const CommittedRun> CommittedRun::Builder::Finish(Position last) {
  CommittedRun& run = *run_;
  run.last_ = last;
  run.keys_.shrink_to_fit();
  run.ends_.shrink_to_fit();
  run.first_timestamps_.shrink_to_fit();
  run.last_commits_.shrink_to_fit();
  if (run.size() != 0) {
    const std::string_view lowest = run.key(0), highest = run.key(run.size() - 1);
    const auto differ = std::mismatch(lowest.begin(), lowest.end(), highest.begin(), highest.end());
    run.prefix_bytes_ = static_cast<size_t>(differ.first - lowest.begin());
  }
  run.heads_.reserve(run.size());
  for (size_t i = 0; i < run.size(); ++i) run.heads_.push_back(run.HeadOf(run.key(i)));
  return std::shared_ptr<const CommittedRun>(run_.release());
}

size_t CommittedRun::bytes() const {
  return sizeof(*this) + keys_.capacity() + ends_.capacity() * sizeof(uint32_t) +
         (first_timestamps_.capacity() + last_commits_.capacity() + heads_.capacity()) * sizeof(uint64_t);
}

uint64_t CommittedRun::HeadOf(std::string_view key) const {
  const std::string_view rest = key.substr(prefix_bytes_, sizeof(uint64_t));
  uint64_t head = 0;
  if (!rest.empty()) std::memcpy(&head, rest.data(), rest.size());  // an empty bound may be no memory at all
  return __builtin_bswap64(head);
}

size_t CommittedRun::LowerBound(std::string_view bound) const {
  if (size() == 0) return 0;
  const std::string_view prefix = key(0).substr(0, prefix_bytes_);
  const int order = bound.substr(0, prefix_bytes_).compare(prefix);
  if (order != 0) return order < 0 ? 0 : size();
  const uint64_t head = HeadOf(bound);
  const auto first = std::lower_bound(heads_.begin(), heads_.end(), head);
  if (first == heads_.end() || *first != head) return static_cast<size_t>(first - heads_.begin());
  const auto behind = std::upper_bound(first, heads_.end(), head);
  size_t low = static_cast<size_t>(first - heads_.begin());
  size_t high = static_cast<size_t>(behind - heads_.begin());
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
