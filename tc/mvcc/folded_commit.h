// FoldedCommit: the collector's record of a commit whose keys are in runs (rule S8), kept until it is collected. It has the commit's position and the
// entries whose chains hold its versions.
//
// An entry stays in the table while a committed version is in its chain (R5). Only the collector removes the newest one, when its commit is applied.
// So the entry pointers stay valid until the last commit that wrote the entry is collected.
// Thread-safety: the collector's thread alone. Ownership: none of the entries.
#ifndef TC_MVCC_FOLDED_COMMIT_H_
#define TC_MVCC_FOLDED_COMMIT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace deut::tc {

struct RecordEntry;

class FoldedCommit {
 public:
  FoldedCommit() = default;
  FoldedCommit(Position last, Timestamp timestamp, const std::vector<RecordEntry*>& entries)
      : last_(last), timestamp_(timestamp), count_(static_cast<uint32_t>(entries.size())) {
    if (count_ == 1) one_ = entries.front();
    if (count_ <= 1) return;
    many_ = std::make_unique<RecordEntry*[]>(count_);
    std::copy(entries.begin(), entries.end(), many_.get());
  }

  // Position of its last update.
  Position last() const { return last_; }
  Timestamp timestamp() const { return timestamp_; }
  std::span<RecordEntry* const> entries() const { return {count_ == 1 ? &one_ : many_.get(), count_}; }
  size_t bytes() const { return sizeof(*this) + (count_ <= 1 ? 0 : count_ * sizeof(RecordEntry*)); }

 private:
  Position last_;
  Timestamp timestamp_;
  uint32_t count_ = 0;
  RecordEntry* one_ = nullptr;
  std::unique_ptr<RecordEntry*[]> many_;
};

}  // namespace deut::tc

#endif  // TC_MVCC_FOLDED_COMMIT_H_
