#include "integration/ycsb/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/concat.h"
#include "common/coding/crc32c.h"

namespace deut::ycsb {
namespace {

Status FileError(std::string_view what, const std::string& path, int error) {
  return DEUT_ERROR(kIoError, what, " the journal ", path, ": ", std::strerror(error));
}

std::string WriteText(const JournalWrite& write) {
  return Concat(write.first.writer, " ", write.first.sequence, " ", write.number, " ", write.count);
}

}  // namespace

std::string JournalLine(std::string_view body) {
  return Concat(body, " ", absl::Hex(Crc32c(body), absl::kZeroPad8), "\n");
}

Result<std::unique_ptr<Journal>> Journal::Open(const std::string& path, Runtime& runtime) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return FileError("cannot open", path, errno);
  std::unique_ptr<Journal> journal(new Journal(file, path, runtime));
  // The previous process may have died in the middle of a line.
  const off_t size = lseek(file, 0, SEEK_END);
  char last = '\n';
  if (size < 0 || (size > 0 && pread(file, &last, 1, size - 1) != 1))
    return FileError("cannot read the end of", path, errno);
  const std::string start = JournalLine(Concat("S 1 ", runtime.WallMicros()));
  DEUT_RETURN_IF_ERROR(journal->Append(last == '\n' ? start : "\n" + start));
  return journal;
}

Journal::~Journal() { close(file_); }

Status Journal::Append(std::string_view bytes) {
  for (;;) {
    const ssize_t written = write(file_, bytes.data(), bytes.size());
    if (written == static_cast<ssize_t>(bytes.size())) return Status();
    if (written < 0 && errno == EINTR) continue;
    // A partial line was written (disk full): lines behind it could not be read, so the journal fails.
    return FileError("cannot append to", path_, written < 0 ? errno : ENOSPC);
  }
}

Status Journal::BeginPhase(std::string_view phase) {
  return Append(JournalLine(Concat("P ", phase, " ", runtime_.WallMicros())));
}

Status Journal::Try(const JournalWrite& write) { return Append(JournalLine(Concat("T ", WriteText(write)))); }

Status Journal::Fail(const JournalWrite& write) { return Append(JournalLine(Concat("F ", WriteText(write)))); }

Status Journal::Acknowledge(const JournalWrite& write, Timestamp timestamp) {
  return Append(JournalLine(Concat("A ", WriteText(write), " ", timestamp.value, " ", runtime_.WallMicros())));
}

}  // namespace deut::ycsb
