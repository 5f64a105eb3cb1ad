#include "integration/product/cli/health.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/concat.h"

namespace deut::cli {
namespace {

uint64_t Value(const std::vector<CounterValue>& counters, std::string_view name) {
  const auto found = std::ranges::find(counters, name, &CounterValue::name);
  return found == counters.end() ? 0 : found->value;
}

// Describes the data component: away, recovering, redoing the log, or serving.
void DescribeDc(const ServiceStatus& status, Health* health) {
  const auto tc = [&](std::string_view name) { return Value(status.tc, name); };
  const auto dc = [&](std::string_view name) { return Value(status.dc, name); };
  if (status.dc.empty()) {
    health->text.append("dc: away, or it does not answer\n");
    return;
  }
  if (dc("recovering") != 0) {
    ConcatTo(&health->text, "dc: recovering from checkpoint ", dc("recovery_checkpoint"), ": ",
             dc("recovery_segments_checked"), " of ", dc("recovery_segments"), " segments checked, ",
             dc("recovery_inner_pages_loaded"), " of ", dc("recovery_inner_pages"), " inner pages loaded\n");
    return;
  }
  const uint64_t sent = tc("ship.ever_sent"), applied = std::min(tc("ship.applied"), sent);
  if (tc("dc.gate_open") == 0) {
    ConcatTo(&health->text, "dc: repeating the redo log: it is at ", applied, " of ", sent, ", ", sent - applied,
             " bytes to go; reads wait\n");
    return;
  }
  ConcatTo(&health->text, "dc: serving, incarnation ", dc("incarnation"), ", ", tc("ship.backlog_bytes"),
           " bytes of the redo log to apply\n");
}

}  // namespace

Health HealthOf(const ServiceStatus& status) {
  const auto dc = [&](std::string_view name) { return Value(status.dc, name); };
  Health health;
  health.serves = Value(status.tc, "serving") != 0 && Value(status.tc, "dc.gate_open") != 0;
  health.text =
      Value(status.tc, "serving") != 0 ? "tc: serving\n" : "tc: not serving yet: it waits for the data component\n";
  DescribeDc(status, &health);
  if (dc("disk_waiting_operations") != 0) {
    ConcatTo(&health.text, "dc: its disk hangs: ", dc("disk_waiting_operations"), " operations wait, the oldest for ",
             dc("disk_waiting_ms"), " ms; the log of dcd names a file\n");
  }
  if (dc("pages_damaged") != 0) {
    ConcatTo(&health.text, "dc: damaged: ", dc("pages_damaged"),
             " pages cannot be read; the log of dcd names them, `deut dc verify` lists all when it is stopped\n");
  }
  if (dc("scrub_errors") != 0) {
    ConcatTo(&health.text, "dc: damaged: ", dc("scrub_errors"),
             " places found on its disk; the log of dcd names them\n");
  }
  if (dc("checkpoint_failing") != 0) {
    health.text.append("dc: no checkpoint can be taken, so the redo log grows; the log of dcd says why\n");
  }
  if (!status.dc.empty() && dc("recovering") == 0 && dc("free_bytes") == 0) {
    health.text.append("dc: no room left on its disk or in its memory: puts are refused, deletes go on\n");
  }
  return health;
}

}  // namespace deut::cli
