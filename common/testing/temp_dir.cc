#include "common/testing/temp_dir.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "common/base/check.h"

namespace deut::testing {

TempDir::TempDir(TempDirPath where) {
  const char* folder = where == TempDirPath::kTestFolder ? std::getenv("TEST_TMPDIR") : nullptr;
  std::string pattern =
      (folder != nullptr ? std::string(folder) : std::filesystem::temp_directory_path().string()) + "/deut-XXXXXX";
  DEUT_CHECK(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;  // a test that made its folder unremovable has failed anyway
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace deut::testing
