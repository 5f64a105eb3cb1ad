// Daemons under a supervisor: signals that must not end them, and exit statuses that tell the supervisor why they
// ended (protocol/README.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/harness/cluster.h"
#include "integration/harness/process.h"

namespace deut {
namespace {

using testing::FreePort;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Process;
using testing::ProgramAt;
using testing::ReadWholeFile;
using testing::TempDir;

constexpr int kFencedStatus = 4, kRefusedStatus = 5;

class SupervisionTest : public ::testing::Test {
 protected:
  std::unique_ptr<Process> Start(const char* variable, const std::string& name, std::vector<std::string> flags) {
    flags.insert(flags.begin(), ProgramAt(variable));
    flags.push_back(Concat("--data_dir=", directory_.Sub(name)));
    return std::make_unique<Process>(std::move(flags), directory_.Sub(name + ".log"));
  }
  std::unique_ptr<Process> StartDc(const std::string& name, uint16_t port, std::vector<std::string> flags = {}) {
    flags.push_back(Concat("--listen=127.0.0.1:", port));
    return Start("DCD", name, std::move(flags));
  }
  std::unique_ptr<Process> StartTc(const std::string& name, uint16_t dc_port, std::vector<std::string> flags = {}) {
    flags.push_back(Concat("--listen=127.0.0.1:", FreePort()));
    flags.push_back(Concat("--dc=127.0.0.1:", dc_port));
    flags.push_back("--log_segment=16MiB");
    flags.push_back("--log_buffer=16MiB");
    return Start("TCD", name, std::move(flags));
  }
  // Waits until the file contains the text; the process must keep running.
  static void Await(Process& process, const std::string& file, const std::string& text) {
    const Deadline deadline = RealRuntime().Now() + seconds(60);
    while (ReadWholeFile(file).find(text) == std::string::npos) {
      ASSERT_TRUE(process.Running()) << "it ended before \"" << text << "\": " << process.Output();
      ASSERT_LT(RealRuntime().Now(), deadline) << "no \"" << text << "\" in " << ReadWholeFile(file);
      RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(10));
    }
  }
  static void Await(Process& process, const std::string& text) { Await(process, process.log(), text); }
  static Deadline Soon() { return RealRuntime().Now() + seconds(60); }

  TempDir directory_;
};

TEST_F(SupervisionTest, SignalsThatAskForNothingDoNotEndADaemon) {
  const uint16_t port = FreePort();
  const std::unique_ptr<Process> dcd = StartDc("dc", port);
  const std::unique_ptr<Process> tcd = StartTc("tc", port);
  ASSERT_NO_FATAL_FAILURE(Await(*tcd, "tcd serves"));
  for (Process* daemon : {dcd.get(), tcd.get()}) {
    daemon->Signal(SIGHUP);
    ASSERT_NO_FATAL_FAILURE(Await(*daemon, "SIGHUP: the log is standard error"));
    daemon->Signal(SIGUSR1);
    ASSERT_NO_FATAL_FAILURE(Await(*daemon, "ignores signal 10 (SIGUSR1)"));
    daemon->Signal(SIGUSR2);
    ASSERT_NO_FATAL_FAILURE(Await(*daemon, "ignores signal 12 (SIGUSR2)"));
    daemon->Signal(SIGPIPE);
    daemon->Signal(SIGXFSZ);
    // The daemon handles this signal after the ones before it.
    daemon->Terminate();
    EXPECT_EQ(daemon->Wait(Soon()), 0) << daemon->Output();
  }
}

TEST_F(SupervisionTest, HangupOpensTheLogFileAnew) {
  const std::string log = directory_.Sub("dcd.log"), old = directory_.Sub("dcd.log.1");
  const std::unique_ptr<Process> dcd = StartDc("dc", FreePort(), {Concat("--log_file=", log)});
  ASSERT_NO_FATAL_FAILURE(Await(*dcd, log, "dcd serves"));
  std::filesystem::rename(log, old);
  dcd->Signal(SIGHUP);
  ASSERT_NO_FATAL_FAILURE(Await(*dcd, log, "the log was opened anew"));
  EXPECT_THAT(ReadWholeFile(old), Not(HasSubstr("SIGHUP")));
  // If the log file cannot be opened, the log stays where it was.
  const std::string newer = directory_.Sub("dcd.log.2");
  std::filesystem::rename(log, newer);
  std::filesystem::create_directory(log);
  dcd->Signal(SIGHUP);
  ASSERT_NO_FATAL_FAILURE(Await(*dcd, newer, "SIGHUP: the log goes on where it was: "));
  ASSERT_NO_FATAL_FAILURE(Await(*dcd, newer, "SIGHUP: the log stays as it is"));
  dcd->Terminate();
  EXPECT_EQ(dcd->Wait(Soon()), 0);
}

TEST_F(SupervisionTest, AFencedTcEndsWithAStatusOfItsOwn) {
  const uint16_t port = FreePort();
  const std::unique_ptr<Process> dcd = StartDc("dc", port);
  const std::unique_ptr<Process> first = StartTc("tc", port);
  ASSERT_NO_FATAL_FAILURE(Await(*first, "tcd serves"));
  // A copy of the first one's folder takes over, as after a manual failover to another machine.
  std::filesystem::copy(directory_.Sub("tc"), directory_.Sub("copy"), std::filesystem::copy_options::recursive);
  const std::unique_ptr<Process> second = StartTc("copy", port);
  ASSERT_NO_FATAL_FAILURE(Await(*second, "tcd serves"));
  EXPECT_EQ(first->Wait(Soon()), kFencedStatus) << first->Output();
  EXPECT_THAT(first->Output(), HasSubstr("FENCED"));
  EXPECT_TRUE(second->Running());
}

TEST_F(SupervisionTest, ATcWithAForeignDcEndsWithAStatusOfItsOwn) {
  const uint16_t port = FreePort(), foreign_port = FreePort();
  {
    const std::unique_ptr<Process> dcd = StartDc("dc", port);
    const std::unique_ptr<Process> tcd = StartTc("tc", port);
    ASSERT_NO_FATAL_FAILURE(Await(*tcd, "tcd serves"));
    tcd->Terminate();
    ASSERT_EQ(tcd->Wait(Soon()), 0) << tcd->Output();
  }
  const std::unique_ptr<Process> foreign = StartDc("foreign", foreign_port);
  const std::unique_ptr<Process> tcd = StartTc("tc", foreign_port);
  EXPECT_EQ(tcd->Wait(Soon()), kRefusedStatus) << tcd->Output();
  EXPECT_THAT(tcd->Output(), HasSubstr("wrong address, or a folder of another cluster"));
  // The DC that the TC refused keeps running.
  EXPECT_TRUE(foreign->Running());
}

TEST_F(SupervisionTest, ATcWithoutADcWaits) {
  const uint16_t port = FreePort();
  const std::unique_ptr<Process> tcd = StartTc("tc", port);
  ASSERT_NO_FATAL_FAILURE(Await(*tcd, "no connection to the data component"));
  const std::unique_ptr<Process> dcd = StartDc("dc", port);
  ASSERT_NO_FATAL_FAILURE(Await(*tcd, "tcd serves"));
}

}  // namespace
}  // namespace deut
