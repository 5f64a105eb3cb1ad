// AddDcFlags: the options of a DC by their flag names, for dcd and for programs that embed a DC. Thread-safety: at
// start only.
#ifndef DC_SERVER_DC_FLAGS_H_
#define DC_SERVER_DC_FLAGS_H_

#include "common/config/flags.h"
#include "dc/server/data_component_server.h"

namespace deut::dc {

// Binds all options except the data directory, which every program names in its own way.
inline void AddDcFlags(FlagSet* flags, DataComponentOptions* options) {
  flags->AddBytes("dc_memory", &options->records.memory_bytes,
                  "what the data component's pages may take in memory; what does not fit is on disk; 0 = no limit");
  flags->AddBytes("dc_checkpoint_log", &options->checkpoints.log_bytes,
                  "a checkpoint is taken after so much log: what redo has to repeat at most");
  flags->AddBytes("dc_disk_reserve", &options->records.store.reserve_bytes,
                  "room on its disk that the data component keeps for giving space back when the disk is full");
  flags->Add(
      "dc_checkpoint_interval", &options->checkpoints.interval,
      "a checkpoint is taken after so long at most, if anything was applied; 0 = never by itself, not for log either");
  flags->Add("dc_leaf_page", &options->records.tree.leaf_page_bytes,
             "bytes above which a page of records is split; larger ones read faster, smaller ones are written faster",
             256u, 1u << 20);
  flags->Add("dc_inner_page", &options->records.tree.inner_page_bytes, "bytes above which a page of the index is split",
             256u, 1u << 20);
  flags->AddBytes("dc_segment", &options->records.store.segment_bytes,
                  "size of the data component's files, a multiple of 4 KiB: what is written and given back as a whole",
                  8 << 10, 4 << 20);
  flags->Add("dc_apply_threads", &options->apply_threads,
             "threads that apply a large batch of the log together, as there are after a start and when much is "
             "updated; 0 = one for each processor, 8 at most",
             0u, 256u);
  flags->Add("dc_merge_interval", &options->records.merge_interval,
             "so often, at the most, it is looked for pages that have become small, to be merged");
  flags->Add("dc_clean_interval", &options->records.cleaner.interval,
             "so often it is looked for files that are mostly dead, to be emptied; 0 = never");
  flags->Add("dc_disk_timeout", &options->disk_timeout,
             "the process ends when its disk has not answered for so long; 0 = never");
  flags->AddBytes(
      "dc_scrub_rate", &options->records.scrubber.bytes_per_second,
      "how much of the data component's files is read and checked in the background each second; 0 = nothing");
}

}  // namespace deut::dc

#endif  // DC_SERVER_DC_FLAGS_H_
