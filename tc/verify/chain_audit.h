// ChainAudit: checks properties of a log's records that recovery does not need, and that every correct log has. It also counts the records.
//
//   D3  a transaction names the epoch of its block, and a timestamp that the same start of the TC has reserved before it, and that no other commit
//       has; reservations rise; the log of a start begins with its EPOCH_START (or END_OF_EPOCH before it); a segment's header repeats the state of
//       the records before it
//   D4  a commit's chunks are in the log before it, are its own, and all its sequences rise
//   X1  no commit below L follows a low-water record L
//   S2  a redo start is the LSN of a record, and not beyond its own record; it and the stable positions never go back; the data components are
//       known; no commit that began below it is beyond the stable positions
//   S2  the log begins no later than its TRIMMED record says; otherwise its oldest files are missing. A start serves without them, because redo does
//       not need them, and answers for ids of their commits that they are too old to know
//   D2  an end of epoch names the place where the log before it ended; durable LSNs never go back
//
// Memory: one bit for 4 bytes of log, one for each timestamp of a start, some bytes for each chunk whose commit has not been found yet.
// Thread-safety: one thread.
#ifndef TC_VERIFY_CHAIN_AUDIT_H_
#define TC_VERIFY_CHAIN_AUDIT_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/chain_visitor.h"
#include "tc/log_format/log_record.h"
#include "tc/verify/lsn_set.h"

namespace deut::tc {

struct ChainCounts {
  struct Records {
    uint64_t count = 0, bytes = 0;
  };
  std::array<Records, static_cast<size_t>(RecordType::kTrimmed) + 1> records;  // by type
  uint64_t segments = 0, blocks = 0, block_bytes = 0;
  uint64_t starts = 0;  // starts of the TC that have a segment
  uint64_t updates = 0;
  uint64_t orphans = 0;  // chunks of transactions that did not commit
  uint64_t behind_blocks = 0, behind_bytes = 0;

  const Records& of(RecordType type) const { return records[static_cast<size_t>(type)]; }
};

class ChainAudit final : public ChainVisitor {
 public:
  // Calls `find` for each contradiction of a rule, with the rule's name and a text that states the contradiction and its place.
  ChainAudit(std::string directory, std::function<void(std::string_view rule, std::string text)> find)
      : directory_(std::move(directory)), find_(std::move(find)) {}

  void OnSegment(const BlockHeader& header, const LogState& repeated) override;
  void OnBlock(const BlockHeader& header) override;
  void OnRecord(const LogRecord& record) override;
  void OnEnd(const Cut& end, const Status& why) override;
  void OnBlockBehindEnd(const BlockHeader& header) override;

  const ChainCounts& counts() const { return counts_; }
  // The state after the last record.
  const LogState& state() const { return state_; }
  Lsn first_lsn() const { return first_lsn_; }
  // The place where the chain ends, and the reason; nothing if recovery has given up before the end.
  const std::optional<Cut>& end() const { return end_; }
  const Status& why() const { return why_; }

 private:
  // Chunks, and commits with chunks, to which a later record may refer.
  struct Chunk {
    Timestamp timestamp;
    uint32_t first_sequence = 0, last_sequence = 0;
  };
  struct LargeCommit {
    Lsn first, commit;
  };

  template <typename... Pieces>
  void Find(std::string_view rule, const Pieces&... pieces);
  void CheckHeader(const BlockHeader& header, const LogState& repeated);
  void CheckTransaction(const LogRecord& record);
  void CheckCommit(const LogRecord& record);
  void CheckLifeBegins(const LogRecord& record);
  void CheckRedoStart(const LogRecord& record);
  // Checks that no commit that began below the redo start lies beyond one of the stable positions of that redo start.
  void CheckUnstableCommitsAreKept(const RedoStart& start);
  void CheckBeginning();
  void EndEpoch();

  const std::string directory_;
  const std::function<void(std::string_view rule, std::string text)> find_;

  ChainCounts counts_;
  LogState state_;
  Lsn first_lsn_;
  uint64_t first_segment_ = 0;
  Timestamp drawn_before_;   // timestamps below it may have been drawn before first_lsn_
  Lsn trimmed_ = kFirstLsn;  // the highest LSN up to which the log was trimmed, by its TRIMMED records
  std::optional<Cut> end_;
  Status why_;

  BlockHeader block_;  // the header of the present block
  Lsn lsn_;            // the LSN of the present record
  Lsn durable_;        // the highest durable LSN that a block has named
  // The end of the chain before the present segment; nothing in the first segment.
  std::optional<Cut> before_;
  bool life_begins_ = false;  // a start has begun, and its EPOCH_START has not been read yet
  Timestamp life_from_;       // the lower bound of the timestamps of the present start
  std::optional<LsnSet> records_, commits_;
  std::vector<LargeCommit> large_;                      // commits with chunks
  absl::flat_hash_map<uint64_t, Chunk> chunks_;         // this start's chunks, by LSN, until their commit is read
  absl::flat_hash_map<uint64_t, uint64_t> timestamps_;  // timestamps of this start's commits, 64 in an entry
};

}  // namespace deut::tc

#endif  // TC_VERIFY_CHAIN_AUDIT_H_
