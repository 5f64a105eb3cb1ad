#include "common/testing/temp_dir.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace deut::testing {
namespace {

TEST(TempDir, IsUniqueAndRemovedWithItsContent) {
  std::string kept;
  {
    TempDir first, second;
    EXPECT_NE(first.path(), second.path());
    kept = first.path();
    std::filesystem::create_directory(first.Sub("inner"));
    std::ofstream(first.Sub("inner/file")) << "x";
    EXPECT_TRUE(std::filesystem::exists(kept + "/inner/file"));
  }
  EXPECT_FALSE(std::filesystem::exists(kept));
}

TEST(TempDir, ShortPathsHoldASocketName) {
  TempDir dir(TempDirPath::kShortPath);
  EXPECT_LT(dir.Sub("a-socket-name").size(), 107u);
}

}  // namespace
}  // namespace deut::testing
