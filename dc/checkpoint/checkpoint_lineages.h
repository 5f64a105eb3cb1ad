// CheckpointLineages: which images each checkpoint has to write, and its two lineages (page_store/checkpoint_lineage.h).
// The cost of a checkpoint follows the changes, not the size of the store.
//
// Checkpoints belong to the two lineages in turn. For each lineage there is a bit for each page id: its image has
// changed since the last checkpoint of that lineage was captured. The mapping table has a third set of such bits,
// into which all threads write (mapping_table.h); this class moves them into both of its own.
// Steps of a checkpoint, on its thread:
//   Begin     before the gate is closed: takes the marks; captures the images of all pages that have changed, and of the
//             next range of ids. This is nearly all
//   (the thread waits until all guards held now have ended)
//   End       while the gate is closed: takes the marks again, and captures these images anew. They replace those of
//             Begin
//   AddPages  writes the captured images
//   Completed the lineage has this file, and no changes. A checkpoint that fails leaves its changes for the next one
// Why nothing is missed: an image that is exchanged before End reads it has a mark in Begin or in End, because the
// guards of Begin have ended (mapping_table.h). One that was not exchanged since Begin is the one that Begin has read.
// One that has no bit is that of the lineage's last checkpoint.
// Both lineages get each mark (`checkpoint.both_lineages`). So a checkpoint writes the changes of about two intervals.
// A checkpoint also notes which changes are newer than the checkpoint before it. A start needs this: it opens one
// lineage, and the next checkpoint belongs to the other one.
// Ranges. Each checkpoint writes a range of ids completely: as many bytes as its changes, and 1/64 of all. The ranges
// follow one another and go round. Files that the newer ones make superfluous are dropped, so a lineage has about one
// round of them: at most 2 * 64 files, and three times the bytes of a complete file (the first round has the complete
// file besides). In these cases a file is complete, and the lineage has no other:
//   - a small store: its changes and the range are not less than that
//   - the lineage is not known: the first two checkpoints; after a start that has passed over a damaged checkpoint;
//     after damage was found (ForgetFiles)
//   - the disk is short of space: old files are removed then, and the reserve has room for one complete file
// Thread-safety: one thread at a time. Ownership: borrows the table and the domain. Errors: those of the writer.
#ifndef DC_CHECKPOINT_CHECKPOINT_LINEAGES_H_
#define DC_CHECKPOINT_CHECKPOINT_LINEAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/bwtree/page_bits.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/checkpoint_lineage.h"

namespace deut::dc {

struct CheckpointLineagesOptions {
  uint64_t min_range_bytes = 256 << 10;  // a range has at least these bytes
};

// The lineages with which an incarnation begins. Empty: not known.
struct RecoveredLineages {
  CheckpointLineage opened;    // of the checkpoint that was opened, with its own file
  CheckpointLineage previous;  // of the one before
};

class CheckpointLineages {
 public:
  CheckpointLineages(MappingTable& pages, ReclamationDomain& domain, const RecoveredLineages& found,
                     const CheckpointLineagesOptions& options);

  // The next two checkpoints need no file that is there now. The first of them does not name the other lineage, so the
  // second one is complete also after a start between them.
  void ForgetFiles();
  // REQUIRES: no guard is held; SegmentStore::BeginCheckpoint was called.
  void Begin(bool complete);
  // REQUIRES: all guards held in Begin have ended. No page is split, and no table created or dropped.
  void End();
  // Sets the fields that say where the images are.
  void FillHead(CheckpointHead* head) const;
  Status AddPages(CheckpointWriter* writer) const;
  void Completed(const CheckpointAncestor& file);
  // Frees the captured images.
  void Clear();

  // Bound of the bytes of a complete file's pages.
  uint64_t CompleteBytes() const;
  // Memory of captured images and bits.
  uint64_t memory_bytes() const;

 private:
  // For each page: (id << 8) plus its number of parts, then the parts' addresses. Compact, because it counts against the
  // memory budget.
  using Images = std::vector<uint64_t>;

  struct Lineage {
    CheckpointLineage files;  // the oldest first
    PageBits changed;
    PageId next_range = PageId(1);
  };

  Lineage& running() { return lineages_[1 - newest_]; }
  const Lineage& running() const { return lineages_[1 - newest_]; }
  // Moves the mapping table's marks to both lineages, and calls `use(word, marks)`.
  template <typename Use>
  void TakeMarks(Use&& use);
  bool MustBeComplete(uint64_t changed_bytes, uint64_t range_bytes) const;
  // Captures the ids from `first` to the one before `end`: those with a bit in `of`, if it is not null, else all that
  // have an image, or have lost it since the newest checkpoint, until they have `bytes` bytes. Returns the id behind the
  // last one.
  PageId Capture(PageId first, PageId end, const PageBits* of, uint64_t bytes);
  void CaptureImage(uint64_t number, bool without_parts, Images* to) const;
  // Drops files that the new one makes superfluous.
  void SetAncestors();

  MappingTable& pages_;
  ReclamationDomain& domain_;
  const CheckpointLineagesOptions options_;
  std::array<Lineage, 2> lineages_;
  size_t newest_ = 0;  // the lineage of the newest checkpoint
  // The running checkpoint's state.
  PageRange range_;
  PageId next_page_;
  CheckpointLineage ancestors_;
  Images images_;  // of Begin
  Images later_;   // of End
};

}  // namespace deut::dc

#endif  // DC_CHECKPOINT_CHECKPOINT_LINEAGES_H_
