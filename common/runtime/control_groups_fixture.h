// ControlGroupsFixture: for tests, a folder in place of the machine's root, with files of control groups that a test writes.
#ifndef COMMON_RUNTIME_CONTROL_GROUPS_FIXTURE_H_
#define COMMON_RUNTIME_CONTROL_GROUPS_FIXTURE_H_

#include <filesystem>
#include <fstream>
#include <string>

#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"

namespace deut::testing {

class ControlGroupsFixture : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) const {
    const std::string full = dir_.path() + path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    std::ofstream(full) << text;
  }

  const TempDir dir_;
};

}  // namespace deut::testing

#endif  // COMMON_RUNTIME_CONTROL_GROUPS_FIXTURE_H_
