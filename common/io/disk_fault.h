// What can be made to go wrong on a FaultyDisk, and what it counts. Plain values.
#ifndef COMMON_IO_DISK_FAULT_H_
#define COMMON_IO_DISK_FAULT_H_

#include <cstdint>
#include <functional>
#include <string>

namespace deut {

// Kinds of operations, as bits. The changing ones are those after which a crash may leave something else behind.
enum DiskOperationKind : uint32_t {
  kDiskRead = 1,
  kDiskWrite = 2,
  kDiskSync = 4,      // of a file
  kDiskAllocate = 8,  // and truncate
  kDiskOpen = 16,     // without creating
  kDiskName = 32,     // create, rename, remove
  kDiskSyncDirectory = 64,
  kDiskOther = 128,  // list, exists, size, free bytes, lock
  kDiskChanging = kDiskWrite | kDiskSync | kDiskAllocate | kDiskName | kDiskSyncDirectory,
  kDiskAny = 255,
};

struct DiskOperation {
  DiskOperationKind kind = kDiskOther;
  std::string path = {};  // of a rename: the old one
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// Which operations go wrong, and how.
struct DiskFault {
  enum class Action : uint8_t {
    kIoError,   // fails with IO_ERROR
    kShortage,  // an open, create, read or sync of a directory fails with RESOURCE_EXHAUSTED, as for EMFILE or ENOMEM
    kNoSpace,   // fails with RESOURCE_EXHAUSTED, changes nothing; a sync fails with IO_ERROR
    kShort,     // a read returns only its first half; a write fails with IO_ERROR after its first half
    kFlipBit,   // one bit of what is read or written is flipped, in silence
    kCrash,     // the disk crashes during the operation
  };
  Action action = Action::kIoError;
  // All of these must match.
  uint32_t kinds = kDiskAny;
  std::string path_contains = {};
  uint64_t offset_from = 0, offset_to = UINT64_MAX;  // overlap with [from, to); for kinds without offset: matches
  std::function<bool(const DiskOperation&)> predicate = {};  // empty: matches
  uint64_t skip = 0;                                         // so many matches pass first
  uint64_t count = UINT64_MAX;                               // then so many go wrong
};

struct DiskCounts {
  uint64_t reads = 0, writes = 0, syncs = 0, names = 0, directory_syncs = 0;
  uint64_t changing = 0;  // operations of kDiskChanging: what CrashAfter counts
};

}  // namespace deut

#endif  // COMMON_IO_DISK_FAULT_H_
