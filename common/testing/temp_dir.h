// TempDir: a folder of its own for one test, removed with all its content at the end.
// Under TEST_TMPDIR (Bazel's), else the system's temporary folder; kShortPath always takes the latter, because a unix-socket
// path holds only 107 bytes. Thread-safety: path() from any thread. Errors end the test process.
#ifndef COMMON_TESTING_TEMP_DIR_H_
#define COMMON_TESTING_TEMP_DIR_H_

#include <string>

namespace deut::testing {

enum class TempDirPath { kTestFolder, kShortPath };

class TempDir {
 public:
  explicit TempDir(TempDirPath where = TempDirPath::kTestFolder);
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string Sub(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace deut::testing

#endif  // COMMON_TESTING_TEMP_DIR_H_
