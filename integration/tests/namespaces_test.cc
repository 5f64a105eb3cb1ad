// Client, TC and DC each run in a network namespace of its own, joined by veth pairs, with mutual TLS by
// scripts/certificates. This simulates three hosts as far as one kernel can.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/harness/network.h"
#include "integration/harness/process.h"

namespace deut {
namespace {

using ::testing::ContainsRegex;
using testing::Ended;
using ::testing::HasSubstr;
using testing::Inside;
using ::testing::Not;
using testing::Process;
using testing::ProgramAt;
using testing::ReadWholeFile;
using testing::RunProgram;
using testing::TempDir;

constexpr uint64_t kMegabyte = 1 << 20;

class NamespacesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { network_ = new Status(testing::EnterPrivateNetwork()); }
  static void TearDownTestSuite() { delete network_; }

  void SetUp() override {
    if (!network_->ok()) GTEST_SKIP() << "no network namespaces on this machine: " << network_->ToString();
    const Ended made = RunProgram({"bash", ProgramAt("CERTIFICATES"), certs_, "tcd", "dcd", "client", "stranger"},
                                  Log("certificates"));
    ASSERT_EQ(made.status, 0) << made.output;
  }
  void TearDown() override {
    if (!HasFailure()) return;
    for (const char* name : {"dcd", "tcd"})
      std::cerr << "--- " << name << ".log\n" << ReadWholeFile(Log(name)).substr(0, 8000);
  }

  std::string Log(const std::string& name) const { return directory_.Sub(name + ".log"); }

  // Returns the command of `variable`'s program in a namespace, with a certificate. `peers` holds the flags that name
  // the peers.
  std::vector<std::string> Command(const std::string& name_space, const char* variable, const std::string& certificate,
                                   const std::vector<std::string>& peers, const std::vector<std::string>& flags) const {
    std::vector<std::string> command = Inside(name_space);
    command.insert(command.end(),
                   {ProgramAt(variable), Concat("--tls_cert=", certs_, "/", certificate, ".pem"),
                    Concat("--tls_key=", certs_, "/", certificate, ".key"), Concat("--tls_ca=", certs_, "/ca.pem")});
    command.insert(command.end(), peers.begin(), peers.end());
    command.insert(command.end(), flags.begin(), flags.end());
    return command;
  }
  std::vector<std::string> ClientCommand(const char* variable, const std::string& certificate,
                                         std::vector<std::string> words) const {
    words.insert(words.begin(), Concat("--target=", testing::kTcAddressOfClients, ":7701"));
    return Command("client", variable, certificate, {"--tls_allow=tcd"}, words);
  }

  std::unique_ptr<Process> StartDc() const {
    return std::make_unique<Process>(
        Command("dc", "DCD", "dcd", {"--tls_tc=tcd"},
                {Concat("--listen=", testing::kDcAddress, ":7702"), Concat("--data_dir=", directory_.Sub("dc"))}),
        Log("dcd"));
  }
  std::unique_ptr<Process> StartTc() const {
    return std::make_unique<Process>(
        Command("tc", "TCD", "tcd", {"--tls_dc=dcd", "--tls_clients=client", "--tls_admins=client"},
                {"--listen=0.0.0.0:7701", Concat("--dc=", testing::kDcAddress, ":7702"),
                 Concat("--data_dir=", directory_.Sub("tc"))}),
        Log("tcd"));
  }

  void AwaitServing() {
    const Deadline deadline = RealRuntime().Now() + seconds(60);
    while (true) {
      const Ended status = RunProgram(ClientCommand("DEUT", "client", {"--deadline=1s", "status"}), Log("status"));
      if (status.status == 0 && ::testing::Value(status.output, ContainsRegex("tc.serving +1\n"))) return;
      ASSERT_LT(RealRuntime().Now(), deadline) << status.output;
    }
  }

  // Waits until ycsb's timeline has a row of the run phase at `run_seconds` or later.
  void AwaitRun(Process& ycsb, double run_seconds) {
    const Deadline deadline = RealRuntime().Now() + seconds(180);
    while (true) {
      std::istringstream rows(ReadWholeFile(directory_.Sub("timeline")));
      std::string line, time, phase;
      double at = 0;
      while (std::getline(rows, line)) {
        if (std::istringstream(line) >> time >> phase >> at && phase == "run" && at >= run_seconds) return;
      }
      ASSERT_TRUE(ycsb.Running()) << ycsb.Output();
      ASSERT_LT(RealRuntime().Now(), deadline) << ycsb.Output();
      RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(20));
    }
  }

  uint64_t Bytes(const char* name) const { return testing::VethBytes(name, Log("bytes")).value(); }

  static Status* network_;
  TempDir directory_;
  const std::string certs_ = directory_.Sub("certs");
};

Status* NamespacesTest::network_ = nullptr;

TEST_F(NamespacesTest, YcsbEAcrossThreeNamespacesWithAKilledDc) {
  std::unique_ptr<Process> dcd = StartDc();
  const std::unique_ptr<Process> tcd = StartTc();
  ASSERT_NO_FATAL_FAILURE(AwaitServing());
  const uint64_t client_bytes = Bytes("client"), tc_bytes = Bytes("tc"), dc_bytes = Bytes("dc");

  const std::string journal = Concat("--journal=", directory_.Sub("journal"));
  Process ycsb(ClientCommand("YCSB", "client",
                             {"--workload=e", "--records=20000", "--value_bytes=100", "--threads=4", "--seconds=8",
                              "--tolerate_unavailable", journal, Concat("--timeline=", directory_.Sub("timeline"))}),
               Log("ycsb"));
  ASSERT_NO_FATAL_FAILURE(AwaitRun(ycsb, 3));
  const int64_t kill_us = RealRuntime().WallMicros();
  dcd->Kill();
  dcd = StartDc();
  const std::optional<int> status = ycsb.Wait(RealRuntime().Now() + seconds(180));
  ASSERT_EQ(status, 0) << ycsb.Output();
  EXPECT_TRUE(tcd->Running());

  // The client's namespace counts one link, the TC's counts both, so no byte took another way.
  EXPECT_GT(Bytes("client") - client_bytes, kMegabyte);
  EXPECT_GT(Bytes("dc") - dc_bytes, kMegabyte);
  EXPECT_GT(Bytes("tc") - tc_bytes, 2 * kMegabyte);

  const Ended verified = RunProgram(
      ClientCommand("VERIFY_JOURNAL", "client",
                    {journal, "--min_acknowledged=50", Concat("--kill_at_us=", kill_us), "--read_check=2000"}),
      Log("verify"), seconds(180));
  EXPECT_EQ(verified.status, 0) << verified.output;
  EXPECT_THAT(verified.output, ContainsRegex("missing 0, wrong 0"));
  // A connection by address causes no warning about the certificate's name.
  for (const char* name : {"dcd", "tcd"}) EXPECT_THAT(ReadWholeFile(Log(name)), Not(HasSubstr("No match found")));
}

TEST_F(NamespacesTest, OnlyAllowedNamesAreServed) {
  const std::unique_ptr<Process> dcd = StartDc();
  const std::unique_ptr<Process> tcd = StartTc();
  ASSERT_NO_FATAL_FAILURE(AwaitServing());
  // The certificate is of the right authority, but no flag allows its name.
  const Ended stranger = RunProgram(ClientCommand("DEUT", "stranger", {"status"}), Log("stranger"));
  EXPECT_EQ(stranger.status, 1);
  EXPECT_THAT(stranger.output, HasSubstr("PERMISSION_DENIED"));
  EXPECT_THAT(stranger.output, HasSubstr("stranger"));
  // The name is right, but the certificate is of another authority.
  const std::string others = directory_.Sub("others");
  ASSERT_EQ(RunProgram({"bash", ProgramAt("CERTIFICATES"), others, "client"}, Log("certificates")).status, 0);
  std::vector<std::string> forged = Inside("client");
  forged.insert(forged.end(),
                {ProgramAt("DEUT"), Concat("--target=", testing::kTcAddressOfClients, ":7701"),
                 Concat("--tls_cert=", others, "/client.pem"), Concat("--tls_key=", others, "/client.key"),
                 Concat("--tls_ca=", certs_, "/ca.pem"), "--tls_allow=tcd", "--deadline=2s", "tables", "list"});
  const Ended refused = RunProgram(forged, Log("forged"));
  EXPECT_EQ(refused.status, 1) << refused.output;
  // The client expects another name at that address.
  const Ended elsewhere =
      RunProgram(Command("client", "DEUT", "client", {"--tls_allow=bank"},
                         {Concat("--target=", testing::kTcAddressOfClients, ":7701"), "--deadline=2s", "status"}),
                 Log("elsewhere"));
  EXPECT_EQ(elsewhere.status, 1) << elsewhere.output;
  EXPECT_THAT(elsewhere.output, HasSubstr("PERMISSION_DENIED"));
  EXPECT_THAT(elsewhere.output, HasSubstr("[tcd"));
  // Without TLS, a client on another machine does not even try to connect.
  std::vector<std::string> plain = Inside("client");
  plain.insert(plain.end(), {ProgramAt("DEUT"), Concat("--target=", testing::kTcAddressOfClients, ":7701"), "status"});
  const Ended open = RunProgram(plain, Log("plain"));
  EXPECT_EQ(open.status, 2);
  EXPECT_THAT(open.output, HasSubstr("--insecure"));
}

}  // namespace
}  // namespace deut
