// RedirectLogTo: sends standard error, and with it every line of the log, to a file. A second call with the same path
// opens the file anew. So a program that rotates logs may rename the file first: lines go to the old file before the
// call, and to the new one after it.
// The file is appended to, and is created (mode 0644) if it does not exist. FATAL lines and reports of sanitizers go
// there as well.
// Thread-safety: one thread at a time; other threads may log meanwhile, and no line is lost or torn.
// Errors: those of the operating system, with path; standard error is then left as it was.
#ifndef COMMON_OBSERVE_LOG_FILE_H_
#define COMMON_OBSERVE_LOG_FILE_H_

#include <string>

#include "common/base/status.h"

namespace deut {

Status RedirectLogTo(const std::string& path);

}  // namespace deut

#endif  // COMMON_OBSERVE_LOG_FILE_H_
