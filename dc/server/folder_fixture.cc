#include "dc/server/folder_fixture.h"

#include <utility>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "dc/server/state_file.h"
#include "gtest/gtest.h"

namespace deut::dc {

FolderFiles ReadFolder(Storage& storage) {
  FolderFiles files;
  for (const std::string& folder : {std::string(), std::string("pages/")}) {
    const std::string path = folder.empty() ? kServerFolder : Concat(kServerFolder, "/pages");
    if (!*storage.Exists(path)) continue;
    const auto names = storage.List(path);
    EXPECT_TRUE(names.ok());
    for (const std::string& name : *names) {
      if (name == StateFile::kLockName || name == "pages") continue;
      const auto file = storage.Open(Concat(kServerFolder, "/", folder, name), {});
      std::string bytes(*(*file)->Size(), '\0');
      EXPECT_EQ(*(*file)->Read(0, bytes.data(), bytes.size()), bytes.size());
      files[folder + name] = std::move(bytes);
    }
  }
  return files;
}

std::unique_ptr<Storage> StorageWith(const FolderFiles& files, bool with_pages) {
  std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  for (const auto& [name, bytes] : files) with_pages |= name.starts_with("pages/");
  for (const std::string& folder : {std::string("/data"), std::string(kServerFolder)}) {
    EXPECT_TRUE(storage->CreateDirectory(folder).ok());
  }
  if (with_pages) EXPECT_TRUE(storage->CreateDirectory(Concat(kServerFolder, "/pages")).ok());
  for (const auto& [name, bytes] : files) {
    const auto file = storage->Open(Concat(kServerFolder, "/", name), {.create = true, .writable = true});
    EXPECT_TRUE((*file)->Write(0, bytes.data(), bytes.size()).ok());
  }
  return storage;
}

}  // namespace deut::dc
