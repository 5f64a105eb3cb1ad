// WatchedStorage: wraps another storage and watches its operations. An operation that does not return is logged after
// a while; after a longer time it ends the process. A device that hangs gives no error; without the watch its callers
// would wait for ever, unnoticed.
//
// An operation is *slow* when it has not returned within `slow_after`. The watch logs it once, with its kind, place
//   and age, and once more if it returns later. If several become slow together, the log line names one and counts
//   the others.
// The device is *stuck* when an operation has not returned within `stuck_after`: the watch calls on_stuck, once. The
//   outcome of that operation is unknown, so the process cannot go on. By default it ends, and a new one starts from
//   the durable state.
// Time in which the process does not run (it was stopped, or its machine slept) does not count.
// Operations in flight are a list in the order of their beginnings. So a look costs time only for the slow ones, and
// an operation takes a mutex twice.
// A request of a queue is in flight from its submission until it is reaped.
// Thread-safety: as Storage; on_stuck is called on the watch's thread. Ownership: borrows runtime and storage; owns
// its thread.
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
  uint64_t slow_operations = 0;      // so far, whether they have returned or not
  uint64_t slow_in_flight = 0;       // slow operations that are in flight now
  Duration oldest_age = Duration();  // age of the oldest operation in flight, if a slow one is in flight
};

class WatchedStorage final : public Storage {
 public:
  WatchedStorage(Runtime& runtime, Storage& storage, DiskWatchOptions options);
  // REQUIRES: no operation is in flight.
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
  // Requests of this queue name files of this storage.
  Result<std::unique_ptr<IoQueue>> NewQueue(size_t depth) override;
  std::string name() const override { return storage_.name(); }

  class Watch;

 private:
  Storage& storage_;
  const std::unique_ptr<Watch> watch_;
};

}  // namespace deut

#endif  // COMMON_IO_WATCHED_STORAGE_H_
