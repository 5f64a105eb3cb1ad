// LogRecord: one record of the redo log as its readers see it, and the parts that writers pass in. The bytes are in
// FORMAT.md.
// A transaction whose updates fit one record is a single COMMIT. A larger one is CHUNKs followed by a COMMIT that
// lists their LSNs.
// Only full after-images and tombstones of single keys are logged (S10). Records name (TC epoch, timestamp), never
// the timestamp alone (D3). A commit's LSN is the position of its COMMIT record.
// Thread-safety: values. Ownership: views point into the buffer that they were decoded from (a reader's, until its
// next call).
#ifndef TC_LOG_FORMAT_LOG_RECORD_H_
#define TC_LOG_FORMAT_LOG_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/transaction_id.h"
#include "protocol/log_batch.h"

namespace deut::tc {

// The numbers are on disk and never reused.
enum class RecordType : uint8_t {
  kCommit = 1,
  kChunk = 2,
  kLowWater = 3,           // X1
  kReserveTimestamps = 4,  // D3
  kEpochStart = 5,         // D3, X5
  kEndOfEpoch = 6,         // D2: the logged cut
  kRedoStart = 7,          // S2
  kKnownDc = 8,            // X4
  kNamedCommit = 9,        // a commit to which its client gave an id
  kOutcomeHorizon = 10,    // ids of commits with earlier timestamps may have been forgotten
  kTrimmed = 11,           // S2: the files of the log before an LSN may have been removed
};

// The log's record of a commit with an id. It answers a client that lost the commit's own answer.
struct CommitOutcome {
  TransactionId id;
  Timestamp timestamp;
  Lsn commit_lsn;
  friend bool operator==(const CommitOutcome&, const CommitOutcome&) = default;
};

// Kinds: kPut, kDelete, kCreateTable or kDropTable (T1: the key is the table's name). The value of a create is the
// table's options (protocol/table_options.h), and empty without options; a drop has no value. A transaction's sequences
// start at 1 and rise.
struct Update {
  LogEntryKind kind = LogEntryKind::kPut;
  uint32_t sequence = 0;
  TableId table;
  std::string_view key;
  std::string_view value;
};

// One put of a committed transaction, named by its place in the log. A version that is paged out keeps the place instead
// of its value (S9).
struct LoggedPut {
  Lsn place;  // LSN of the update's first byte
  TableId table;
  uint32_t sequence = 0;
  uint32_t value_bytes = 0;
  std::string_view key;
};

// The encoded updates of a COMMIT or CHUNK. Decoding has checked all of them, so iteration trusts the bytes.
class UpdateList {
 public:
  UpdateList() = default;
  UpdateList(uint32_t size, std::string_view bytes) : size_(size), bytes_(bytes) {}

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Update;
    using difference_type = ptrdiff_t;
    using pointer = const Update*;
    using reference = const Update&;
    Iterator(uint32_t left, std::string_view bytes) : left_(left), rest_(bytes) { Read(); }
    const Update& operator*() const { return update_; }
    const Update* operator->() const { return &update_; }
    Iterator& operator++() {
      --left_;
      Read();
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.left_ == b.left_; }

   private:
    void Read();
    uint32_t left_;
    std::string_view rest_;
    Update update_;
  };
  Iterator begin() const { return Iterator(size_, bytes_); }
  Iterator end() const { return Iterator(0, {}); }

  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  uint32_t size_ = 0;
  std::string_view bytes_;
};

// The LSNs of a COMMIT's chunks, in the order of their updates.
class ChunkList {
 public:
  ChunkList() = default;
  explicit ChunkList(std::string_view bytes) : bytes_(bytes) {}
  size_t size() const { return bytes_.size() / sizeof(uint64_t); }
  bool empty() const { return bytes_.empty(); }
  Lsn operator[](size_t index) const;

 private:
  std::string_view bytes_;
};

// The stable position of a DC when a redo start was computed (S2).
struct DcPosition {
  DcId dc;
  Position stable;
  friend bool operator==(const DcPosition&, const DcPosition&) = default;
};

// The LSN from which the log is kept and resent, with the positions from which it was computed. A DC whose stable
// position is below the one here must be refused (S2).
struct RedoStart {
  Lsn lsn;
  std::vector<DcPosition> stable;
  friend bool operator==(const RedoStart&, const RedoStart&) = default;
};

// Where recovery ended the log of earlier epochs (D2): the LSN, and the place of the first byte that was not taken.
struct Cut {
  Lsn lsn;
  uint64_t segment = 0;
  uint64_t offset = 0;
  friend bool operator==(const Cut&, const Cut&) = default;
};

struct LogRecord {
  Lsn lsn;                                // the record's first byte
  Lsn end;                                // one past its last; the next record's LSN
  RecordType type = RecordType::kCommit;  // kNamedCommit is shown as kCommit with an id
  TcEpoch epoch;                          // kCommit, kChunk: of the transaction. kEpochStart: the one that begins
  Timestamp
      timestamp;  // kCommit, kChunk: of the transaction. kLowWater: L. kReserveTimestamps: all below it may be drawn.
                  // kOutcomeHorizon: ids of commits with earlier timestamps may be gone
  Lsn trimmed;    // kTrimmed
  TransactionId id;      // kCommit
  UpdateList updates;    // kCommit: those not in chunks; kChunk
  ChunkList chunks;      // kCommit
  TcId tc;               // kEpochStart
  uint64_t nonce = 0;    // kEpochStart
  Cut cut;               // kEndOfEpoch
  RedoStart redo_start;  // kRedoStart
  DcId dc;               // kKnownDc
};

}  // namespace deut::tc

#endif  // TC_LOG_FORMAT_LOG_RECORD_H_
