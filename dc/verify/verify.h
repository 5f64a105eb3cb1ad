// Verify: the offline check of a data component's directory: every block, every page, the trees of both checkpoints.
//
// What is checked
//   dc_state       format, checksum
//   checkpoints    the two newest that are there: format, checksums, that they name a page store (checkpoint_rules.h); the older one is what the
//                  newer one calls stable, at least (rule S2)
//   segments       every file: header, and every part in what a checkpoint names of it (segment_check.h)
//   trees          of each checkpoint that can be read: every page, from the roots (tree_walk.h)
// What no checkpoint needs is counted and is no damage: what was appended after the last one, files left of a crash, images that no page names.
// Changes nothing (data_directory.h). Any bytes may be there: none crashes it, and no length that is read is believed before it is bounded by
//   the file's. Memory: of the checkpoint that is looked at (checkpoint_contents.h), some bytes for a segment, some pages.
// Thread-safety: one thread.
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
  size_t max_findings = 1000;  // more are counted only
};

// kOlderPage: of an image that only the older checkpoint names.
enum class Damaged : uint8_t { kState, kCheckpoint, kSegment, kPage, kOlderPage };

struct Finding {
  Damaged what = Damaged::kState;
  std::string text;    // which file, offset, page; what is wrong
  std::string remedy;  // what to do
};

struct LevelReport {
  uint64_t pages = 0;
  uint64_t bytes = 0;    // of base parts
  uint64_t largest = 0;  // of them
  uint64_t entries = 0;  // records and tombstones; children
};

struct TableReport {
  TableId id;
  std::string name;
  PageId root;        // 0: dropped
  TableId last = id;  // of dropped ones: those from `id` to this one; else `id`
  uint64_t records = 0, tombstones = 0;
  uint64_t delta_parts = 0;
  std::vector<LevelReport> levels;  // from the leaves
};

struct CheckpointReport {
  CheckpointHead head;  // its number in any case
  bool readable = false;
  uint64_t pages = 0;  // that have an image
  uint64_t segments = 0;
  uint64_t live_bytes = 0;                            // of parts of pages that a root leads to
  uint64_t unreached_pages = 0, unreached_bytes = 0;  // images that no page names
  uint64_t damages = 0;                               // of its own and of its pages
  std::vector<TableReport> tables;

  bool whole() const { return readable && damages == 0; }
};

struct VerifyReport {
  std::optional<DcState> state;
  std::vector<CheckpointReport> checkpoints;  // the newest first
  std::vector<SegmentReport> segments;        // that are there
  std::vector<std::string> notes;             // what is unusual, and no damage
  std::vector<Finding> findings;
  uint64_t damages = 0;  // findings, with those that are not kept

  bool clean() const { return damages == 0; }
  // Of the newest checkpoint.
  uint64_t pages() const { return checkpoints.empty() ? 0 : checkpoints[0].pages; }
};

// An error: it cannot be checked. UNAVAILABLE: it is in use; INVALID_ARGUMENT, NOT_FOUND: no such directory; VERSION_MISMATCH: it was written
// by a newer program.
Result<VerifyReport> VerifyDirectory(Storage& storage, Runtime& runtime, const std::string& directory,
                                     const VerifyOptions& options);

// The report for a person: some lines about what is there; a line for each finding; and at the end one that begins with "dc verify: ".
std::string ReportText(const VerifyReport& report);
// That line alone, without its end.
std::string VerdictLine(const VerifyReport& report);

}  // namespace deut::dc

#endif  // DC_VERIFY_VERIFY_H_
