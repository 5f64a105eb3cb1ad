// ActivityHolder: while it exists, it often stretches short activities of the data component until the disk has changed
// a few times. Such activities are a split, a merge, a new root, and the drop of a table (flight_board.h). A loss of
// power thus hits the middle of an activity while other threads write: flushes, checkpoints, cleaning, the log. If
// nothing changes on the disk, a hold ends after milliseconds.
// Thread-safety: one thread creates and destroys it; at most one exists at a time. It has a thread of its own.
// Ownership: the disk outlives it. Without test points it does nothing.
#ifndef INTEGRATION_POWER_ACTIVITY_HOLDER_H_
#define INTEGRATION_POWER_ACTIVITY_HOLDER_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"

namespace deut::power {

class ActivityHolder {
 public:
  ActivityHolder(const FaultyDisk& disk, uint64_t seed);
  ~ActivityHolder();
  ActivityHolder(const ActivityHolder&) = delete;
  ActivityHolder& operator=(const ActivityHolder&) = delete;

 private:
  void Run(uint64_t seed);

  const FaultyDisk& disk_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::power

#endif  // INTEGRATION_POWER_ACTIVITY_HOLDER_H_
