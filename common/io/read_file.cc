#include "common/io/read_file.h"

namespace deut {

Result<std::string> ReadFile(Storage& storage, const std::string& path, uint64_t max_bytes) {
  DEUT_ASSIGN_OR_RETURN(auto file, storage.Open(path, OpenOptions{}));
  DEUT_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size > max_bytes) {
    return DEUT_ERROR(kInvalidArgument, path, " has ", size, " bytes; the limit is ", max_bytes);
  }
  std::string content(size, '\0');
  DEUT_ASSIGN_OR_RETURN(const size_t read, file->Read(0, content.data(), content.size()));
  content.resize(read);
  return content;
}

}  // namespace deut
