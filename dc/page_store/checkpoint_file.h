// The checkpoint file `checkpoint-<12 hexadecimal digits>`: a mapping-table checkpoint. It names the parts of which
// each page consisted at one moment, the position that those pages contain (rule X6), tables and segments. It is
// written once, in order, through a buffer of one block. A file with ancestors (checkpoint_lineage.h) has only the pages
// that have changed, and a range of ids completely; a reader of the checkpoint reads its ancestors, too.
// Format with grammar: dc/docs/page_store.md. [LLAMA, PVLDB 6(10), 2013, section 4.4: checkpoints for recovery]
//
// Order of calls: AddTable (ascending ids), AddSegment (ascending numbers), AddPage (ascending ids), Finish.
// Errors:
//   RESOURCE_EXHAUSTED: no space. The unfinished file is removed, and the caller may try the checkpoint again.
//   CORRUPTION, naming file and offset: the file is not exactly right. Examples are its order, counts, addresses
//   outside the named segments, roots without an image, or anything behind the end.
//   IO_ERROR: a sync failed, and the process must end.
// Thread-safety: one thread at a time. Ownership: borrows the storage.
#ifndef DC_PAGE_STORE_CHECKPOINT_FILE_H_
#define DC_PAGE_STORE_CHECKPOINT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/base/compression.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/checkpoint_lineage.h"
#include "dc/page_store/checkpoint_number.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"
#include "dc/page_store/segment_format.h"

namespace deut::dc {

constexpr size_t kMaxPartsOfImage = 8;
// The suffix of a checkpoint that is being written.
constexpr std::string_view kTemporarySuffix = ".tmp";

struct CheckpointHead {
  CheckpointNumber number = {};
  DcId dc = {};
  DcIncarnation incarnation = {};  // the incarnation that wrote it
  Position position = {};          // the pages contain every update up to here
  Position stable = {};            // the position of the newest checkpoint before this one, or this one's own
  PageId next_page = {};           // above every page id ever used
  uint64_t next_segment = 1;       // above every segment number ever used
  bool has_table_options = false;  // a table may have other options than those of CheckpointTable
  PageRange pages = {};            // the ids whose images the file has completely; all, unless it has ancestors
  // The other files of its lineage, the oldest first.
  CheckpointLineage ancestors = {};
  // The lineage of the checkpoint before, for the one after this. Empty: that one has to be complete.
  CheckpointLineage previous = {};
  friend bool operator==(const CheckpointHead&, const CheckpointHead&) = default;
};

struct CheckpointTable {
  TableId id = {};
  PageId root = {};                              // 0: the table was dropped
  std::string_view name = {};                    // 1 to kMaxTableNameBytes bytes; empty if dropped
  uint32_t dropped_ids_behind = 0;               // if dropped: this many ids behind `id` were dropped, too
  Compression compression = Compression::kNone;  // of its pages; another one only if the head has_table_options
  TableId last() const { return TableId(id.value + dropped_ids_behind); }
  bool dropped() const { return root.value == 0; }
  friend bool operator==(const CheckpointTable&, const CheckpointTable&) = default;
};

// `pages`: those with an image; of a single file, those with a record.
struct CheckpointCounts {
  uint64_t tables = 0, segments = 0, pages = 0;
  friend bool operator==(const CheckpointCounts&, const CheckpointCounts&) = default;
};

class CheckpointWriter {
 public:
  // Begins NAME.tmp; an existing file of that name is overwritten.
  static Result<std::unique_ptr<CheckpointWriter>> Create(Storage& storage, std::string directory,
                                                          const CheckpointHead& head);
  // Removes NAME.tmp unless Finish returned OK.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // After an error every call returns that error again. INTERNAL: the reader would refuse the record
  // (checkpoint_rules.h).
  Status AddTable(const CheckpointTable& table);
  Status AddSegment(const SegmentExtent& segment);
  // `newest_first`: 1 to kMaxPartsOfImage addresses, the newest part first. None, if the head names ancestors or the
  // lineage before: the page has no image any more. `recent`: the image is not that of the checkpoint before.
  Status AddPage(PageId page, std::span<const PageAddress> newest_first, bool recent = false);
  // Syncs the file, reads it back and verifies all of it, renames it to NAME, and syncs the directory.
  Status Finish();

  const CheckpointHead& head() const;
  uint64_t bytes_written() const;
  // The file as later ones name it. REQUIRES: Finish returned OK.
  CheckpointAncestor AsAncestor() const;

 private:
  struct Core;
  explicit CheckpointWriter(std::unique_ptr<Core> core);
  const std::unique_ptr<Core> core_;
};

// Receives the content of a checkpoint: head, tables, segments, then pages. The content counts only if the reader
// returns OK at the end. An error that a method returns ends the reading.
class CheckpointVisitor {
 public:
  virtual ~CheckpointVisitor() = default;
  virtual Status OnHead(const CheckpointHead& head) = 0;
  virtual Status OnTable(const CheckpointTable& table) = 0;
  virtual Status OnSegment(const SegmentExtent& segment) = 0;
  // Called when the segments are complete, before the first page.
  virtual Status BeforePages() { return Status::Ok(); }
  // Called once for each page that has an image. In ascending order, if the checkpoint has no ancestors and one thread
  // reads it; else in any order, by several threads at once if there are several.
  virtual Status OnPage(PageId page, std::span<const PageAddress> newest_first) = 0;
  // The page's image, or its lack of one, is not that of the checkpoint before. Called like OnPage, with an id below
  // next_page.
  virtual void OnRecentChange(PageId /*page*/) {}
  // Called behind all pages, once for each segment: the bytes (PageAddress::length_bound) of all parts that the
  // checkpoint names in it.
  virtual Status OnLiveBytes(uint64_t /*segment*/, uint64_t /*bytes*/) { return Status::Ok(); }
  // The checkpoint's own file, as later ones name it. Called last.
  virtual void OnFile(const CheckpointAncestor& /*file*/) {}
};

struct CheckpointReadOptions {
  Runtime* runtime = nullptr;  // required for more than one thread
  int threads = 1;
  // Called after each transfer, with the file and the bytes read; on several threads at once if there are several. An
  // error ends the reading. May be null.
  std::function<Status(const std::string& path, uint64_t bytes)> on_read = nullptr;
};

// Reads a checkpoint and its ancestors. A null visitor only verifies them. `dc`: the DC to which they must belong. An
// ancestor that is missing, or another one than the checkpoint names, is CORRUPTION.
Result<CheckpointCounts> ReadCheckpoint(Storage& storage, std::string_view directory, CheckpointNumber number, DcId dc,
                                        CheckpointVisitor* visitor, const CheckpointReadOptions& options = {});
// Verifies one file under any name, without its ancestors: it has this head, and everything in it is right.
Result<CheckpointCounts> VerifyCheckpointFile(Storage& storage, const std::string& path, const CheckpointHead& head);

std::string CheckpointName(CheckpointNumber number);
// False if `name` is not a checkpoint's name.
bool ParseCheckpointName(std::string_view name, CheckpointNumber* number);

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_CHECKPOINT_FILE_H_
