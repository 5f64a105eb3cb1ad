// A scenario: which workloads run on which cluster, and what goes wrong meanwhile. Grammar, with an example: README.md of this folder.
// Thread-safety: values and pure functions. Errors: INVALID_ARGUMENT with line and column, what stands there and what is expected.
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

// Both bounds included.
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
  kKill,       // tc, dc: -9, and started again after `stay`
  kStorm,      // the same, `times` times, `stay` between a start and the next kill
  kFreeze,     // SIGSTOP, and SIGCONT after `stay`
  kDelay,      // `delay` on the flows of the links
  kBandwidth,  // `bytes_per_second`
  kDrop,
  kPartition,
  kReset,
  kHalfOpen,    // `told`
  kReplay,      // a recorded connection of the TC to the DC: `which`
  kDropCaches,  // the TC's; what is read next comes from the DC
  kDiskFull,    // of the TC's log, until a write is refused for it
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
  std::string text;  // as it stands in the file

  bool on_links() const { return client_tc || tc_dc; }
};

// Its faults follow each other.
using FaultSequence = std::vector<Fault>;

struct Scenario {
  std::string name;
  std::vector<std::string> workloads;
  uint32_t threads = 4;
  uint32_t clients = 2;
  Durability durability = Durability::kDurable;
  // Of a cycle: how long the load runs before its faults, and how many of `faults` it has.
  DurationRange slice{milliseconds(20), milliseconds(150)};
  CountRange faults_per_cycle;
  uint64_t history = 10;           // cycles of one history, which the checkers then judge
  uint64_t cluster = 100;          // cycles of one cluster, before one of empty folders takes its place
  Duration timeout = seconds(30);  // of a client's call
  Duration stall = seconds(60);    // nothing may stand still for so long
  uint64_t small_disk = 0;         // bytes of the disk under the TC's log; 0 = no disk of its own
  std::vector<std::string> tc_flags, dc_flags;
  std::vector<Fault> always;  // kDelay and kBandwidth from start to end
  std::vector<FaultSequence> faults;
};

Result<Scenario> ParseScenario(std::string name, std::string_view text);
// Named after the file, without folder and ending.
Result<Scenario> ReadScenario(const std::string& path);

}  // namespace deut::scenarios

#endif  // INTEGRATION_SCENARIOS_SCENARIO_FILE_H_
