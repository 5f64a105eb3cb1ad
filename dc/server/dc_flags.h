// AddDcFlags: the options of a DC by their flag names, for dcd and for programs that embed a DC. Thread-safety: at
// start only.
#ifndef DC_SERVER_DC_FLAGS_H_
#define DC_SERVER_DC_FLAGS_H_

#include "common/base/compression.h"
#include "common/config/flags.h"
#include "dc/server/data_component_server.h"

namespace deut::dc {

// Binds all options except the data directory, which every program names in its own way.
inline void AddDcFlags(FlagSet* flags, DataComponentOptions* options) {
  flags->AddBytes("dc_memory", &options->records.memory_bytes,
                  "limit of the data component's pages in memory; the other pages are on disk only; 0 = no limit",
                  "what --memory leaves");
  flags->AddBytes("dc_checkpoint_log", &options->checkpoints.log_bytes,
                  "log between two checkpoints; redo repeats at most about this much");
  flags->AddBytes("dc_disk_reserve", &options->records.store.reserve_bytes,
                  "free disk space that the data component reserves for work that frees space when the disk is full; a "
                  "segment file has at most half of it");
  flags->Add(
      "dc_checkpoint_interval", &options->checkpoints.interval,
      "longest time between two checkpoints while updates are applied; 0 = none automatically, not for log either");
  flags->Add(
      "dc_leaf_page", &options->records.tree.leaf_page_bytes,
      "bytes above which a page of records is split; larger pages make reads faster, smaller ones make writes faster",
      256u, 1u << 20);
  flags->Add("dc_inner_page", &options->records.tree.inner_page_bytes, "bytes above which a page of the index is split",
             256u, 1u << 20);
  flags->AddEnum("dc_compression", &options->records.tree.compression,
                 {{"none", Compression::kNone}, {"lz4", Compression::kLz4}, {"zstd", Compression::kZstd}},
                 "compression on disk of the pages of tables that are created without a choice of their own; a table "
                 "keeps its compression for ever; zstd saves more space, lz4 costs less time");
  flags->Add("dc_reads_in_flight", &options->records.loader.reads_in_flight,
             "reads of pages that the data component has in flight together; more than the device gains from only take "
             "memory",
             1u, 1024u);
  // A test that counts reads after a start does not want it, so it is a default of programs only.
  options->records.fetch_hot_pages = true;
  flags->Add(
      "dc_fetch_hot_pages", &options->records.fetch_hot_pages,
      "after a start, read the pages that were in memory at the last checkpoint, in large reads beside the work, "
      "up to 7/8 of --dc_memory");
  flags->AddBytes("dc_segment", &options->records.store.segment_bytes,
                  "size of the data component's segment files while it has little data, a multiple of 4 KiB, at most "
                  "half of --dc_disk_reserve; a file is removed as a whole",
                  64 << 10, 1 << 30);
  flags->AddBytes(
      "dc_max_segment", &options->records.store.max_segment_bytes,
      "size up to which new segment files become longer as the data grows: one is about a thousandth of all of them, "
      "and at most half of --dc_disk_reserve (a sixteenth, for changes of pages); 0 = all have the size of "
      "--dc_segment",
      0, 1 << 30);
  flags->Add(
      "dc_apply_threads", &options->apply_threads,
      "threads that apply a large batch of the log together (after a start, and under many updates); 0 = one for "
      "each processor, at most 8",
      0u, 256u);
  flags->Add("dc_merge_interval", &options->records.merge_interval,
             "shortest time between two searches for small pages to merge");
  flags->Add("dc_clean_interval", &options->records.cleaner.interval,
             "time between two searches for mostly dead segment files to clean; 0 = never");
  flags->Add("dc_disk_timeout", &options->disk_timeout,
             "the process ends when a disk operation takes longer than this; 0 = never");
  flags->AddBytes("dc_scrub_rate", &options->records.scrubber.bytes_per_second,
                  "bytes of the data component's files that are verified in the background each second; 0 = none");
}

}  // namespace deut::dc

#endif  // DC_SERVER_DC_FLAGS_H_
