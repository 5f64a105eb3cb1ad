// Journal: the writes that the benchmark's workers tried and those that were acknowledged, in a file. Another process
// can check the store against it (journal_reader.h). The journal survives the death of the process at any instant,
// but not that of the machine. A worker hands each line to the kernel by one write(2) before it continues. It does so
// for a try before it sends the write, and for an acknowledgement before it counts the write.
//
//   file := line*
//   line := body " " checksum "\n"                    checksum: CRC-32C of body, 8 hexadecimal digits
//   body := "S 1 " wall_us                            a process opened the journal; 1 is the version of this format
//         | "P " phase " " wall_us                    the following lines belong to phase "load" or "run"
//         | "T " write                                the write is about to be sent
//         | "A " write " " timestamp " " wall_us      acknowledged, with its commit timestamp
//         | "F " write                                failed: refused with the promise that it will never happen
//   write := writer " " sequence " " number " " count
// A write covers `count` records: number, number + 1, and so on. One transaction writes them; their write ids are
// (writer, sequence), (writer, sequence + 1), and so on. Numbers are decimal; wall_us is microseconds since 1970. An
// A or F answers the T of the same write; a T without an answer may or may not have happened. The last line before an
// S, or before the end, may be torn.
//
// The journal does not use common/io: it observes the store from outside, and shares nothing with it.
// Thread-safety: any thread may call all methods (appends are atomic: O_APPEND, one write(2) a line).
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

// The write that a line of the journal names.
struct JournalWrite {
  WriteId first;
  uint64_t number = 0;
  uint32_t count = 1;
};

// Returns `body` with its checksum and the end of the line.
std::string JournalLine(std::string_view body);

class Journal {
 public:
  // Creates the file, or continues at its end. IO_ERROR names path and reason.
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
