// TempDir: a separate folder for one test, removed with all its content at the end.
// It lies under TEST_TMPDIR (Bazel's), else in the system's temporary folder. kShortPath always uses the latter,
// because a unix-socket path holds only 107 bytes.
// Thread-safety: path() from any thread. Errors end the test process.
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
