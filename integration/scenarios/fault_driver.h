// FaultDriver injects the faults of a scenario into a cluster and heals them. After each fault the cluster must soon
// be able to serve again, by itself.
// Thread-safety: only the thread that made the cluster calls it. Ownership: borrows everything.
#ifndef INTEGRATION_SCENARIOS_FAULT_DRIVER_H_
#define INTEGRATION_SCENARIOS_FAULT_DRIVER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/random.h"
#include "integration/harness/cluster.h"
#include "integration/harness/small_disk.h"
#include "integration/scenarios/scenario_file.h"

namespace deut::scenarios {

// Counts of the effects of faults: name -> number. The driver adds to them.
using Effects = std::map<std::string, uint64_t>;

class FaultDriver {
 public:
  // `disk` may be null if the scenario has none.
  FaultDriver(testing::Cluster& cluster, const Scenario& scenario, testing::SmallDisk* disk, Random& random,
              Effects* effects);

  // Sets the faults that last from start to end.
  void SetAlways();
  // Injects the fault, and heals it after its time. An error shows a fault of the cluster, and ends the run.
  Status Do(const Fault& fault);

 private:
  void Kill(const Fault& fault);
  void Start(const Fault& fault);
  void Freeze(const Fault& fault);
  void DoToLinks(const Fault& fault);
  void SetFlows(const Fault& fault, bool on_top);
  void HealLinks();
  std::vector<std::string> RecordedStreams(Which which);
  Status Replay(const Fault& fault);
  Status FillDisk();
  Status WriteUntilRefused(TableId table);
  Status ReadWhileFull(TableId table);
  void Stay(const Fault& fault);
  std::vector<testing::FaultProxy*> Links(const Fault& fault);

  testing::Cluster& cluster_;
  const Scenario& scenario_;
  testing::SmallDisk* const disk_;
  Random& random_;
  Effects& effects_;
};

}  // namespace deut::scenarios

#endif  // INTEGRATION_SCENARIOS_FAULT_DRIVER_H_
