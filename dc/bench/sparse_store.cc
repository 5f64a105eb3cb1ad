#include "dc/bench/sparse_store.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/base/incarnation_number.h"
#include "dc/bench/bench_store.h"
#include "dc/bench/sparse_segments.h"
#include "dc/bench/sparse_tree.h"
#include "dc/bwtree/page_image.h"
#include "dc/checkpoint/inner_pages.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/checkpoint_set.h"
#include "dc/server/state_file.h"

namespace deut::dc::bench {
namespace {

constexpr uint64_t kDeadImages = 3;
// The position of both checkpoints.
constexpr Position kPosition{Lsn(1), 1};

// The number of leaves with which the segments have about the wanted bytes.
uint64_t LeavesFor(const SparseStoreOptions& options, const SparseFill& fill) {
  const auto bytes = static_cast<double>(options.bytes);
  const auto leaf_bytes = static_cast<double>(PartBytesInUnits(fill.leaf_bytes));
  const auto every = static_cast<double>(options.dead_every);
  const double live = options.dead_every == 0 ? 1 : (every - 1 + 1.0 / (kDeadImages + 1)) / every;
  return std::max<uint64_t>(static_cast<uint64_t>(bytes / leaf_bytes * live), 2);
}

class Maker {
 public:
  Maker(Storage& storage, const std::string& directory, const SparseStoreOptions& options)
      : storage_(storage),
        directory_(directory),
        pages_(Concat(directory, "/pages")),
        options_(options),
        fill_(options.tree),
        tree_(fill_, LeavesFor(options, fill_)),
        sampled_(SampledLeaves(tree_.leaves())),
        segments_(storage, pages_, kSparseDc, options.segment_bytes),
        addresses_(tree_.next_page().value) {}

  Result<SparseStore> Make() {
    DEUT_RETURN_IF_ERROR(storage_.CreateDirectory(pages_));
    DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock,
                          storage_.Lock(Concat(directory_, "/", StateFile::kLockName)));
    DEUT_RETURN_IF_ERROR(PutPages());
    DEUT_RETURN_IF_ERROR(WriteCheckpoints());
    DEUT_RETURN_IF_ERROR(StateFile(storage_, directory_)
                             .Save({.dc = kSparseDc,
                                    .number = IncarnationNumber(1),
                                    .incarnation = DcIncarnation(1),
                                    .fence = {},
                                    .oldest_kept = CheckpointNumber(1)}));
    return Made();
  }

 private:
  Status PutPages() {
    size_t next_sampled = 0;
    for (uint64_t leaf = 0; leaf < tree_.leaves(); ++leaf) {
      const bool sampled = next_sampled < sampled_.size() && sampled_[next_sampled] == leaf;
      next_sampled += sampled ? 1 : 0;
      DEUT_RETURN_IF_ERROR(PutLeaf(leaf, sampled || options_.all_leaves));
      for (uint8_t level = 1; level <= tree_.root_level() && tree_.EndsPage(level, leaf); ++level) {
        DEUT_RETURN_IF_ERROR(Put(level, tree_.PageOver(level, leaf)));
      }
    }
    return segments_.End();
  }

  Status PutLeaf(uint64_t leaf, bool written) {
    const bool with_dead = options_.dead_every != 0 && segments_.segment() % options_.dead_every == 0;
    for (uint64_t i = 0; with_dead && i < kDeadImages; ++i) {
      DEUT_RETURN_IF_ERROR(options_.all_leaves ? Put(0, leaf) : PutHole(leaf));
    }
    return written ? Put(0, leaf) : PutHole(leaf);
  }

  // The page's last image that is put is the one that the checkpoints name.
  Status Put(uint8_t level, uint64_t page) {
    image_.clear();
    EncodeBaseImage(*tree_.Build(level, page), &image_);
    DEUT_CHECK(level != 0 || image_.size() == tree_.LeafImageBytes(page));  // else the holes have wrong lengths
    PartHeader header;
    header.level = level;
    header.page = tree_.IdOf(level, page);
    header.table = kBenchTable;
    DEUT_ASSIGN_OR_RETURN(addresses_[header.page.value], segments_.Append(header, image_));
    return Status::Ok();
  }

  Status PutHole(uint64_t leaf) {
    DEUT_ASSIGN_OR_RETURN(addresses_[tree_.IdOf(0, leaf).value], segments_.AppendHole(tree_.LeafImageBytes(leaf)));
    return Status::Ok();
  }

  // Writes two checkpoints of the same pages, one of each lineage. So the first checkpoint of the data component
  // continues a lineage, as in a store that has grown.
  Status WriteCheckpoints() {
    DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointSet> set,
                          CheckpointSet::Open(storage_, pages_, kSparseDc, CheckpointNumber(0)));
    CheckpointLineage previous;
    for (int i = 0; i < 2; ++i) {
      CheckpointHead head;
      head.number = set->next();
      head.dc = kSparseDc;
      head.incarnation = DcIncarnation(1);
      head.position = head.stable = kPosition;
      head.next_page = tree_.next_page();
      head.next_segment = segments_.segment() + 1;
      head.previous = previous;
      DEUT_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointWriter> writer, CheckpointWriter::Create(storage_, pages_, head));
      DEUT_RETURN_IF_ERROR(writer->AddTable({.id = kBenchTable, .root = SparseTree::kRoot, .name = "bench"}));
      for (const SegmentExtent& extent : segments_.extents()) DEUT_RETURN_IF_ERROR(writer->AddSegment(extent));
      for (uint32_t id = 1; id < addresses_.size(); ++id) {
        DEUT_RETURN_IF_ERROR(writer->AddPage(PageId(id), std::span(&addresses_[id], 1)));
      }
      CheckpointAncestor file;
      DEUT_RETURN_IF_ERROR(set->Complete(std::move(writer), &file));
      previous = {file};
    }
    return Status::Ok();
  }

  SparseStore Made() const {
    SparseStore made{.leaves = tree_.leaves(),
                     .inner_pages = tree_.inner_pages(),
                     .records = tree_.records(),
                     .segments = segments_.extents().size(),
                     .written_bytes = segments_.written_bytes(),
                     .readable = {}};
    for (const SegmentExtent& extent : segments_.extents()) made.bytes += extent.written_bytes;
    for (const size_t leaf : sampled_) made.readable.push_back(leaf * fill_.records + fill_.records / 2);
    return made;
  }

  Storage& storage_;
  const std::string directory_;
  const std::string pages_;
  const SparseStoreOptions options_;
  const SparseFill fill_;
  const SparseTree tree_;
  const std::vector<size_t> sampled_;
  SparseSegments segments_;
  std::vector<PageAddress> addresses_;  // by id
  std::string image_;
};

}  // namespace

Result<SparseStore> MakeSparseStore(Storage& storage, const std::string& directory, const SparseStoreOptions& options) {
  return Maker(storage, directory, options).Make();
}

}  // namespace deut::dc::bench
