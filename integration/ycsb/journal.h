// Journal: what the benchmark's workers tried to write and what was acknowledged, in a file that another process can check the store
// against (journal_reader.h). It survives the death of the process, at any instant, but not of the machine: every line is handed to the
// kernel by one write(2) before the worker goes on, a try before the write is sent, an acknowledgement before it is counted.
//
//   file := line*
//   line := body " " checksum "\n"                    checksum: CRC-32C of body, 8 hexadecimal digits
//   body := "S 1 " wall_us                            a process opened the journal; 1 is the version of this format
//         | "P " phase " " wall_us                    what follows belongs to phase "load" or "run"
//         | "T " write                                about to be sent
//         | "A " write " " timestamp " " wall_us      acknowledged: its commit timestamp
//         | "F " write                                failed: refused in a way that promises that it will never happen
//   write := writer " " sequence " " number " " count
// A write covers the records number, number + 1, ... (count of them), written by writes (writer, sequence), (writer, sequence + 1), ...
// in one transaction. Numbers are decimal; wall_us is microseconds since 1970. An A or F answers the T of the same write; a T
// without either may or may not have happened. The last line before an S, or before the end, may be torn.
//
// It does not go through common/io: it is an observer from outside, and shares nothing with what is observed.
// Thread-safety: all methods from any thread (appends are atomic: O_APPEND, one write(2) a line).
#ifndef INTEGRATION_YCSB_JOURNAL_H_
#define INTEGRATION_YCSB_JOURNAL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "integration/ycsb/record.h"

namespace deut::ycsb {

// What one line of the journal is about.
struct JournalWrite {
  WriteId first;
  uint64_t number = 0;
  uint32_t count = 1;
};

// `body` with its checksum and the end of the line.
std::string JournalLine(std::string_view body);

class Journal {
 public:
  // Creates the file, or goes on at its end. IO_ERROR that names path and reason.
  static Result<std::unique_ptr<Journal>> Open(const std::string& path, Runtime& runtime);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  Status BeginPhase(std::string_view phase);
  Status Try(const JournalWrite& write);
  Status Acknowledge(const JournalWrite& write, Timestamp timestamp);
  Status Fail(const JournalWrite& write);

 private:
  Journal(int file, std::string path, Runtime& runtime) : file_(file), path_(std::move(path)), runtime_(runtime) {}
  Status Append(std::string_view bytes);

  const int file_;
  const std::string path_;
  Runtime& runtime_;
};

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_JOURNAL_H_
