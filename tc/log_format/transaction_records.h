// The records of one transaction: how its updates are cut into chunks, and how many bytes the records take in the log
// and on the disk. AppendCommit cuts by the same functions, so it appends exactly what was reserved ahead (rule D5,
// log_space.h).
// Thread-safety: pure functions.
#ifndef TC_LOG_FORMAT_TRANSACTION_RECORDS_H_
#define TC_LOG_FORMAT_TRANSACTION_RECORDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "tc/log_format/log_record.h"

namespace deut::tc {

// True if a transaction whose body would have `body_bytes` is logged in chunks.
bool NeedsChunks(size_t body_bytes, size_t chunk_bytes);
// The number of `updates`, from the first on, that go into one chunk; at least one. If it is all of them, they stay
// with the commit record.
size_t UpdatesOfChunk(absl::Span<const Update> updates, size_t chunk_bytes);

struct Footprint {
  uint64_t log_bytes = 0;      // bytes of all records; LSNs advance by this
  uint64_t disk_bytes = 0;     // bytes of their blocks if each record has its own block: the most that they take
  uint64_t largest_block = 0;  // the largest of these blocks
  uint64_t commit_bytes = 0;   // bytes of the commit record
  // Bytes of the largest record. They may exceed every limit of a log: the caller refuses such a transaction.
  uint64_t largest_record = 0;
  bool has_chunks = false;
};
// The footprint of a commit of `updates`. `named`: with an id. Does not allocate.
Footprint FootprintOf(absl::Span<const Update> updates, bool named, size_t chunk_bytes);

}  // namespace deut::tc

#endif  // TC_LOG_FORMAT_TRANSACTION_RECORDS_H_
