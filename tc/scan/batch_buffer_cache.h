// BatchBufferCache: keeps the buffer of a batch that this thread has merged, for the next batch. A scan that merges
// the TC's versions into the DC's answer needs two buffers. Otherwise the second one would be allocated, grown and
// freed for each scan.
// Thread-safety: each thread has its own.
#ifndef TC_SCAN_BATCH_BUFFER_CACHE_H_
#define TC_SCAN_BATCH_BUFFER_CACHE_H_

#include <cstddef>
#include <utility>

#include "protocol/record_batch.h"

namespace deut::tc {

class BatchBufferCache {
 public:
  // A thread keeps no larger buffer.
  static constexpr size_t kMaxBytes = 64 << 10;

  // Returns an empty batch with room for `bytes`.
  static RecordBatch Get(size_t bytes) {
    RecordBatch taken = std::exchange(kept_, RecordBatch());
    taken.Reserve(bytes);
    return taken;
  }
  static void Put(RecordBatch batch) {
    const size_t bytes = batch.bytes().capacity();
    if (bytes > kMaxBytes || bytes <= kept_.bytes().capacity()) return;
    batch.Clear();
    kept_ = std::move(batch);
  }

 private:
  static inline thread_local RecordBatch kept_;
};

}  // namespace deut::tc

#endif  // TC_SCAN_BATCH_BUFFER_CACHE_H_
