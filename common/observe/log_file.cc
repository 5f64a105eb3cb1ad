#include "common/observe/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace deut {

Status RedirectLogTo(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return DEUT_ERROR(kIoError, "open log file ", path, ": ", strerror(errno));
  // dup2 replaces the descriptor in one step. A thread that writes a line meanwhile writes it whole, to the old file
  // or to the new one.
  const int redirected = dup2(file, STDERR_FILENO);
  const int error = errno;
  close(file);
  if (redirected < 0) return DEUT_ERROR(kIoError, "write the log to ", path, ": ", strerror(error));
  return Status::Ok();
}

}  // namespace deut
