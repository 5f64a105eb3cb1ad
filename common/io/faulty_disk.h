// FaultyDisk: a disk in memory that behaves as badly as the durability contract of storage.h allows. For tests of
// everything that writes files.
// For every sector of 512 bytes, every file's size and every name it keeps both the written and the durable state. At
// a crash it forgets everything that is uncovered, and it fails on demand.
//
// The time between two crashes is a *life* of the disk. A crash ends the life of every Storage mounted before it (and
// of their files, queues and locks): from then on all their operations fail with IO_ERROR.
// The seed chooses the content that the next Mount finds:
// - Each uncovered sector has its last durable content or one written since (blocks tear at 512 bytes).
// - Each uncovered size is the old one, the new one or one between.
// - Each uncovered create, rename and remove happened or did not.
// Some crashes lose everything uncovered, some lose nothing.
// A failed write leaves any part of its sectors written. After a failed sync no later sync makes the sectors durable
// that it should have covered; only a new write of them can. So a program that repeats a failed sync as if nothing
// had happened loses data.
//
// Thread-safety: all methods from any thread. Ownership: storages may outlive the disk object. The disk is
// deterministic for a given seed and order of operations.
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

  // Returns the disk as a process of the current life sees it. Several may be mounted at once.
  std::unique_ptr<Storage> Mount();

  void Crash(uint64_t seed);
  // Returns a separate disk with the content that a crash at this moment would leave, chosen by `seed`. This disk
  // goes on unchanged. Acknowledged writes are in the copy.
  std::unique_ptr<FaultyDisk> CopyAfterCrash(uint64_t seed) const;
  // From now on calls `watcher` in the middle of every changing operation, where CrashAfter would strike. There a
  // transfer has begun and not ended, or a name has not changed yet. The watcher may call its argument, which is
  // CopyAfterCrash, but no other method of this disk, whose operations wait meanwhile. An empty function ends the
  // watching.
  using Copier = std::function<std::unique_ptr<FaultyDisk>(uint64_t seed)>;
  void WatchChanges(std::function<void(const Copier& copy_after_crash)> watcher);
  // Crashes the disk during the n-th changing operation from now (1 = the next), with a seed drawn from the disk's
  // own. 0 = never.
  void CrashAfter(uint64_t changing_operations);
  // Number of crashes so far. A harness learns from it that CrashAfter has struck.
  uint64_t crashes() const;

  // Faults stay until they are removed or used up, also across crashes. The first fault that matches an operation
  // decides.
  int AddFault(DiskFault fault);
  void RemoveFault(int id);
  void RemoveAllFaults();
  // Number of operations that this fault struck; still valid after the fault was removed.
  uint64_t hits(int id) const;

  // Damages the stored content. NOT_FOUND if there is no such file, INVALID_ARGUMENT beyond its end.
  Status FlipBit(const std::string& path, uint64_t offset, int bit);
  // Sets how many bytes may be allocated from now on.
  void SetFreeBytes(uint64_t bytes);
  // While true, completed syncs and synchronous writes cover nothing. Proves that a test notices a missing sync.
  void SetIgnoreSync(bool ignore);
  // While true, no write and no sync of a queue completes (a device that hangs for the redo log); Reap waits until its
  // deadline. Reads are held by HoldOperations.
  void HoldCompletions(bool hold);

  // No blocking operation of these kinds (DiskOperationKind) on a path that contains `path_contains` returns until
  // the next call, or a crash; and no request of a queue of these kinds completes. 0: no operation is held.
  void HoldOperations(uint32_t kinds, std::string path_contains = {});
  // Number of operations that are held now. A request of a queue counts while Reap waits for it.
  size_t held_operations() const;

  DiskCounts counts() const;

 private:
  explicit FaultyDisk(std::shared_ptr<ModelDisk> disk);
  // Returns a disk with the content that a crash leaves of `model`.
  static std::unique_ptr<FaultyDisk> Crashed(Runtime& runtime, const DiskModel& model, uint64_t seed);

  const std::shared_ptr<ModelDisk> disk_;
};

}  // namespace deut

#endif  // COMMON_IO_FAULTY_DISK_H_
