#include "integration/harness/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/base/check.h"

namespace deut::testing {
namespace {

int ExitStatus(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

// Runs between fork and exec in a process with threads, so it may only call functions that are safe in signal
// handlers.
[[noreturn]] void BecomeProgram(char* const* argv, const char* log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before prctl
  const int file = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  execvp(argv[0], argv);
  _exit(127);
}

}  // namespace

std::string ProgramAt(const char* variable) {
  const char* path = std::getenv(variable);
  DEUT_CHECK(path != nullptr);
  return path;
}

std::string ReadWholeFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Process::Process(std::vector<std::string> command, std::string log) : log_(std::move(log)) {
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) BecomeProgram(argv.data(), log_.c_str(), parent);
  DEUT_CHECK(pid_ > 0);
}

Process::~Process() { Kill(); }

bool Process::Running() { return !Wait(Deadline::min()).has_value(); }

void Process::Kill() {
  if (status_.has_value()) return;
  kill(pid_, SIGKILL);
  int status = 0;
  DEUT_CHECK(waitpid(pid_, &status, 0) == pid_);
  status_ = ExitStatus(status);
}

void Process::Freeze() {
  if (!status_.has_value()) kill(pid_, SIGSTOP);
}

void Process::Thaw() {
  if (!status_.has_value()) kill(pid_, SIGCONT);
}

void Process::Terminate() { Signal(SIGTERM); }

void Process::Signal(int signal) {
  if (!status_.has_value()) kill(pid_, signal);
}

std::optional<int> Process::Wait(Deadline deadline) {
  while (!status_.has_value()) {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    DEUT_CHECK(ended >= 0);
    if (ended == pid_) {
      status_ = ExitStatus(status);
    } else if (RealRuntime().Now() >= deadline) {
      break;
    } else {
      RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(5));
    }
  }
  return status_;
}

Ended RunProgram(std::vector<std::string> command, const std::string& log, Duration limit) {
  unlink(log.c_str());
  Process process(std::move(command), log);
  process.Wait(RealRuntime().Now() + limit);
  process.Kill();
  return {*process.Wait(kNoDeadline), process.Output()};
}

}  // namespace deut::testing
