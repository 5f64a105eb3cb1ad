// FlightHolder: while it lives, what passes in an instant in the data component (a split, a merge, a new root, the drop of a table: flight_board.h)
// often lasts until the disk has changed a few times. So power is lost in the middle of it, with other threads' writes under way: flushes,
// checkpoints, cleaning, the log. A hold ends after milliseconds if nothing changes on the disk.
// Thread-safety: one thread makes and destroys it; one lives at a time. It has a thread of its own. Ownership: the disk outlives it.
// Without test points it does nothing.
#ifndef INTEGRATION_POWER_FLIGHT_HOLDER_H_
#define INTEGRATION_POWER_FLIGHT_HOLDER_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"

namespace deut::power {

class FlightHolder {
 public:
  FlightHolder(const FaultyDisk& disk, uint64_t seed);
  ~FlightHolder();
  FlightHolder(const FlightHolder&) = delete;
  FlightHolder& operator=(const FlightHolder&) = delete;

 private:
  void Run(uint64_t seed);

  const FaultyDisk& disk_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::power

#endif  // INTEGRATION_POWER_FLIGHT_HOLDER_H_
