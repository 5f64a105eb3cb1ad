// ReadFile: returns a whole small file (configuration, certificates) as a string.
// Errors: those of Storage; INVALID_ARGUMENT, naming the limit, for a larger file.
#ifndef COMMON_IO_READ_FILE_H_
#define COMMON_IO_READ_FILE_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/io/storage.h"

namespace deut {

constexpr uint64_t kMaxSmallFileBytes = 1 << 20;

Result<std::string> ReadFile(Storage& storage, const std::string& path, uint64_t max_bytes = kMaxSmallFileBytes);

}  // namespace deut

#endif  // COMMON_IO_READ_FILE_H_
