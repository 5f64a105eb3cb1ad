// StorageConformanceTest: a folder of each implementation of Storage in turn. For tests. Thread-safety: one thread.
#ifndef COMMON_IO_STORAGE_CONFORMANCE_FIXTURE_H_
#define COMMON_IO_STORAGE_CONFORMANCE_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/io/watched_storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"

namespace deut {

inline constexpr OpenOptions kRead{};
inline constexpr OpenOptions kReadWrite{.writable = true};
inline constexpr OpenOptions kCreate{.create = true, .writable = true};
inline constexpr OpenOptions kCreateDirect{.create = true, .writable = true, .direct = true, .sync_writes = true};

class StorageConformanceTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string kind = GetParam();
    if (kind == "memory") {
      storage_ = NewMemoryStorage(runtime_);
    } else if (kind == "faulty") {
      disk_ = std::make_unique<FaultyDisk>(runtime_, 1);
      storage_ = disk_->Mount();
    } else if (kind == "watched") {
      disk_ = std::make_unique<FaultyDisk>(runtime_, 1);
      behind_ = disk_->Mount();
      storage_ = std::make_unique<WatchedStorage>(runtime_, *behind_, DiskWatchOptions());
    } else {
      auto storage = NewSystemStorage(kind == "uring" ? IoKind::kUring : IoKind::kPosix, runtime_);
      ASSERT_TRUE(storage.ok()) << storage.status().ToString();
      storage_ = std::move(storage).value();
    }
    ASSERT_TRUE(storage_->CreateDirectory(folder_.path()).ok());
  }

  std::string Path(const std::string& name) const { return folder_.Sub(name); }

  std::unique_ptr<File> Open(const std::string& name, const OpenOptions& options) {
    auto file = storage_->Open(Path(name), options);
    EXPECT_TRUE(file.ok()) << file.status().ToString();
    return file.ok() ? std::move(file).value() : nullptr;
  }
  std::unique_ptr<IoQueue> Queue(size_t depth) {
    auto queue = storage_->NewQueue(depth);
    EXPECT_TRUE(queue.ok()) << queue.status().ToString();
    return queue.ok() ? std::move(queue).value() : nullptr;
  }
  void Put(const std::string& name, const std::string& content) {
    auto file = Open(name, kCreate);
    ASSERT_NE(file, nullptr);
    ASSERT_TRUE(file->Write(0, content.data(), content.size()).ok());
  }
  std::string Get(const std::string& name) {
    auto file = Open(name, kRead);
    if (file == nullptr) return "";
    std::string content(*file->Size() + 10, '?');
    content.resize(*file->Read(0, content.data(), content.size()));
    return content;
  }
  // Reaps until nothing is in flight.
  static std::vector<IoRequest*> ReapAll(IoQueue& queue) {
    std::vector<IoRequest*> completed;
    while (queue.in_flight() > 0) queue.Reap(&completed, RealRuntime().Now() + seconds(30));
    return completed;
  }

  Runtime& runtime_ = RealRuntime();
  testing::TempDir folder_;
  std::unique_ptr<FaultyDisk> disk_;
  std::unique_ptr<Storage> behind_;
  std::unique_ptr<Storage> storage_;
};

}  // namespace deut

#endif  // COMMON_IO_STORAGE_CONFORMANCE_FIXTURE_H_
