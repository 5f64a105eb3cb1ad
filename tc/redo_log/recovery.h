// Recovery of the redo log: finds the longest chain of valid blocks, and decides whether the bytes behind it are a
// torn tail or damage. It returns the state that the next start of the TC begins with. RecoverChain only reads; its
// caller deletes and logs (redo_log.cc).
//
// The chain (D2): segments by number, without a gap; in each the header, then blocks one behind the other. A block
// belongs to the chain if
//   1. it is valid by itself (magic, own place, the log's seal, checksum),
//   2. it begins at the LSN where its predecessor ended, and names its predecessor's checksum,
//   3. it has the TC epoch of its segment. Epochs never fall from one segment to the next. Where they rise, the
//      segment begins with END_OF_EPOCH.
// A first segment of an epoch without END_OF_EPOCH is not part of the chain and is removed: its process has served no
// client.
// A segment ends where its blocks end and the next header continues the chain. If the next segment begins with
// END_OF_EPOCH, it ends at the cut that this record names. Blocks behind the cut do not count. They were there when
// it was logged, or arrived later, from a write of a dead process that was still in flight.
// The break is the place where the chain cannot be continued. Everything past it is scanned for a block that
//   1. is valid by itself, and of the same or a later epoch, and
//   2. was submitted when the log was already durable beyond the break.
// Such a block proves that the missing bytes had been durable: CORRUPTION. Otherwise the break is a torn tail, and no
// record in it was ever reported durable. (Rot in the very last blocks, after which nothing was written, cannot be
// told from that.)
// Blocks of the chain need not be durable. A write that failed, or whose process died, may have left bytes that can
// be read but do not outlive a loss of power. Blocks that no later block calls durable are `unproven`. RewriteUnprovenBlocks
// writes the same bytes once more and so makes them durable, before anything is built on them. (A sync is not enough
// for bytes of a failed write.)
// The seal guards the scan past the break against a client's value that holds the bytes of a block. Without it such a
// value could keep the log from opening, or raise its epoch.
// Also refused:
//   1. a file whose first block is not understood (UnderstandFirstBlock), a segment of another log, a missing file,
//   2. a redo start before the oldest record,
//   3. records that no writer produces.
// If a file that is not understood lies behind the chain and holds no block of the log, the error says so. An
// operator may move it away then.
// Thread-safety: functions; one call at a time for a directory. Ownership: storage outlives the result.
// Errors: CORRUPTION, VERSION_MISMATCH and IO_ERROR name file and offset.
#ifndef TC_REDO_LOG_RECOVERY_H_
#define TC_REDO_LOG_RECOVERY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/chain_visitor.h"
#include "tc/redo_log/segment.h"

namespace deut::tc {

struct UnprovenBlock {
  uint64_t segment = 0;  // its number
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// A start of the TC, with its epoch, that has blocks in the chain.
struct LogStart {
  TcEpoch epoch;
  uint64_t nonce = 0;
  Lsn begin;  // its first record; for the oldest one: where the chain begins, perhaps in the middle of its records
  friend bool operator==(const LogStart&, const LogStart&) = default;
};

// A file behind the chain whose content cannot be determined.
struct DamagedSegment {
  uint64_t number = 0;
  uint64_t bytes = 0;  // everything behind these bytes is zeros, up to the end of the file
};

struct RecoveredChain {
  bool empty = false;            // there is no log: nothing was ever durable
  LogState state;                // as of the end. state.epoch is the highest epoch seen anywhere, also behind the break
  std::vector<LogStart> starts;  // oldest first; each ends where the next begins, the last one at the end
  Lsn first_lsn = kFirstLsn;
  Cut end{.lsn = kFirstLsn};  // the break: the next TC epoch continues at end.lsn
  Lsn last_shipped;           // the last record in the chain that a DC may be sent; 0 = none
  uint32_t checksum = 0;      // checksum of the last block of the chain
  std::vector<std::shared_ptr<Segment>>
      segments;                 // the chain's segments, oldest first, with indexes; the last one not ended
  std::vector<uint64_t> stale;  // numbers of the files behind the chain, ascending: they are to be removed
  std::vector<DamagedSegment>
      damaged;  // those of `stale` that are not empty and whose first block is damaged: they are to be kept
  uint64_t next_number = 1;             // number of the next segment, once the stale ones are removed
  uint64_t dropped_bytes = 0;           // bytes of whole blocks behind the break
  std::vector<UnprovenBlock> unproven;  // at the end of the chain, in its order
};

// `visitor`, unless null, receives everything that is found, also when recovery ends in an error.
Result<RecoveredChain> RecoverChain(Storage& storage, const std::string& directory, ChainVisitor* visitor = nullptr);

// Makes the blocks durable. REQUIRES: no other thread or process writes to the files.
Status RewriteUnprovenBlocks(Storage& storage, const std::string& directory, const std::vector<UnprovenBlock>& blocks);

}  // namespace deut::tc

#endif  // TC_REDO_LOG_RECOVERY_H_
