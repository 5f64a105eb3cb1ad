// The checkpoint file `checkpoint-<12 hexadecimal digits>`: a mapping-table checkpoint: which parts each page consisted of at one moment, with
// the position that those pages contain (rule X6), tables and segments. Written once, in order, through a buffer of one block.
// Format with grammar: dc/docs/page_store.md. [LLAMA, PVLDB 6(10), 2013, section 4.4: checkpoints for recovery]
//
// Order of calls: AddTable (ascending ids), AddSegment (ascending numbers), AddPage (ascending ids), Finish.
// Errors. RESOURCE_EXHAUSTED: no space; the unfinished file is removed and the checkpoint may be tried again. CORRUPTION, naming file
//   and offset, for a file that is not exactly right: order, counts, addresses outside of the named segments, roots without an image,
//   anything behind the end. A failed sync is IO_ERROR, and the process must end.
// Thread-safety: one thread at a time. Ownership: borrows the storage.
#ifndef DC_PAGE_STORE_CHECKPOINT_FILE_H_
#define DC_PAGE_STORE_CHECKPOINT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/checkpoint_number.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"
#include "dc/page_store/segment_format.h"

namespace deut::dc {

constexpr size_t kMaxPartsOfImage = 8;
// Of a checkpoint that is being written.
constexpr std::string_view kTemporarySuffix = ".tmp";

struct CheckpointHead {
  CheckpointNumber number = {};
  DcId dc = {};
  DcIncarnation incarnation = {};  // the life that wrote it
  Position position = {};          // every update up to here is in the pages
  Position stable = {};            // the position of the checkpoint that was the newest before this one, or its own
  PageId next_page = {};           // above every page id ever used
  uint64_t next_segment = 1;       // above every segment number ever used
  friend bool operator==(const CheckpointHead&, const CheckpointHead&) = default;
};

struct CheckpointTable {
  TableId id = {};
  PageId root = {};            // 0: the table was dropped
  std::string_view name = {};  // 1 to kMaxTableNameBytes bytes; none if dropped
  uint32_t dropped_after = 0;  // of a dropped one: this many ids behind `id` were dropped, too
  TableId last() const { return TableId(id.value + dropped_after); }
  bool dropped() const { return root.value == 0; }
  friend bool operator==(const CheckpointTable&, const CheckpointTable&) = default;
};

struct CheckpointCounts {
  uint64_t tables = 0, segments = 0, pages = 0;
  friend bool operator==(const CheckpointCounts&, const CheckpointCounts&) = default;
};

class CheckpointWriter {
 public:
  // Begins NAME.tmp; what is there under that name is overwritten.
  static Result<std::unique_ptr<CheckpointWriter>> Create(Storage& storage, std::string directory,
                                                          const CheckpointHead& head);
  // Removes NAME.tmp unless Finish answered OK.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // After an error every call answers it again. INTERNAL: what the reader would refuse (checkpoint_rules.h).
  Status AddTable(const CheckpointTable& table);
  Status AddSegment(const SegmentExtent& segment);
  // 1 to kMaxPartsOfImage addresses, the newest part first.
  Status AddPage(PageId page, std::span<const PageAddress> newest_first);
  // Syncs the file, reads it back and verifies it whole, renames it to NAME, syncs the directory.
  Status Finish();

  const CheckpointHead& head() const;
  uint64_t bytes_written() const;

 private:
  struct Core;
  explicit CheckpointWriter(std::unique_ptr<Core> core);
  const std::unique_ptr<Core> core_;
};

// Gets what a checkpoint holds, in the order of the file. What it has got counts only if the reader answers OK at the end. An error of its
// own ends the reading.
class CheckpointVisitor {
 public:
  virtual ~CheckpointVisitor() = default;
  virtual Status OnHead(const CheckpointHead& head) = 0;
  virtual Status OnTable(const CheckpointTable& table) = 0;
  virtual Status OnSegment(const SegmentExtent& segment) = 0;
  virtual Status OnPage(PageId page, std::span<const PageAddress> newest_first) = 0;
};

// Reads one from start to end. The visitor may be null: the file is verified. `dc`: whose it must be.
Result<CheckpointCounts> ReadCheckpoint(Storage& storage, std::string_view directory, CheckpointNumber number, DcId dc,
                                        CheckpointVisitor* visitor);
// The same for a file under any name.
Result<CheckpointCounts> ReadCheckpointFile(Storage& storage, const std::string& path, CheckpointNumber number, DcId dc,
                                            CheckpointVisitor* visitor);

std::string CheckpointName(CheckpointNumber number);
// False if `name` is no checkpoint's.
bool ParseCheckpointName(std::string_view name, CheckpointNumber* number);

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_CHECKPOINT_FILE_H_
