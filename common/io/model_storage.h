// ModelDisk and ModelStorage: Storage over a DiskModel, for the storages in memory, well-behaved or faulty.
// Thread-safety: all methods of ModelStorage and its files from any thread, under the disk's one mutex. Callers of a
// method named ...Locked, and users of a guarded field, hold it.
// Ownership: every handle shares the disk.
#ifndef COMMON_IO_MODEL_STORAGE_H_
#define COMMON_IO_MODEL_STORAGE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/io/disk_fault.h"
#include "common/io/disk_model.h"
#include "common/io/fault_plan.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut {

struct ModelDisk {
  // `faulty`: the disk remembers what state a crash may leave, and completes requests in any order. Otherwise `seed`
  // has no effect.
  ModelDisk(Runtime& runtime_to_wait_on, bool is_faulty, uint64_t seed)
      : runtime(runtime_to_wait_on), faulty(is_faulty), mutex(runtime), model(is_faulty), random(seed) {}
  // Makes a faulty disk with a copy of another's content.
  ModelDisk(Runtime& runtime_to_wait_on, const DiskModel& content, uint64_t seed)
      : runtime(runtime_to_wait_on), faulty(true), mutex(runtime), model(content), random(seed) {}

  // Counts an operation of a handle of life `of_life`. Returns an error if that life is over, else the fault that
  // strikes the operation, if any.
  Result<std::optional<DiskFault::Action>> BeginLocked(uint64_t of_life, const DiskOperation& operation)
      DEUT_REQUIRES(mutex);
  // As BeginLocked, for operations that can only fail or crash: returns the error of a fault. After OK the caller
  // does the operation and then calls EndLocked with `crashes`.
  Status AdmitLocked(uint64_t of_life, const DiskOperation& operation, bool* crashes) DEUT_REQUIRES(mutex);
  Status EndLocked(bool crashes) DEUT_REQUIRES(mutex);
  void CrashLocked(uint64_t seed) DEUT_REQUIRES(mutex);
  // Called in the middle of a changing operation that no fault strikes.
  void ShowChangeLocked() DEUT_REQUIRES(mutex) {
    if (watcher) watcher(model);
  }
  // Returns when no hold (FaultyDisk::HoldOperations) matches, or the life of the handle is over. Blocking operations
  // call it at their beginning.
  void WaitWhileHeldLocked(uint64_t of_life, DiskOperationKind kind, const std::string& path) DEUT_REQUIRES(mutex);
  static Status Crashed();

  Runtime& runtime;
  const bool faulty;
  Mutex mutex;
  CondVar changed;  // a crash, the end of a hold, a wake of a queue
  DiskModel model DEUT_GUARDED_BY(mutex);
  Random random DEUT_GUARDED_BY(mutex);
  FaultPlan faults DEUT_GUARDED_BY(mutex);
  DiskCounts counts DEUT_GUARDED_BY(mutex);
  uint64_t life DEUT_GUARDED_BY(mutex) = 1;                              // a crash begins the next
  uint64_t crash_after DEUT_GUARDED_BY(mutex) = 0;                       // a crash begins the next life
  std::function<void(const DiskModel&)> watcher DEUT_GUARDED_BY(mutex);  // or empty
  bool ignore_sync DEUT_GUARDED_BY(mutex) = false;
  bool hold DEUT_GUARDED_BY(mutex) = false;
  uint32_t held_kinds DEUT_GUARDED_BY(mutex) = 0;
  std::string held_path DEUT_GUARDED_BY(mutex) = {};
  size_t held_operations DEUT_GUARDED_BY(mutex) = 0;             // number of operations that are held now
  std::map<std::string, uint64_t> locks DEUT_GUARDED_BY(mutex);  // path -> life of the holder
};

// Returns the storage as the present life of `disk` sees it.
std::unique_ptr<Storage> NewModelStorage(std::shared_ptr<ModelDisk> disk);

}  // namespace deut

#endif  // COMMON_IO_MODEL_STORAGE_H_
