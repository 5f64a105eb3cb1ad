#include "tc/log_format/transaction_records.h"

#include <algorithm>

#include "common/base/check.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/record_codec.h"

namespace deut::tc {

bool NeedsChunks(size_t body_bytes, size_t chunk_bytes) {
  return body_bytes > chunk_bytes + kTransactionHeaderBytes + kTransactionIdBytes;
}

size_t UpdatesOfChunk(absl::Span<const Update> updates, size_t chunk_bytes) {
  size_t count = 0;
  for (size_t bytes = 0; count < updates.size(); ++count) {
    bytes += UpdateBytes(updates[count]);
    if (count > 0 && bytes > chunk_bytes) break;
  }
  DEUT_DCHECK(count > 0 || updates.empty());  // or the caller would cut chunks for ever
  return count;
}

Footprint FootprintOf(absl::Span<const Update> updates, bool named, size_t chunk_bytes) {
  Footprint footprint;
  const auto add = [&](size_t body_bytes) {
    const uint64_t bytes = RecordBytesFor(body_bytes);
    const uint64_t block = BlockBytesFor(bytes);
    footprint.log_bytes += bytes;
    footprint.disk_bytes += block;
    footprint.largest_block = std::max(footprint.largest_block, block);
    footprint.largest_record = std::max(footprint.largest_record, bytes);
    return bytes;
  };
  size_t left = 0;
  for (const Update& update : updates) left += UpdateBytes(update);
  const size_t header = kTransactionHeaderBytes + (named ? kTransactionIdBytes : 0);
  size_t chunks = 0;
  if (NeedsChunks(header + left, chunk_bytes)) {
    for (size_t count; (count = UpdatesOfChunk(updates, chunk_bytes)) != updates.size(); ++chunks) {
      size_t bytes = 0;
      for (const Update& update : updates.first(count)) bytes += UpdateBytes(update);
      add(kTransactionHeaderBytes + bytes);
      DEUT_DCHECK(bytes <= left);
      left -= bytes;
      updates.remove_prefix(count);
    }
  }
  footprint.has_chunks = chunks != 0;
  footprint.commit_bytes = add(header + chunks * sizeof(uint64_t) + left);
  return footprint;
}

}  // namespace deut::tc
