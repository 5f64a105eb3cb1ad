// A scenario: the workloads, the cluster, and the faults that are injected meanwhile. README.md of this folder has
// the grammar and an example.
// Thread-safety: values and pure functions. Errors: INVALID_ARGUMENT with line and column, the text there, and the
// expected syntax.
#ifndef INTEGRATION_SCENARIOS_SCENARIO_FILE_H_
#define INTEGRATION_SCENARIOS_SCENARIO_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/random.h"
#include "common/runtime/time.h"
#include "integration/harness/fault_proxy.h"
#include "protocol/transaction_service.h"

namespace deut::scenarios {

// Both bounds are included.
struct DurationRange {
  Duration low{0}, high{0};
  Duration Draw(Random& random) const {
    return low + Duration(static_cast<int64_t>(random.Between(0, static_cast<uint64_t>((high - low).count()))));
  }
};
struct CountRange {
  uint64_t low = 1, high = 1;
  uint64_t Draw(Random& random) const { return random.Between(low, high); }
};

enum class FaultKind : uint8_t {
  kKill,       // tc, dc: kill -9, then a start after `stay`
  kStorm,      // the same, `times` times, with `stay` between a start and the next kill
  kFreeze,     // SIGSTOP, and SIGCONT after `stay`
  kDelay,      // `delay` on the flows of the links
  kBandwidth,  // `bytes_per_second`
  kDrop,
  kPartition,
  kReset,
  kHalfOpen,    // `told`
  kReplay,      // a recorded connection of the TC to the DC, chosen by `which`
  kDropCaches,  // the TC's caches, so that the next reads reach the DC
  kDiskFull,    // of the disk under the TC's log, until a write is refused for it
};

enum class Which : uint8_t { kAny, kLive, kOld };

struct Fault {
  FaultKind kind = FaultKind::kKill;
  bool tc = false, dc = false;                // kKill, kStorm, kFreeze
  bool client_tc = false, tc_dc = false;      // links
  bool to_server = true, to_client = true;    // kDelay, kBandwidth, kDrop
  testing::End told = testing::End::kClient;  // kHalfOpen
  Which which = Which::kAny;
  Duration delay{0};
  uint64_t bytes_per_second = 0;
  CountRange times;
  DurationRange stay;
  std::string text;  // the text in the file

  bool on_links() const { return client_tc || tc_dc; }
};

// Faults that follow each other.
using FaultSequence = std::vector<Fault>;

struct Scenario {
  std::string name;
  std::vector<std::string> workloads;
  uint32_t threads = 4;
  uint32_t clients = 2;
  Durability durability = Durability::kDurable;
  // The time that the load of a cycle runs before its faults, and the number of entries of `faults` in a cycle.
  DurationRange slice{milliseconds(20), milliseconds(150)};
  CountRange faults_per_cycle;
  uint64_t history = 10;           // number of cycles of one history, which the checkers then judge
  uint64_t cluster = 100;          // number of cycles of one cluster, before one with empty folders replaces it
  Duration timeout = seconds(30);  // of a client's call
  Duration stall = seconds(60);    // the run fails if there is no progress for this long
  uint64_t small_disk = 0;         // size of the disk under the TC's log; 0 = no disk of its own
  std::vector<std::string> tc_flags, dc_flags;
  std::vector<Fault> always;  // kDelay and kBandwidth from start to end
  std::vector<FaultSequence> faults;
};

Result<Scenario> ParseScenario(std::string name, std::string_view text);
// The scenario is named after the file, without folder and ending.
Result<Scenario> ReadScenario(const std::string& path);

}  // namespace deut::scenarios

#endif  // INTEGRATION_SCENARIOS_SCENARIO_FILE_H_
