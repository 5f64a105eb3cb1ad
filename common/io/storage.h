// Storage: every access to files goes through this interface. The same code runs on io_uring, on pread/pwrite, in
// memory, and on a faulty disk. At a crash the faulty disk forgets everything that no completed sync or synchronous
// write covers.
//
// Durability contract (what a caller may assume after a crash):
//   - The bytes of a write to a file opened with `sync_writes` are there, once Write has returned OK, or the request
//     was reaped with OK.
//   - The bytes of writes that had completed before a sync of that file began are there, once that sync completed with
//     OK. A write has completed when Write has returned, or when its request was reaped.
//   - A file's name (create, rename, remove) is as it was set, once SyncDirectory on its directory completed with OK.
//   Anything else may be there wholly, partly (torn at 512 bytes), or not at all, in any order.
//   After a failed write nothing may be assumed about its range. The caller fail-stops, or never relies on that range.
//   After a failed sync nothing may be assumed about bytes that no earlier sync covers, and a later sync may not cover
//   them. So callers never retry a sync; they fail-stop.
// Errors, the same in every implementation; messages name operation, path and offset:
//   NOT_FOUND, ALREADY_EXISTS  of a name
//   RESOURCE_EXHAUSTED         no space left, a full queue (Submit), or a lasting shortage (shortage.h) of descriptors
//                              or kernel memory. It is no damage, and the caller tries again later. The exception is a
//                              caller that cannot go on without this write, such as the redo log: it fail-stops
//   INVALID_ARGUMENT           a transfer that breaks the alignment rule, or a file not opened for it
//   UNAVAILABLE                a lock that another holder has, in this process or in another one
//   IO_ERROR                   everything else. A failed sync is always IO_ERROR, even if the file system reports a
//                              lack of space: the bytes written before it are lost then
// The system's storage keeps the directories open that it has created, synced or locked a file in. So their sync needs
// no free descriptor. It keeps at most 16, and begins anew beyond that.
// Thread-safety: Storage and File methods from any thread. An IoQueue belongs to one thread at a time, except Wake.
// Ownership: callers own Files, IoQueues and FileLocks, which end before their Storage. A File, a buffer and the
//   request itself outlive the transfer. The destructor of an IoQueue waits for the requests in flight and returns
//   none of them.
#ifndef COMMON_IO_STORAGE_H_
#define COMMON_IO_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"

namespace deut {

// Alignment of offset, length and memory for files opened `direct`. Every implementation enforces it (AlignedBuffer
// helps).
constexpr size_t kIoAlignment = 4096;

struct OpenOptions {
  bool create = false;     // create if absent
  bool exclusive = false;  // with create: fail with ALREADY_EXISTS if present
  bool writable = false;
  bool direct = false;       // O_DIRECT where the file system has it; the alignment rule holds in any case
  bool sync_writes = false;  // O_DSYNC
  bool once = false;         // a shortage is not retried: the caller does that
};

class File {
 public:
  virtual ~File() = default;
  virtual const std::string& path() const = 0;
  // Blocking forms: a complete transfer, or an error that names path and offset. A read at the end of the file
  // returns the bytes that are there.
  virtual Result<size_t> Read(uint64_t offset, void* data, size_t bytes) = 0;
  virtual Status Write(uint64_t offset, const void* data, size_t bytes) = 0;
  virtual Status Sync() = 0;
  virtual Result<uint64_t> Size() = 0;
  virtual Status Truncate(uint64_t bytes) = 0;
  // Grows the file to `bytes` (never shrinks it) with zeros that are written and durable. So later writes inside it
  // neither fail for lack of space nor change metadata. Costs a write of that size.
  virtual Status Allocate(uint64_t bytes) = 0;
};

// One asynchronous transfer. The submitter fills the first part. The queue fills `status` and `transferred`: all of
// `bytes`, or an error, or less for a read that met the end of the file. A sync covers the writes reaped before it
// was submitted. From an accepted Submit until it is reaped, the request is the queue's: the submitter neither changes
// nor reads it. A queue may put another file into it meanwhile.
struct IoRequest {
  enum class Kind : uint8_t { kRead, kWrite, kSync };
  Kind kind = Kind::kRead;
  File* file = nullptr;
  uint64_t offset = 0;
  void* data = nullptr;
  size_t bytes = 0;
  void* context = nullptr;  // for the submitter; the queue does not use it

  Status status = {};
  size_t transferred = 0;
};

class IoQueue {
 public:
  virtual ~IoQueue() = default;
  // Starts the transfer; never blocks on the device. RESOURCE_EXHAUSTED when `depth` requests are in flight.
  virtual Status Submit(IoRequest* request) = 0;
  // The same, but the transfer may wait for the caller's next Submit or Reap. So a caller that starts several transfers
  // at once pays for one system call.
  virtual Status SubmitLater(IoRequest* request) { return Submit(request); }
  // Waits until at least one request has completed, Wake was called or the deadline passed. Appends the completed
  // requests, in no order. Returns at once if a request has completed already, or none is in flight, or the deadline is
  // in the past: such a call is cheap.
  virtual void Reap(std::vector<IoRequest*>* completed, Deadline deadline) = 0;
  // Makes the Reap that waits now, or else a later one that would wait, return early. From any thread; cheap when no
  // Reap waits. Wakes are not counted: several may end one Reap. A Reap that returns completions, or whose deadline has
  // passed, may consume a wake. So a thread changes its state before it calls Wake, and the queue's thread looks at
  // that state after every Reap, whatever the Reap has returned.
  virtual void Wake() = 0;
  virtual size_t in_flight() const = 0;
};

class FileLock {
 public:
  virtual ~FileLock() = default;  // releases
  // Sets whether the release removes the lock file. At first it does not. A file that this lock has not made is never
  // removed. (The system's storage takes a file that it found empty for made.) A start that may still be refused sets
  // this, so that a refusal leaves the folder as it was. Any thread, one at a time.
  virtual void RemoveWhenReleased(bool remove) = 0;
};

class Storage {
 public:
  virtual ~Storage() = default;

  virtual Result<std::unique_ptr<File>> Open(const std::string& path, const OpenOptions& options) = 0;
  // Creates the parents, too; OK if present. The directories it created are durable when it returns.
  virtual Status CreateDirectory(const std::string& path) = 0;
  virtual Result<std::vector<std::string>> List(const std::string& directory) = 0;  // names, sorted
  virtual Status Rename(const std::string& from, const std::string& to) = 0;        // replaces `to`, atomically
  virtual Status Remove(const std::string& path) = 0;                               // a file or an empty directory
  virtual Status SyncDirectory(const std::string& path) = 0;
  virtual Result<bool> Exists(const std::string& path) = 0;
  virtual Result<uint64_t> FreeBytes(const std::string& path) = 0;
  // The size of the file system that holds `path`: an upper bound of its free space.
  virtual Result<uint64_t> CapacityBytes(const std::string& path) = 0;
  // An exclusive lock that is held while the returned object lives. Creates the file `path` if it is absent. The
  // system's storage writes the number of this process into it. UNAVAILABLE, naming the holder if known, if another
  // FileLock has it, in this process or in another one.
  virtual Result<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;
  // A queue for files of this storage. REQUIRES: depth > 0.
  virtual Result<std::unique_ptr<IoQueue>> NewQueue(size_t depth) = 0;
  // "io_uring", "pread/pwrite", "memory", "faulty(...)": for the start-up message.
  virtual std::string name() const = 0;
};

enum class IoKind : uint8_t { kAuto, kUring, kPosix };

// Files on the machine's disks. kAuto: io_uring where the kernel allows it, else pread/pwrite; each queue for itself,
// so NewQueue does not fail. kUring: an error where the kernel does not allow it. (Target system_storage.)
Result<std::unique_ptr<Storage>> NewSystemStorage(IoKind kind, Runtime& runtime);
// Files in memory; the storage is empty at first and is lost with the object. (Target memory_storage. The faulty
// disk: faulty_disk.h.)
std::unique_ptr<Storage> NewMemoryStorage(Runtime& runtime);

}  // namespace deut

#endif  // COMMON_IO_STORAGE_H_
