// RunMerge: the keys of several committed runs within bounds, in the order of a scan, each once: what a gather takes of them (rule S8).
//
// The runs are read side by side from where the bounds begin, so a scan pays for a search in each and then for the keys that it takes. Keys are
// compared by the eight bytes behind what all keys of all runs begin with, and as a whole only where these are equal.
// A search in a large run waits for memory several times; each such step is begun for all runs before the first is waited for.
// Thread-safety: one thread; the runs outlive it, and the keys are views into them.
#ifndef TC_MVCC_RUN_MERGE_H_
#define TC_MVCC_RUN_MERGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/base/ids.h"
#include "tc/mvcc/committed_run.h"

namespace deut::tc {

class RunMerge {
 public:
  struct Bounds {
    std::string_view low = {}, high = {};  // [low, high); an empty high is above every key
    bool ascending = true;
    Timestamp reader = {};  // updates at or after it are not seen
    Lsn applied = {};       // commits before it are at the DC, whatever the DC is asked from now on
    size_t most = SIZE_MAX;
  };

  // What all keys of all these runs begin with, in bytes.
  static size_t CommonPrefix(const std::vector<std::shared_ptr<const CommittedRun>>& runs);

  // `prefix_bytes`: at most CommonPrefix(runs).
  RunMerge(const std::vector<std::shared_ptr<const CommittedRun>>& runs, size_t prefix_bytes, const Bounds& bounds);

  // The next key; false: there is none.
  bool Next();
  std::string_view key() const { return key_; }
  // Some of the key's updates are removals.
  bool removed() const { return removed_; }

 private:
  struct Cursor {
    const CommittedRun* run;
    size_t at;  // of `key`; descending: one more
    std::string_view key = {};
    uint64_t head = 0;
  };

  // To the entry at which the cursor stands, or the first behind it that counts. False: there is none.
  bool Settle(Cursor* cursor) const;
  bool Inside(const Cursor& cursor) const;
  bool Before(const Cursor& a, const Cursor& b) const {
    if (a.head != b.head) return (a.head < b.head) == bounds_.ascending;
    return bounds_.ascending ? a.key < b.key : b.key < a.key;
  }

  const Bounds bounds_;
  const size_t prefix_bytes_;
  uint64_t far_head_ = 0;
  int far_order_ = 0;  // of the far bound against the common prefix; 0: it begins with that
  absl::InlinedVector<Cursor, 12> cursors_;
  std::string_view key_;
  bool removed_ = false;
};

}  // namespace deut::tc

#endif  // TC_MVCC_RUN_MERGE_H_
