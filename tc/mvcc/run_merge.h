// RunMerge: merges the keys of several committed runs within bounds, in scan order, each key once, for a gather (rule S8).
//
// The runs are read side by side from where the bounds begin. A scan pays for one search per run and for the keys that it takes. Keys are
// compared by the eight bytes behind the common prefix of all keys of all runs, and as a whole only where these are equal.
// A search in a large run waits for memory several times. Each such step is prefetched for all runs before the first is waited for.
// Thread-safety: one thread. Ownership: the runs must outlive it; its keys are views into them.
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
    Timestamp reader = {};  // updates at or after it are skipped
    Lsn applied = {};       // commits before it are skipped: the DC has them in every later answer
    size_t most = SIZE_MAX;
  };

  // Length of the common prefix of all keys of all these runs, in bytes.
  static size_t CommonPrefix(const std::vector<std::shared_ptr<const CommittedRun>>& runs);

  // `prefix_bytes`: at most CommonPrefix(runs).
  RunMerge(const std::vector<std::shared_ptr<const CommittedRun>>& runs, size_t prefix_bytes, const Bounds& bounds);

  // Moves to the next key. False: there is none.
  bool Next();
  std::string_view key() const { return key_; }
  // True if some of the key's updates are removals.
  bool removed() const { return removed_; }

 private:
  struct Cursor {
    const CommittedRun* run;
    size_t at;  // index of `key`; when descending, one more
    std::string_view key = {};
    uint64_t head = 0;
  };

  // Moves the cursor to the first entry at or behind its place that counts for this scan. False: there is none.
  bool Settle(Cursor* cursor) const;
  bool Inside(const Cursor& cursor) const;
  bool Before(const Cursor& a, const Cursor& b) const {
    if (a.head != b.head) return (a.head < b.head) == bounds_.ascending;
    return bounds_.ascending ? a.key < b.key : b.key < a.key;
  }

  const Bounds bounds_;
  const size_t prefix_bytes_;
  uint64_t far_head_ = 0;
  int far_order_ = 0;  // order of the far bound and the common prefix; 0: the bound begins with the prefix
  absl::InlinedVector<Cursor, 12> cursors_;
  std::string_view key_;
  bool removed_ = false;
};

}  // namespace deut::tc

#endif  // TC_MVCC_RUN_MERGE_H_
