// Verify: the offline check of a data component's directory: every block, every page, the trees of both checkpoints.
//
// It checks:
//   dc_state       format, checksum
//   checkpoints    the two newest ones that exist, with their ancestors: format, checksums, consistency of the page store that they name
//                  (checkpoint_rules.h). The position of the older one is at least the stable position of the newer
//                  one (rule S2)
//   segments       every file: its header, and every part in the bytes that a checkpoint names (segment_check.h)
//   trees          of each readable checkpoint: every page, from the roots (tree_walk.h)
//   hot pages      the list of the pages that were in memory, if there is one: format, checksum. Its ids are not
//                  compared with anything (page_store/hot_page_list.h)
// Data that no checkpoint needs is counted and is no damage: parts appended after the last checkpoint, files left by
// a crash, images that no page names.
// It changes nothing (data_directory.h). The files may contain any bytes: none crashes the check, and every length is
// bounded by the file's length before it is used.
// Memory: one checkpoint (checkpoint_contents.h), some bytes for each segment, some pages. Thread-safety: one thread.
#ifndef DC_VERIFY_VERIFY_H_
#define DC_VERIFY_VERIFY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/server/state_file.h"
#include "dc/verify/segment_check.h"

namespace deut::dc {

struct VerifyOptions {
  size_t max_findings = 1000;  // further findings are only counted
};

// kOlderPage: a page whose image only the older checkpoint names.
enum class Damaged : uint8_t { kState, kCheckpoint, kSegment, kPage, kOlderPage, kHotPages };

struct Finding {
  Damaged what = Damaged::kState;
  std::string text;    // file, offset, page, and the fault
  std::string remedy;  // what the operator can do
};

struct LevelReport {
  uint64_t pages = 0;
  uint64_t bytes = 0;    // bytes of base parts
  uint64_t largest = 0;  // the largest base part
  uint64_t entries = 0;  // records and tombstones of a leaf; children of an inner page
};

struct TableReport {
  TableId id;
  std::string name;
  PageId root;        // 0: the table was dropped
  TableId last = id;  // a dropped entry covers the ids from `id` to this one; else `id`
  Compression compression = Compression::kNone;
  uint64_t records = 0, tombstones = 0;
  uint64_t delta_parts = 0;
  std::vector<LevelReport> levels;  // the leaves first
};

struct CheckpointReport {
  CheckpointHead head;  // the number is always set
  bool readable = false;
  uint64_t pages = 0;  // pages that have an image
  uint64_t segments = 0;
  uint64_t live_bytes = 0;                            // bytes of the parts of reachable pages
  uint64_t unreached_pages = 0, unreached_bytes = 0;  // images that no page names
  uint64_t damages = 0;                               // damages of the checkpoint and of its pages
  std::vector<TableReport> tables;

  bool whole() const { return readable && damages == 0; }
};

struct VerifyReport {
  std::optional<DcState> state;
  std::vector<CheckpointReport> checkpoints;  // newest first
  std::vector<SegmentReport> segments;        // existing segments
  std::optional<uint64_t> hot_pages;          // pages of the list of hot pages, if it is there and intact
  std::vector<std::string> notes;             // unusual facts that are no damage
  std::vector<Finding> findings;
  uint64_t damages = 0;  // all findings, including those that are not kept

  bool clean() const { return damages == 0; }
  // Pages of the newest checkpoint.
  uint64_t pages() const { return checkpoints.empty() ? 0 : checkpoints[0].pages; }
};

// Checks a directory. An error means that it cannot be checked. UNAVAILABLE: it is in use. INVALID_ARGUMENT,
// NOT_FOUND: no such directory. VERSION_MISMATCH: a newer program has written it.
Result<VerifyReport> VerifyDirectory(Storage& storage, Runtime& runtime, const std::string& directory,
                                     const VerifyOptions& options);

// Returns the report for a person: some lines about the content, a line for each finding, and a last line that begins
// with "dc verify: ".
std::string ReportText(const VerifyReport& report);
// Returns only that line, without its end.
std::string VerdictLine(const VerifyReport& report);

}  // namespace deut::dc

#endif  // DC_VERIFY_VERIFY_H_
