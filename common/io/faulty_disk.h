// FaultyDisk: a disk in memory that behaves as badly as the durability contract of storage.h allows. It keeps, for every
// sector of 512 bytes, for every file's size and every name, what is durable beside what is merely written, forgets at a
// crash what nothing covers, and fails on demand. For tests of everything that writes files.
//
// A crash ends the life of every Storage mounted before it (and of their files, queues and locks): all their operations fail
// from then on with IO_ERROR. What the next Mount finds is chosen by the seed: each uncovered sector is its last durable
// content or one written since (blocks tear at 512 bytes), each uncovered size the old, the new or one between, each uncovered
// create, rename and remove happened or not. Some crashes lose all of that, some nothing.
// A failed write leaves any part of its sectors written. After a failed sync the sectors it should have covered are never made
// durable by a later sync, only by being written again: who repeats a failed sync as if nothing had happened loses data.
//
// Thread-safety: all methods from any thread. Ownership: storages may outlive the disk object. Deterministic for a given seed
// and order of operations.
#ifndef COMMON_IO_FAULTY_DISK_H_
#define COMMON_IO_FAULTY_DISK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/io/disk_fault.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"

namespace deut {

class DiskModel;
struct ModelDisk;

class FaultyDisk {
 public:
  FaultyDisk(Runtime& runtime, uint64_t seed);
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  // The disk as a process of the current life sees it. Several may be mounted at once.
  std::unique_ptr<Storage> Mount();

  void Crash(uint64_t seed);
  // A disk of its own with what a crash at this moment would leave, by `seed`; this one goes on as it was. Acknowledged writes are in it.
  std::unique_ptr<FaultyDisk> CopyAfterCrash(uint64_t seed) const;
  // Calls `watcher` in the middle of every changing operation from now on, where CrashAfter would strike: a transfer is begun and not ended, a
  // name not yet changed. It may call what it is given, which is CopyAfterCrash, and nothing else of this disk, whose operations wait
  // meanwhile. Empty: no more.
  using Copier = std::function<std::unique_ptr<FaultyDisk>(uint64_t seed)>;
  void WatchChanges(std::function<void(const Copier& copy_after_crash)> watcher);
  // Crashes during the n-th changing operation from now (1 = the next), with a seed drawn from the disk's own. 0 = never.
  void CrashAfter(uint64_t changing_operations);
  // How many crashes there were: a harness sees here that CrashAfter has struck.
  uint64_t crashes() const;

  // Faults stay until removed or used up, also across crashes. The first that matches decides.
  int AddFault(DiskFault fault);
  void RemoveFault(int id);
  void RemoveAllFaults();
  // How many operations went wrong by it, also after it was removed.
  uint64_t hits(int id) const;

  // Damages what is stored. NOT_FOUND, or INVALID_ARGUMENT beyond the end of the file.
  Status FlipBit(const std::string& path, uint64_t offset, int bit);
  // So much may be allocated from now on.
  void SetFreeBytes(uint64_t bytes);
  // While true, completed syncs and synchronous writes cover nothing. For proving that a test notices a missing sync.
  void SetIgnoreSync(bool ignore);
  // While true, no request of a queue completes (a device that hangs); Reap waits to its deadline.
  void HoldCompletions(bool hold);

  // No blocking operation of these kinds (DiskOperationKind) on a path with `path_contains` comes back until the next call, or a crash.
  // 0: none is held.
  void HoldOperations(uint32_t kinds, std::string path_contains = {});
  // How many operations wait for that now.
  size_t held_operations() const;

  DiskCounts counts() const;

 private:
  explicit FaultyDisk(std::shared_ptr<ModelDisk> disk);
  // A disk with what a crash leaves of `model`.
  static std::unique_ptr<FaultyDisk> Crashed(Runtime& runtime, const DiskModel& model, uint64_t seed);

  const std::shared_ptr<ModelDisk> disk_;
};

}  // namespace deut

#endif  // COMMON_IO_FAULTY_DISK_H_
