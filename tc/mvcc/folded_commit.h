// FoldedCommit: what the collector keeps of a commit whose keys are in runs (rule S8) until it is collected: its position, and where its versions
// stand. The entry of a version stays while the version is in its chain (R5), and a committed one leaves only by the collector's hand.
// Thread-safety: the collector's thread alone.
#ifndef TC_MVCC_FOLDED_COMMIT_H_
#define TC_MVCC_FOLDED_COMMIT_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/base/ids.h"

namespace deut::tc {

struct RecordEntry;
struct RecordVersion;

class FoldedCommit {
 public:
  struct Update {
    RecordEntry* entry = nullptr;
    RecordVersion* version = nullptr;
  };

  FoldedCommit() = default;
  FoldedCommit(Position last, uint64_t version_bytes, const std::vector<Update>& updates)
      : last_(last), count_(static_cast<uint32_t>(updates.size())), version_bytes_(version_bytes) {
    if (count_ == 1) one_ = updates.front();
    if (count_ <= 1) return;
    many_ = std::make_unique<Update[]>(count_);
    std::copy(updates.begin(), updates.end(), many_.get());
  }

  // Of its last update.
  Position last() const { return last_; }
  uint64_t version_bytes() const { return version_bytes_; }
  std::span<const Update> updates() const { return {count_ == 1 ? &one_ : many_.get(), count_}; }

  static bool Later(const FoldedCommit& a, const FoldedCommit& b) { return a.last_ > b.last_; }

 private:
  Position last_;
  uint32_t count_ = 0;
  uint64_t version_bytes_ = 0;
  Update one_;
  std::unique_ptr<Update[]> many_;
};

}  // namespace deut::tc

#endif  // TC_MVCC_FOLDED_COMMIT_H_
