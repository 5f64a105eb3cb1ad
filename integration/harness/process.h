// Process: a program that a test starts. Both of its output streams go to one file. It dies with the thread that
// started it, so that no test leaves daemons behind, however the test ends.
// Thread-safety: one thread at a time; the thread that starts the process must outlive it. Ownership: the destructor
// kills the process and waits for it.
#ifndef INTEGRATION_HARNESS_PROCESS_H_
#define INTEGRATION_HARNESS_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/runtime/runtime.h"

namespace deut::testing {

// Returns the program that the test target names by an environment variable ("TCD"). Ends the test process if the
// variable is not set.
std::string ProgramAt(const char* variable);

std::string ReadWholeFile(const std::string& path);

class Process {
 public:
  // `command` is the program's path (or a name in PATH) and its arguments. Output is appended to `log`.
  Process(std::vector<std::string> command, std::string log);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool Running();
  // Sends kill -9, and waits until the process has ended.
  void Kill();
  // SIGSTOP and SIGCONT. In between the process neither runs nor ends; its connections stay open, but it reads
  // nothing from them.
  void Freeze();
  void Thaw();
  // Sends SIGTERM, which asks the process to stop.
  void Terminate();
  void Signal(int signal);
  // Returns the exit status, or 128 + the signal that ended the process. Returns nothing if it still runs at the
  // deadline.
  std::optional<int> Wait(Deadline deadline);

  pid_t pid() const { return pid_; }
  const std::string& log() const { return log_; }
  std::string Output() const { return ReadWholeFile(log_); }

 private:
  const std::string log_;
  pid_t pid_ = 0;
  std::optional<int> status_;  // set once the process has been waited for
};

// Runs a program that ends by itself. Returns its status (128 + SIGKILL if it was killed after `limit`) and its
// output.
struct Ended {
  int status = 0;
  std::string output;
};
Ended RunProgram(std::vector<std::string> command, const std::string& log, Duration limit = seconds(60));

}  // namespace deut::testing

#endif  // INTEGRATION_HARNESS_PROCESS_H_
