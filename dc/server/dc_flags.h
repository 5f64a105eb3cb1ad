// The options of a DC by their flag names: for dcd, and for programs that hold a DC inside themselves.
#ifndef DC_SERVER_DC_FLAGS_H_
#define DC_SERVER_DC_FLAGS_H_

#include "common/config/flags.h"
#include "dc/server/data_component_server.h"

namespace deut::dc {

// Binds everything but the data directory, which every program names in its own way.
inline void AddDcFlags(FlagSet* flags, DataComponentOptions* options) {
  flags->AddBytes("dc_memory", &options->records.memory_bytes,
                  "what the data component's pages may take in memory; what does not fit is on disk; 0 = no limit");
  flags->AddBytes("dc_checkpoint_log", &options->checkpoints.log_bytes,
                  "a checkpoint is taken after so much log: what redo has to repeat at most");
  flags->Add("dc_disk_timeout", &options->disk_timeout,
             "the process ends when its disk has not answered for so long; 0 = never");
  flags->AddBytes(
      "dc_scrub_rate", &options->records.scrubber.bytes_per_second,
      "how much of the data component's files is read and checked in the background each second; 0 = nothing");
}

}  // namespace deut::dc

#endif  // DC_SERVER_DC_FLAGS_H_
