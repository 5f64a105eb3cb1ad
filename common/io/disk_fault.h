// The faults that can be injected into a FaultyDisk, and its counters. Plain values.
#ifndef COMMON_IO_DISK_FAULT_H_
#define COMMON_IO_DISK_FAULT_H_

#include <cstdint>
#include <functional>
#include <string>

namespace deut {

// Kinds of operations, as bits. After an operation of a changing kind a crash may leave something else behind than
// before it.
enum DiskOperationKind : uint32_t {
  kDiskRead = 1,
  kDiskWrite = 2,
  kDiskSync = 4,      // sync of a file
  kDiskAllocate = 8,  // also truncate
  kDiskOpen = 16,     // open without creating
  kDiskName = 32,     // create, rename, remove
  kDiskSyncDirectory = 64,
  kDiskOther = 128,  // list, exists, size, free bytes, lock
  kDiskChanging = kDiskWrite | kDiskSync | kDiskAllocate | kDiskName | kDiskSyncDirectory,
  kDiskAny = 255,
};

struct DiskOperation {
  DiskOperationKind kind = kDiskOther;
  std::string path = {};  // for a rename: the old path
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// States which operations fail, and how.
struct DiskFault {
  enum class Action : uint8_t {
    kIoError,   // fails with IO_ERROR
    kShortage,  // an open, create, read or sync of a directory fails with RESOURCE_EXHAUSTED, as for EMFILE or ENOMEM
    kNoSpace,   // fails with RESOURCE_EXHAUSTED and changes nothing; a sync fails with IO_ERROR
    kShort,     // a read returns only its first half; a write fails with IO_ERROR after its first half
    kFlipBit,   // silently flips one bit of the data that is read or written
    kCrash,     // the disk crashes during the operation
  };
  Action action = Action::kIoError;
  // An operation matches if all of these do.
  uint32_t kinds = kDiskAny;
  std::string path_contains = {};
  uint64_t offset_from = 0, offset_to = UINT64_MAX;  // overlap with [from, to); a kind without offset always matches
  std::function<bool(const DiskOperation&)> predicate = {};  // empty: matches
  uint64_t skip = 0;                                         // number of matches that pass first
  uint64_t count = UINT64_MAX;                               // number of matches after those that fail
};

struct DiskCounts {
  uint64_t reads = 0, writes = 0, syncs = 0, names = 0, directory_syncs = 0;
  uint64_t changing = 0;  // operations of kDiskChanging: those that CrashAfter counts
};

}  // namespace deut

#endif  // COMMON_IO_DISK_FAULT_H_
