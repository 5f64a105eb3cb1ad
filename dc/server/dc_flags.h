// The options of a DC by their flag names: for dcd, and for programs that hold a DC inside themselves.
#ifndef DC_SERVER_DC_FLAGS_H_
#define DC_SERVER_DC_FLAGS_H_

#include "common/config/flags.h"
#include "dc/server/data_component_server.h"

namespace deut::dc {

// Binds everything but the data directory, which every program names in its own way.
inline void AddDcFlags(FlagSet* flags, DataComponentOptions* options) {
  flags->AddBytes("dc_memory", &options->memory_bytes,
                  "what the data component's records may take; 0 = no limit but the machine's");
}

}  // namespace deut::dc

#endif  // DC_SERVER_DC_FLAGS_H_
