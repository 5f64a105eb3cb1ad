// What a user of the client library chooses: per client, per call, per scan.
// Units: durations are deut::Duration (nanoseconds underneath), sizes are bytes.
#ifndef TC_CLIENT_OPTIONS_H_
#define TC_CLIENT_OPTIONS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "common/runtime/runtime.h"
#include "protocol/transaction_service.h"

namespace deut {

struct ClientOptions {
  // How long a call may take that names no time of its own. When it has passed the call ends with DEADLINE_EXCEEDED (nothing was
  // committed), or, where a commit had been sent and nobody could tell in time what became of it, with OUTCOME_UNKNOWN.
  Duration default_timeout = seconds(30);
  // Sessions kept for reuse after their transaction ended. More transactions than this may be open at once; what exceeds it is
  // closed when it comes back. A session costs the server a few KiB and, over a network, a stream.
  uint32_t max_idle_sessions = 64;
  // Time, waits and randomness; null = the machine's own. Must outlive the client.
  Runtime* runtime = nullptr;
};

struct CallOptions {
  // 0 = the client's default_timeout. In RunTransaction a call also ends with the time of the whole.
  Duration timeout{0};
};

// Larger batches are not fetched ahead (ScanOptions::fetch_ahead): they would wait in the connection, which takes no more than a few.
constexpr uint32_t kMaxBatchAhead = 256 << 10;

// A scan of [low, high) in key order. An empty low is below every key, an empty high above every key. A scan resumes by putting the
// resume key of the part before into `low` (ascending) or `high` (descending): ScanOptions::ResumeAt.
struct ScanOptions {
  std::string low = {};
  std::string high = {};
  Direction direction = Direction::kAscending;
  // Ends after this many records or about this many bytes of keys and values, whichever comes first; 0 = no such limit. At least one
  // record is returned if there is one.
  uint64_t limit_records = 0;
  uint64_t limit_bytes = 0;
  // Size of one batch: what is in memory, and travels in one message, at a time (1 byte to kMaxScanBytes; clamped).
  uint32_t batch_bytes = 256 << 10;
  // The next batch is fetched while the application looks at the present one, from the second on, where the store is another process: one more batch
  // is in memory, of at most kMaxBatchAhead bytes, and an application that stops early has read one in vain.
  bool fetch_ahead = true;
  // Announces that records of the range are going to be updated (SIX): the first conflicting transaction loses at once, not at the update.
  bool for_update = false;

  void ResumeAt(std::string key) { (direction == Direction::kAscending ? low : high) = std::move(key); }
};

// The answer to Transaction::Scan.
struct ScanResult {
  // In the order of the scan.
  RecordBatch records;
  // True: all of the range was read. False: a limit was reached; `resume` is where a further scan goes on (ScanOptions::ResumeAt).
  bool complete = false;
  std::string resume;
};

}  // namespace deut

#endif  // TC_CLIENT_OPTIONS_H_
