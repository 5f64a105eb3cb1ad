// Writes and reads files of a faulty disk in one line each, and enumerates the contents that a crash may leave. For
// tests of the disk itself.
#ifndef COMMON_IO_FAULTY_DISK_FIXTURE_H_
#define COMMON_IO_FAULTY_DISK_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut {

inline constexpr OpenOptions kRead{};
inline constexpr OpenOptions kCreate{.create = true, .writable = true};
inline constexpr OpenOptions kCreateSynchronous{.create = true, .writable = true, .sync_writes = true};
inline constexpr uint64_t kSeeds = 120;

inline std::unique_ptr<File> Open(Storage& storage, const std::string& path, const OpenOptions& options) {
  auto file = storage.Open(path, options);
  EXPECT_TRUE(file.ok()) << file.status().ToString();
  return file.ok() ? std::move(file).value() : nullptr;
}

inline Status Put(File& file, uint64_t offset, const std::string& content) {
  return file.Write(offset, content.data(), content.size());
}

// Returns the file's content, or "(absent)" if there is no such file.
inline std::string Get(Storage& storage, const std::string& path) {
  auto file = storage.Open(path, kRead);
  if (!file.ok()) return "(absent)";
  std::string content(*(*file)->Size(), '?');
  EXPECT_EQ(*(*file)->Read(0, content.data(), content.size()), content.size());
  return content;
}

// Makes a file "f" whose name and `content` are durable.
inline void PutDurable(FaultyDisk& disk, const std::string& content) {
  auto storage = disk.Mount();
  auto file = Open(*storage, "f", kCreate);
  ASSERT_TRUE(Put(*file, 0, content).ok());
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(storage->SyncDirectory("").ok());
}

// Returns the contents of "f" after a crash, over many seeds.
template <typename Scenario>
std::set<std::string> OutcomesOf(const Scenario& scenario) {
  std::set<std::string> outcomes;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FaultyDisk disk(RealRuntime(), seed);
    scenario(disk);
    disk.Crash(seed);
    auto storage = disk.Mount();
    outcomes.insert(Get(*storage, "f"));
  }
  return outcomes;
}

inline std::string Sectors(const std::string& letters) {
  std::string content;
  for (const char letter : letters) content += std::string(512, letter);
  return content;
}

}  // namespace deut

#endif  // COMMON_IO_FAULTY_DISK_FIXTURE_H_
