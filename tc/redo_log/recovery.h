// Recovery of the redo log: finds the longest chain of valid blocks, decides whether what lies behind it is a torn tail or damage, and hands
// over what the next life starts from. RecoverChain reads only; whoever calls it deletes and logs (redo_log.cc).
//
// The chain (D2): segments by number, without a gap; in each the header, then blocks one behind the other. A block belongs to the chain if it
// is valid by itself (magic, own place, the log's seal, checksum), begins at the LSN where its predecessor ended, names its
// predecessor's checksum, and is of the
// epoch of its segment; epochs never fall from one segment to the next, and where they rise the segment begins with END_OF_EPOCH: without it a
// life's segment is none of the chain (that life has served nobody), and goes.
// A segment ends where its blocks end and the next header continues the chain, or, if the next segment begins with END_OF_EPOCH, at the cut
// that this record names: blocks behind it do not count, whether they were there when it was logged or arrived later (a write of a dead
// process that was still under way).
// The break: where the chain cannot be continued. Past it everything is scanned: a block valid by itself, of the same or a later epoch, that
// was submitted when the log was already durable beyond the break proves that what is missing had been durable: CORRUPTION. Otherwise the
// break is a torn tail, which nobody was ever told about. (Rot in the very last blocks, after which nothing was written, cannot be told from that.)
// What the chain holds need not be durable: a write that failed, or whose process died, may have left its bytes where they can be read but
// do not outlive a loss of power. Blocks of which no later block says that they were durable are `unproven`; WriteAgain makes them so, with
// the bytes that are there, before anything is built on them. (A sync is not enough for bytes of a failed write.)
// Without the seal a client's value that holds the bytes of a block would be taken for one, where recovery looks past the break: it could keep the
// log from opening, or raise its epoch.
// Also refused: a file whose first block is not understood (UnderstandFirstBlock), a segment of another log, a missing file, a
// redo start before the oldest record, records that no writer produces. If a file that is not understood lies behind the chain and holds no
// block of the log, the error says so, and that an operator may move it away.
// Thread-safety: functions. Errors: CORRUPTION, VERSION_MISMATCH and IO_ERROR name file and offset.
#ifndef TC_REDO_LOG_RECOVERY_H_
#define TC_REDO_LOG_RECOVERY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "tc/redo_log/block_format.h"
#include "tc/redo_log/chain_visitor.h"
#include "tc/redo_log/segment.h"

namespace deut::tc {

struct UnprovenBlock {
  uint64_t segment = 0;  // its number
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// A life of the TC that has blocks in the chain.
struct LogLife {
  TcEpoch epoch;
  uint64_t nonce = 0;
  Lsn begin;  // of its first record; of the oldest life: where the chain begins, perhaps in the middle of it
  friend bool operator==(const LogLife&, const LogLife&) = default;
};

// A file behind the chain of which nobody can tell what it holds.
struct DamagedSegment {
  uint64_t number = 0;
  uint64_t bytes = 0;  // behind these are zeros up to its end
};

struct RecoveredChain {
  bool empty = false;          // there is no log: nothing was ever durable
  LogState state;              // as of the end. state.epoch is the highest epoch seen anywhere, also behind the break
  std::vector<LogLife> lives;  // oldest first; each ends where the next begins, the last one at the end
  Lsn first_lsn = kFirstLsn;
  Cut end{.lsn = kFirstLsn};                       // the break: the next life goes on at end.lsn
  Lsn last_shipped;                                // of the last record in it that a DC may be sent; 0 = there is none
  uint32_t checksum = 0;                           // of the last block of the chain
  std::vector<std::shared_ptr<Segment>> segments;  // of the chain, oldest first, with indexes; the last one not ended
  std::vector<uint64_t> stale;                     // numbers of the files behind the chain, ascending: to be removed
  std::vector<DamagedSegment>
      damaged;                 // those of `stale` whose first block is damaged, and which are not empty: to be kept
  uint64_t next_number = 1;    // of the next segment, once the stale ones are gone
  uint64_t dropped_bytes = 0;  // of whole blocks behind the break
  std::vector<UnprovenBlock> unproven;  // at the end of the chain, in its order
};

// `visitor`, if there is one, is told what is found, also when that ends in an error.
Result<RecoveredChain> RecoverChain(Storage& storage, const std::string& directory, ChainVisitor* visitor = nullptr);

// Makes the chain durable. REQUIRES: nobody writes to its files.
Status WriteAgain(Storage& storage, const std::string& directory, const std::vector<UnprovenBlock>& blocks);

}  // namespace deut::tc

#endif  // TC_REDO_LOG_RECOVERY_H_
