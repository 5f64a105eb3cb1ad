// WatchedStorage: another storage, and a watch over its operations: one that does not come back is told after a while, and ends the process
// after a longer one. A device that hangs gives no error; without this whoever waits for it waits for ever, and nobody knows.
//
// An operation is slow when it has not come back within `slow_after`: it is logged, with what, where and how long, once, and again when
//   it comes back after all. Of several that become slow together one is named and the others are counted.
// The device is stuck when one has not come back within `stuck_after`: on_stuck is told, once. Nothing can be known of that operation any
//   more, so there is no going on: the process ends (the default), and a new one begins with what is durable.
// Time in which the process does not run (it was stopped, its machine slept) does not count.
// Operations under way are a list in the order of their beginnings, so a look costs what is slow, and an operation costs two moments of a mutex.
// Requests of a queue are not watched: who reaps them has a deadline of its own.
// Thread-safety: as Storage; on_stuck is called on the watch's thread. Ownership: borrows runtime and storage; owns its thread.
#ifndef COMMON_IO_WATCHED_STORAGE_H_
#define COMMON_IO_WATCHED_STORAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"

namespace deut {

struct DiskWatchOptions {
  Duration slow_after = std::chrono::seconds(5);
  Duration stuck_after = std::chrono::seconds(60);  // 0: never
  std::function<void(const Status&)> on_stuck = [](const Status& status) { FailStop(status.ToString()); };
};

struct DiskWatchStatistics {
  uint64_t slow_operations = 0;  // so far, those that came back and those that have not
  uint64_t waiting = 0;          // of these, under way now
  Duration oldest = Duration();  // how long the oldest of those has been
};

class WatchedStorage final : public Storage {
 public:
  WatchedStorage(Runtime& runtime, Storage& storage, DiskWatchOptions options);
  // REQUIRES: no operation is under way.
  ~WatchedStorage() override;

  DiskWatchStatistics statistics() const;

  Result<std::unique_ptr<File>> Open(const std::string& path, const OpenOptions& options) override;
  Status CreateDirectory(const std::string& path) override;
  Result<std::vector<std::string>> List(const std::string& directory) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;
  Result<bool> Exists(const std::string& path) override;
  Result<uint64_t> FreeBytes(const std::string& path) override;
  Result<uint64_t> CapacityBytes(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override;
  // Its requests name files of this storage.
  Result<std::unique_ptr<IoQueue>> NewQueue(size_t depth) override;
  std::string name() const override { return storage_.name(); }

  class Watch;

 private:
  Storage& storage_;
  const std::unique_ptr<Watch> watch_;
};

}  // namespace deut

#endif  // COMMON_IO_WATCHED_STORAGE_H_
