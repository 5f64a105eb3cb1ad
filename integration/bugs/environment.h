// Environment: the conditions of one round: sizes, threads, faults. All of it is drawn from the round's seed. Sizes
// are small, so that ranges are repartitioned, pages split, caches emptied, segments begun and log read back all the
// time.
// Thread-safety: values.
#ifndef INTEGRATION_BUGS_ENVIRONMENT_H_
#define INTEGRATION_BUGS_ENVIRONMENT_H_

#include <cstdint>

#include "common/runtime/random.h"
#include "common/runtime/time.h"
#include "dc/server/data_component_server.h"
#include "protocol/transaction_service.h"
#include "tc/server/transaction_component.h"

namespace deut::bugs {

// The conditions that a bug needs to show.
enum class Layer : uint8_t {
  kEmbedded,    // one life of a store: threads, small caches
  kRestart,     // the DC and the TC restart without a loss of power
  kPower,       // power is lost, writes fail
  kCorruption,  // bits of stored or sent data are flipped
  kRecorded,    // power is lost at many moments of one run
  kTwoTcs,      // a second TC takes over while the first continues; log and DC that do not belong together
};

struct Environment {
  tc::TransactionComponentOptions tc;
  dc::DataComponentOptions dc;
  Durability durability = Durability::kBuffered;
  uint32_t threads = 4;
  // Values are up to this many bytes longer than necessary, so that a commit does not fit into one record of the log.
  size_t padding = 0;
  // A life ends after this time, or when each thread has made steps_per_thread steps.
  Duration life = milliseconds(100);
  uint64_t steps_per_thread = 400;
  uint32_t lives = 1;
  // A transaction is given up after this time.
  Duration patience = seconds(20);

  // About once per `harm_period` each enabled fault may happen; a DC restart only one time in `restart_one_in`.
  Duration harm_period = milliseconds(10);
  bool drop_caches = false;
  bool old_readers = false;
  bool restart_dc = false;
  uint64_t restart_one_in = 6;
  // The DC keeps its records over restarts and has a stable position, like a DC with a page store.
  bool keeps_pages = false;
  // A bit is flipped in one of this many log batches on their way. 0: in none.
  uint64_t corrupt_one_in = 0;
  // Maximum delay of a message to the DC, and of a message of a TC that has been replaced.
  Duration max_delay = Duration(0), max_delay_replaced_tc = Duration(0);

  uint64_t chaos_seed = 0;
};

Environment DrawEnvironment(Layer layer, Random& random);

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_ENVIRONMENT_H_
