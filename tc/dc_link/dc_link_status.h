// DcLinkStatus: a snapshot of the link's state, for `deut status`, health and tests. Each figure is loaded by itself,
// so the figures of one snapshot need not belong to one moment. Thread-safety: a plain value.
#ifndef TC_DC_LINK_DC_LINK_STATUS_H_
#define TC_DC_LINK_DC_LINK_STATUS_H_

#include <cstdint>
#include <string>

#include "common/base/ids.h"
#include "tc/dc_link/dc_identity.h"

namespace deut::tc {

struct DcLinkStatus {
  struct Positions {
    Lsn redo_start;  // S2: the log below it may be trimmed
    Position stable;
    Position applied;
    Position ship_position;  // the end of the last batch that this process has sent
    Position ever_sent;      // X3: no DC can have applied more of this log
  };
  // Counters since the start.
  struct Connections {
    uint64_t hellos = 0;  // begun: each is an inquiry, then the Hello itself
    uint64_t sessions = 0;
    uint64_t incarnations = 0;
    uint64_t dropped_acks = 0;  // X3: of earlier incarnations
  };
  // Counters since the start.
  struct Shipped {
    uint64_t batches = 0;
    uint64_t batch_bytes = 0;
    uint64_t updates = 0;
    uint64_t resent_batches = 0;
    uint64_t low_water_records = 0;  // appended to the log
    uint64_t held_back_rounds = 0;   // S1: low-water rounds that were requested while a commit was held back
    uint64_t wakeups = 0;            // rounds of the link's thread
  };

  std::string state;  // text for operators: "open", or what the link is doing or waiting for, with the DC's name
  bool caught_up = false;
  bool gate_open = false;
  bool shipping = false;  // there is a log stream
  DcIdentity peer;
  Positions positions;
  uint64_t backlog_bytes = 0;    // log appended but not yet applied by the DC
  uint64_t in_flight_bytes = 0;  // sent but not yet acknowledged
  uint64_t free_bytes = 0;
  Connections connections;
  Shipped shipped;
  uint64_t repeated_reads = 0;  // counter since the start
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_DC_LINK_STATUS_H_
