// MakeSparseStore: makes the folder of a data component of any size on a small disk, without a load. All that a start
// reads is there: segment headers, inner pages, the leaves from which a start estimates the number of records, two
// checkpoints, and dc_state. All other leaves are holes of sparse files: a read of one is an IO_ERROR, as of any damaged page.
//
// The store is that of an ordered load (sparse_tree.h) into one table, kBenchTable. Its segments are full. Each inner
// page lies behind the leaves below it, as the checkpoints of a load write it. Both checkpoints are complete files, as
// after ForgetFiles (checkpoint_lineages.h); those of a lineage that has grown are up to three times as long.
// All bytes come from the code that writes them in the data component. Only the layout is decided here.
// Disk: per gigabyte of the store, about 1.5 MB of inner pages and headers, and 1.1 MB of checkpoints, with the sizes of
// pages of BwTreeOptions. Memory: 8 bytes for each page.
// Thread-safety: one thread. Errors: those of the storage.
#ifndef DC_BENCH_SPARSE_STORE_H_
#define DC_BENCH_SPARSE_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/bwtree/bwtree_options.h"

namespace deut::dc::bench {

constexpr DcId kSparseDc{1};

struct SparseStoreOptions {
  uint64_t bytes = 1 << 30;           // of all segments together, approximately
  uint64_t segment_bytes = 64 << 20;  // length of each segment but the last one
  BwTreeOptions tree;                 // the sizes of pages
  bool all_leaves = false;            // write all leaves; there are no holes
  // In each segment with a number that is a multiple of this, each leaf also has three older images, which no checkpoint
  // names: a quarter of such a segment is live. 0: there are none.
  uint64_t dead_every = 0;
};

struct SparseStore {
  uint64_t leaves = 0;
  uint64_t inner_pages = 0;
  uint64_t records = 0;
  uint64_t segments = 0;
  uint64_t bytes = 0;              // of all segments
  uint64_t written_bytes = 0;      // of segments; the rest are holes
  std::vector<uint64_t> readable;  // a record in the middle of each leaf that is written for the estimate, ascending
};

// Makes the store in `directory`, which is empty or not there. Its pages are in `directory`/pages.
Result<SparseStore> MakeSparseStore(Storage& storage, const std::string& directory, const SparseStoreOptions& options);

}  // namespace deut::dc::bench

#endif  // DC_BENCH_SPARSE_STORE_H_
