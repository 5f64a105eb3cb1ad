// Options of the client library: per client, per call, per scan.
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
  // Time limit of a call that gives none of its own. When it has passed the call ends with DEADLINE_EXCEEDED (nothing
  // was committed). If a commit had been sent, and the store did not tell its outcome in time, the call ends with
  // OUTCOME_UNKNOWN.
  Duration default_timeout = seconds(30);
  // Sessions kept for reuse after their transaction has ended. More transactions than this may be open at once; a
  // session beyond the number is closed when its transaction ends. A session costs the server a few KiB and, over a
  // network, a stream.
  uint32_t max_idle_sessions = 64;
  // Source of time, waits and randomness; null: the machine's own. It must outlive the client.
  Runtime* runtime = nullptr;
};

struct CallOptions {
  // 0: the client's default_timeout. In RunTransaction a call also ends at the deadline of the whole.
  Duration timeout{0};
};

// Larger batches are not fetched ahead (ScanOptions::fetch_ahead), because they would wait in the connection, which
// buffers only a few.
constexpr uint32_t kMaxBatchAhead = 256 << 10;

// A scan of [low, high) in key order. An empty low is below every key, an empty high above every key. To resume a
// scan, put the resume key of the part before into `low` (ascending) or `high` (descending): ScanOptions::ResumeAt.
struct ScanOptions {
  std::string low = {};
  std::string high = {};
  Direction direction = Direction::kAscending;
  // The scan ends after this many records, or about this many bytes of keys and values, whichever comes first; 0: no
  // such limit. It returns at least one record if there is one.
  uint64_t limit_records = 0;
  uint64_t limit_bytes = 0;
  // Size of one batch, which is held in memory, and travels in one message, at a time (1 byte to kMaxScanBytes;
  // clamped).
  uint32_t batch_bytes = 256 << 10;
  // Fetches the next batch while the application works on the present one. This happens from the second batch on, if
  // the store is another process. It costs memory for one more batch, of at most kMaxBatchAhead bytes. If the
  // application stops early, one batch was read in vain.
  bool fetch_ahead = true;
  // Announces that records of the range will be updated (SIX). The first conflicting transaction then loses at once,
  // not at the update.
  bool for_update = false;

  void ResumeAt(std::string key) { (direction == Direction::kAscending ? low : high) = std::move(key); }
};

// The answer to Transaction::Scan.
struct ScanResult {
  // The records, in the order of the scan.
  RecordBatch records;
  // True: the whole range was read. False: a limit was reached, and a further scan continues at `resume`
  // (ScanOptions::ResumeAt).
  bool complete = false;
  std::string resume;
};

}  // namespace deut

#endif  // TC_CLIENT_OPTIONS_H_
