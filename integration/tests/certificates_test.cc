// Certificates at both links, over loopback, made by scripts/certificates: the rights of each role, and the reloading
// of certificates (protocol/docs/certificates.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/harness/ports.h"
#include "integration/harness/process.h"

namespace deut {
namespace {

using ::testing::AllOf;
using testing::Ended;
using testing::FreePort;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Process;
using testing::ProgramAt;
using testing::ReadWholeFile;
using testing::RunProgram;
using testing::TempDir;

class CertificatesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MakeCertificates("certs", {"tcd", "dcd", "app", "report", "ops", "stranger", "uri=spiffe://example.com/app"});
  }

  void MakeCertificates(const std::string& folder, std::vector<std::string> names) {
    std::vector<std::string> command = {"bash", ProgramAt("CERTIFICATES"), directory_.Sub(folder)};
    command.insert(command.end(), names.begin(), names.end());
    const Ended made = RunProgram(command, directory_.Sub("certificates.log"));
    ASSERT_EQ(made.status, 0) << made.output;
  }
  std::vector<std::string> Command(const char* variable, const std::string& certificate,
                                   const std::vector<std::string>& flags, const std::string& folder = "certs") const {
    const std::string stem = directory_.Sub(folder);
    std::vector<std::string> command = {ProgramAt(variable), Concat("--tls_cert=", stem, "/", certificate, ".pem"),
                                        Concat("--tls_key=", stem, "/", certificate, ".key"),
                                        Concat("--tls_ca=", directory_.Sub("certs"), "/ca.pem")};
    command.insert(command.end(), flags.begin(), flags.end());
    return command;
  }
  std::unique_ptr<Process> StartDc(const std::string& certificate) {
    return std::make_unique<Process>(
        Command("DCD", certificate,
                {Concat("--listen=127.0.0.1:", dc_port_), "--tls_tc=tcd", Concat("--data_dir=", directory_.Sub("dc"))}),
        directory_.Sub("dcd.log"));
  }
  std::unique_ptr<Process> StartTc(std::vector<std::string> roles) {
    roles.insert(roles.end(),
                 {Concat("--listen=127.0.0.1:", tc_port_), Concat("--dc=127.0.0.1:", dc_port_), "--tls_dc=dcd",
                  Concat("--data_dir=", directory_.Sub("tc")), "--log_segment=16MiB", "--log_buffer=16MiB"});
    return std::make_unique<Process>(Command("TCD", "tcd", roles), directory_.Sub("tcd.log"));
  }
  Ended Deut(const std::string& certificate, std::vector<std::string> words, const std::string& folder = "certs") {
    words.insert(words.begin(), {Concat("--target=127.0.0.1:", tc_port_), "--tls_allow=tcd", "--deadline=5s"});
    return RunProgram(Command("DEUT", certificate, words, folder), directory_.Sub("deut.log"));
  }
  static void Await(Process& process, const std::string& text) { AwaitIn(process, process.log(), text); }
  static void AwaitIn(Process& process, const std::string& log, const std::string& text) {
    const Deadline deadline = RealRuntime().Now() + seconds(60);
    while (ReadWholeFile(log).find(text) == std::string::npos) {
      ASSERT_TRUE(process.Running()) << process.Output();
      ASSERT_LT(RealRuntime().Now(), deadline) << "no \"" << text << "\" in " << ReadWholeFile(log);
      RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(20));
    }
  }
  void ExpectRefused(const Ended& ended, const std::string& text) {
    EXPECT_EQ(ended.status, 1) << ended.output;
    EXPECT_THAT(ended.output, AllOf(HasSubstr("PERMISSION_DENIED"), HasSubstr("certificate refused"), HasSubstr(text)));
  }

  TempDir directory_;
  const uint16_t dc_port_ = FreePort(), tc_port_ = FreePort();
};

TEST_F(CertificatesTest, AClientsCertificateIsNoDataComponent) {
  const std::unique_ptr<Process> impostor = StartDc("app");
  const std::unique_ptr<Process> tcd = StartTc({"--tls_clients=app"});
  ASSERT_NO_FATAL_FAILURE(Await(*tcd, "none of them is allowed (--tls_dc)"));
  EXPECT_THAT(tcd->Output(), Not(HasSubstr("connected to the data component")));
  // The tcd keeps waiting for the right data component.
  EXPECT_TRUE(tcd->Running());
}

TEST_F(CertificatesTest, EachRoleMayDoItsOwnAndNothingElse) {
  std::ofstream(directory_.Sub("rights")) << "spiffe://example.com/app client  mine.\n";
  const std::unique_ptr<Process> dcd = StartDc("dcd");
  const std::unique_ptr<Process> tcd = StartTc({"--tls_clients=app", "--tls_readers=report", "--tls_admins=ops",
                                                Concat("--tls_rights=", directory_.Sub("rights"))});
  ASSERT_NO_FATAL_FAILURE(Await(*tcd, "tcd serves"));
  for (const char* table : {"default", "mine.a"}) {
    const Ended created = Deut("ops", {"tables", "create", table});
    ASSERT_EQ(created.status, 0) << created.output;
  }
  EXPECT_EQ(Deut("app", {"put", "k", "v"}).status, 0);
  EXPECT_THAT(Deut("report", {"get", "k"}).output, HasSubstr("v"));
  EXPECT_EQ(Deut("ops", {"status"}).status, 0);

  // The data component's certificate may neither run transactions nor drop tables, and a client may not act as an
  // administrator.
  ExpectRefused(Deut("dcd", {"get", "k"}), "[dcd");
  ExpectRefused(Deut("dcd", {"tables", "drop", "default"}), "[dcd");
  ExpectRefused(Deut("stranger", {"status"}), "[stranger");
  ExpectRefused(Deut("app", {"tables", "drop", "default"}), "\"app\" may not call DropTable");
  ExpectRefused(Deut("report", {"put", "k", "w"}), "\"report\" may not write to the table \"default\"");
  ExpectRefused(Deut("ops", {"get", "k"}), "\"ops\" may not call");
  EXPECT_THAT(Deut("report", {"get", "k"}).output, HasSubstr("v"));

  // A client named by the URI of its certificate may use the tables within its prefix.
  const Ended inside = Deut("uri", {"--table=mine.a", "put", "k", "v"});
  EXPECT_EQ(inside.status, 0) << inside.output;
  ExpectRefused(Deut("uri", {"put", "k", "w"}), "may not");
  EXPECT_THAT(Deut("uri", {"tables", "list"}).output, AllOf(HasSubstr("mine.a"), Not(HasSubstr("default"))));

  EXPECT_THAT(tcd->Output(), AllOf(HasSubstr("a client at 127.0.0.1:"), HasSubstr("[stranger")));
  // A client's certificate does not make its holder a transaction component.
  Process other(Command("TCD", "app",
                        {Concat("--listen=127.0.0.1:", FreePort()), Concat("--dc=127.0.0.1:", dc_port_), "--tls_dc=dcd",
                         "--tls_clients=app", Concat("--data_dir=", directory_.Sub("other")), "--log_segment=16MiB",
                         "--log_buffer=16MiB"}),
                directory_.Sub("other.log"));
  ASSERT_NO_FATAL_FAILURE(Await(other, "certificate refused: it carries the names [app"));
  EXPECT_TRUE(other.Running()) << "a refused certificate may be mended: it is no final refusal";
  other.Terminate();
  EXPECT_EQ(other.Wait(RealRuntime().Now() + seconds(60)), 0) << other.Output();
  EXPECT_TRUE(std::filesystem::is_empty(directory_.Sub("other"))) << "a refused start has written to its folder";
}

TEST_F(CertificatesTest, ChangedCertificatesAndRightsAreTakenUpWithoutARestart) {
  std::ofstream(directory_.Sub("rights")) << "app client\napp admin\n";
  const std::unique_ptr<Process> dcd = StartDc("dcd");
  const std::unique_ptr<Process> tcd = StartTc({Concat("--tls_rights=", directory_.Sub("rights"))});
  ASSERT_NO_FATAL_FAILURE(Await(*tcd, "tcd serves"));
  ASSERT_EQ(Deut("app", {"tables", "create", "default"}).status, 0);
  ASSERT_EQ(Deut("app", {"put", "k", "v"}).status, 0);

  // Replaces all certificates, and the authority too, under the same names.
  MakeCertificates("next", {"tcd", "dcd", "app"});
  for (const char* name : {"ca.pem", "tcd.pem", "tcd.key", "dcd.pem", "dcd.key"}) {
    std::filesystem::rename(directory_.Sub("next") + "/" + name, directory_.Sub("certs") + "/" + name);
  }
  for (Process* daemon : {tcd.get(), dcd.get()}) {
    daemon->Signal(SIGHUP);
    ASSERT_NO_FATAL_FAILURE(Await(*daemon, "certificates and rights were read again"));
  }
  const Deadline deadline = RealRuntime().Now() + seconds(20);
  Ended with_new = Deut("app", {"get", "k"}, "next");
  while (with_new.status != 0 && RealRuntime().Now() < deadline) with_new = Deut("app", {"get", "k"}, "next");
  EXPECT_EQ(with_new.status, 0) << with_new.output;
  // A certificate of the old authority is not trusted any more.
  const Ended with_old = Deut("app", {"get", "k"}, "certs");
  EXPECT_EQ(with_old.status, 1);
  ExpectRefused(with_old, "refused this program's certificate");
  EXPECT_THAT(tcd->Output(), HasSubstr("a TLS handshake was refused, of a peer at 127.0.0.1:"));

  // A key that belongs to another certificate leaves the certificates in use unchanged.
  std::filesystem::copy_file(directory_.Sub("next") + "/app.key", directory_.Sub("certs") + "/tcd.key",
                             std::filesystem::copy_options::overwrite_existing);
  tcd->Signal(SIGHUP);
  ASSERT_NO_FATAL_FAILURE(Await(*tcd, "is not the key of --tls_cert"));
  EXPECT_EQ(Deut("app", {"get", "k"}, "next").status, 0);
}

TEST_F(CertificatesTest, AHangupReadsCertificatesAlsoWhereTheLogCannotBeOpened) {
  const std::string log = directory_.Sub("own.log"), renamed = directory_.Sub("own.log.1");
  std::ofstream(directory_.Sub("rights")) << "ops admin\n";
  const std::unique_ptr<Process> tcd =
      StartTc({"--tls_clients=app", Concat("--log_file=", log), Concat("--tls_rights=", directory_.Sub("rights"))});
  ASSERT_NO_FATAL_FAILURE(AwaitIn(*tcd, log, "tcd listens on"));
  std::filesystem::rename(log, renamed);
  std::filesystem::create_directory(log);
  std::ofstream(directory_.Sub("rights")) << "no right\n";
  tcd->Signal(SIGHUP);
  ASSERT_NO_FATAL_FAILURE(AwaitIn(*tcd, renamed, "the log goes on where it was"));
  ASSERT_NO_FATAL_FAILURE(AwaitIn(*tcd, renamed, "certificates and rights are refused"));
}

// Signals arrive so often that the daemon's wait for a signal never reaches its timeout.
TEST_F(CertificatesTest, ChangesAreFoundWhileSignalsComeAllTheTime) {
  std::ofstream(directory_.Sub("rights")) << "ops admin\n";
  const std::unique_ptr<Process> tcd = StartTc({Concat("--tls_rights=", directory_.Sub("rights"))});
  ASSERT_NO_FATAL_FAILURE(Await(*tcd, "tcd listens on"));
  std::ofstream(directory_.Sub("rights")) << "ops admin\napp client\n";
  const Deadline deadline = RealRuntime().Now() + seconds(60);
  while (tcd->Output().find("have changed and were read again") == std::string::npos) {
    ASSERT_LT(RealRuntime().Now(), deadline) << tcd->Output();
    tcd->Signal(SIGUSR1);
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(100));
  }
}

TEST_F(CertificatesTest, ATcThatLosesItsRoleLosesItsOpenStreams) {
  std::ofstream(directory_.Sub("rights")) << "tcd tc\n";
  Process dcd(Command("DCD", "dcd",
                      {Concat("--listen=127.0.0.1:", dc_port_), Concat("--tls_rights=", directory_.Sub("rights")),
                       Concat("--data_dir=", directory_.Sub("dc"))}),
              directory_.Sub("dcd.log"));
  const std::unique_ptr<Process> tcd = StartTc({"--tls_clients=app", "--tls_admins=ops"});
  ASSERT_NO_FATAL_FAILURE(Await(*tcd, "tcd serves"));
  ASSERT_EQ(Deut("ops", {"tables", "create", "default"}).status, 0);
  ASSERT_EQ(Deut("app", {"put", "k", "v"}).status, 0);
  std::ofstream(directory_.Sub("rights")) << "other tc\n";
  dcd.Signal(SIGHUP);
  ASSERT_NO_FATAL_FAILURE(Await(dcd, "rights were taken away, so all connections are closed"));
  ASSERT_NO_FATAL_FAILURE(Await(dcd, "was refused: certificate refused: it carries the names [tcd"));
  ASSERT_NO_FATAL_FAILURE(Await(*tcd, "certificate refused: it carries the names [tcd"));
  // The tcd gets its streams back with the role.
  std::ofstream(directory_.Sub("rights")) << "tcd tc\n";
  dcd.Signal(SIGHUP);
  const Deadline deadline = RealRuntime().Now() + seconds(60);
  while (Deut("app", {"get", "k"}).status != 0) ASSERT_LT(RealRuntime().Now(), deadline) << tcd->Output();
}

TEST_F(CertificatesTest, ADaemonThatIsToldOneListForAllIsToldWhatStandsInItsPlace) {
  const Ended dcd = RunProgram(Command("DCD", "dcd", {"--tls_allow=tcd", Concat("--data_dir=", directory_.Sub("x"))}),
                               directory_.Sub("x.log"));
  EXPECT_EQ(dcd.status, 1);
  EXPECT_THAT(dcd.output, AllOf(HasSubstr("--tls_allow=tcd is no longer taken"), HasSubstr("--tls_tc")));
  const Ended tcd = RunProgram(
      Command("TCD", "tcd", {"--tls_allow=dcd,app", "--tls_dc=dcd", Concat("--data_dir=", directory_.Sub("x"))}),
      directory_.Sub("x.log"));
  EXPECT_EQ(tcd.status, 1);
  EXPECT_THAT(tcd.output, AllOf(HasSubstr("no longer taken"), HasSubstr("--tls_clients"), HasSubstr("--tls_dc")));
}

}  // namespace
}  // namespace deut
