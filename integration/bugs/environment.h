// Environment: what surrounds one round: sizes, threads, harm. All of it is drawn from the round's seed, and small, so that ranges are exchanged,
// pages split, caches emptied, segments begun and log read back all the time.
#ifndef INTEGRATION_BUGS_ENVIRONMENT_H_
#define INTEGRATION_BUGS_ENVIRONMENT_H_

#include <cstdint>

#include "common/runtime/random.h"
#include "common/runtime/time.h"
#include "dc/server/data_component_server.h"
#include "protocol/transaction_service.h"
#include "tc/server/transaction_component.h"

namespace deut::bugs {

// What a bug needs to come to light.
enum class Layer : uint8_t {
  kEmbedded,    // one life of a store: threads, small caches
  kRestart,     // the DC is restarted, and the TC, in peace
  kPower,       // power is lost, writes fail
  kCorruption,  // bits of what is stored, or sent, are flipped
  kRecorded,    // power is lost at many moments of one run
  kTwoTcs,      // a second TC takes over while the first lives on; log and DC that do not belong together
};

struct Environment {
  tc::TransactionComponentOptions tc;
  dc::DataComponentOptions dc;
  Durability durability = Durability::kBuffered;
  uint32_t threads = 4;
  // Values are up to so much longer than they need be: then a commit does not fit into one record of the log.
  size_t padding = 0;
  // Of one life; ends earlier when each thread has made so many steps.
  Duration life = milliseconds(100);
  uint64_t steps_per_thread = 400;
  uint32_t lives = 1;
  // A transaction is given up after this time.
  Duration patience = seconds(20);

  // Once in about `harm_period` these happen, or the latter one in so many times.
  Duration harm_period = milliseconds(10);
  bool drop_caches = false;
  bool old_readers = false;
  bool restart_dc = false;
  uint64_t restart_one_in = 6;
  // The DC keeps its records over restarts and has a stable position, as one with a page store.
  bool keeps_pages = false;
  // In one of so many log batches a bit is flipped on its way. 0: in none.
  uint64_t noise = 0;
  // So long may a message to the DC be under way, and one of a TC that has been replaced.
  Duration slow = Duration(0), late = Duration(0);

  uint64_t chaos_seed = 0;
};

Environment DrawEnvironment(Layer layer, Random& random);

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_ENVIRONMENT_H_
