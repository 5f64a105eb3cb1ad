// The refusals of the programs: each message names what was refused, where, and how to correct it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/harness/cluster.h"
#include "integration/harness/process.h"
#include "tc/client/client.h"
#include "tc/client/retry.h"

namespace deut {
namespace {

using ::testing::AllOf;
using testing::Cluster;
using testing::Ended;
using testing::FreePort;
using ::testing::HasSubstr;
using ::testing::Matcher;
using testing::Process;
using testing::ProgramAt;
using testing::RunProgram;
using testing::TempDir;

class DaemonRefusalsTest : public ::testing::Test {
 protected:
  // Expects a daemon that cannot start: exit status 1 and a message, soon.
  void ExpectRefusal(const char* variable, std::vector<std::string> flags, const Matcher<const std::string&>& message) {
    flags.insert(flags.begin(), ProgramAt(variable));
    const Ended ended = RunProgram(std::move(flags), directory_.Sub("refused.log"), seconds(20));
    EXPECT_EQ(ended.status, 1) << ended.output;
    EXPECT_THAT(ended.output, message);
  }
  static std::string Listen() { return Concat("--listen=127.0.0.1:", FreePort()); }
  std::string Data(const char* name) const { return Concat("--data_dir=", directory_.Sub(name)); }

  TempDir directory_;
};

TEST_F(DaemonRefusalsTest, BadFlags) {
  for (const char* daemon : {"DCD", "TCD"}) {
    ExpectRefusal(daemon, {"--listne=127.0.0.1:1"},
                  AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("listne"), HasSubstr("listen")));
    ExpectRefusal(daemon, {"--max_threads=3"}, AllOf(HasSubstr("max_threads"), HasSubstr("3"), HasSubstr("16")));
    ExpectRefusal(daemon, {"--listen=nowhere"},
                  AllOf(HasSubstr("--listen"), HasSubstr("nowhere"), HasSubstr("HOST:PORT")));
    ExpectRefusal(daemon, {"--memory=8"}, AllOf(HasSubstr("--memory"), HasSubstr("8 bytes"), HasSubstr("32 MiB")));
    ExpectRefusal(daemon, {"start"}, AllOf(HasSubstr("takes flags only"), HasSubstr("start")));
  }
  ExpectRefusal("TCD", {Data("tc"), "--dc=nowhere"}, AllOf(HasSubstr("--dc"), HasSubstr("nowhere")));
}

TEST_F(DaemonRefusalsTest, NoPlainTextBeyondLoopback) {
  for (const char* daemon : {"DCD", "TCD"}) {
    ExpectRefusal(
        daemon, {Data("open"), "--listen=0.0.0.0:7707"},
        AllOf(HasSubstr("--listen"), HasSubstr("0.0.0.0:7707"), HasSubstr("--tls_cert"), HasSubstr("--insecure")));
    ExpectRefusal(daemon, {Data("open"), "--listen=0.0.0.0:7707", "--tls_cert=none.pem"},
                  AllOf(HasSubstr("--tls_key"), HasSubstr("missing")));
  }
}

TEST_F(DaemonRefusalsTest, TakenPort) {
  const std::string listen = Listen();
  const std::string address = listen.substr(listen.find('=') + 1);
  Process first({ProgramAt("DCD"), listen, Data("first")}, directory_.Sub("first.log"));
  const Deadline deadline = RealRuntime().Now() + seconds(30);
  while (first.Output().find("dcd serves") == std::string::npos) {
    ASSERT_TRUE(first.Running()) << first.Output();
    ASSERT_LT(RealRuntime().Now(), deadline);
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(10));
  }
  ExpectRefusal("DCD", {listen, Data("second")}, HasSubstr(address));
  ExpectRefusal("TCD", {listen, Data("tc")}, HasSubstr(address));
  // The same folder at another port: the first daemon's lock refuses it.
  ExpectRefusal("DCD", {Listen(), Data("first")},
                AllOf(HasSubstr(directory_.Sub("first")), HasSubstr("is locked by process")));
  // The first daemon is unharmed, and stops when it is told to.
  EXPECT_TRUE(first.Running());
  first.Terminate();
  EXPECT_EQ(first.Wait(RealRuntime().Now() + seconds(20)), 0) << first.Output();
}

TEST_F(DaemonRefusalsTest, DataFolderThatIsNone) {
  std::ofstream(directory_.Sub("file")) << "a file, no folder";
  for (const char* daemon : {"DCD", "TCD"}) {
    ExpectRefusal(daemon, {Listen(), Data("file/below")}, HasSubstr(directory_.Sub("file/below")));
    // Nobody may write to this file system, not even root.
    ExpectRefusal(daemon, {Listen(), "--data_dir=/proc/deuteronomy"}, HasSubstr("/proc/deuteronomy"));
  }
}

// Every file below the folder, with its size.
std::vector<std::string> FilesBelow(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    files.push_back(Concat(entry.path().string(), " ", entry.is_regular_file() ? entry.file_size() : 0));
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST_F(DaemonRefusalsTest, TheFolderOfAnotherComponent) {
  // Made and left by a daemon of each kind.
  const auto await = [](Process& process, const char* text) {
    const Deadline deadline = RealRuntime().Now() + seconds(30);
    while (process.Output().find(text) == std::string::npos) {
      ASSERT_TRUE(process.Running()) << process.Output();
      ASSERT_LT(RealRuntime().Now(), deadline) << process.Output();
      RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(10));
    }
  };
  const auto expect_refused = [&](const char* other, const char* folder, const char* why) {
    const std::vector<std::string> before = FilesBelow(directory_.Sub(folder));
    ExpectRefusal(other, {Listen(), Data(folder)}, AllOf(HasSubstr(directory_.Sub(folder)), HasSubstr(why)));
    EXPECT_EQ(FilesBelow(directory_.Sub(folder)), before);
  };
  const uint16_t dc_port = FreePort();
  Process dcd({ProgramAt("DCD"), Concat("--listen=127.0.0.1:", dc_port), Data("of_dc")}, directory_.Sub("of_dc.log"));
  ASSERT_NO_FATAL_FAILURE(await(dcd, "dcd serves"));
  // While its owner lives, and after. (One that has a peer goes on writing.)
  expect_refused("TCD", "of_dc", "is the folder of a data component");
  Process tcd({ProgramAt("TCD"), Listen(), Data("of_tc"), Concat("--dc=127.0.0.1:", dc_port)},
              directory_.Sub("of_tc.log"));
  ASSERT_NO_FATAL_FAILURE(await(tcd, "tcd serves"));
  ExpectRefusal("DCD", {Listen(), Data("of_tc")}, HasSubstr("is the folder of a transaction component"));
  for (Process* const daemon : {&tcd, &dcd}) {
    daemon->Terminate();
    ASSERT_EQ(daemon->Wait(RealRuntime().Now() + seconds(20)), 0) << daemon->Output();
  }
  expect_refused("TCD", "of_dc", "is the folder of a data component");
  expect_refused("DCD", "of_tc", "is the folder of a transaction component");
  // A TC that no DC has accepted yet has claimed nothing, and keeps others away by its lock.
  Process waiting({ProgramAt("TCD"), Listen(), Data("of_nobody"), Concat("--dc=127.0.0.1:", dc_port)},
                  directory_.Sub("of_nobody.log"));
  ASSERT_NO_FATAL_FAILURE(await(waiting, "no connection to the data component"));
  expect_refused("DCD", "of_nobody", "holds \"LOCK\", which is no file of a data component");
  const std::vector<std::string> left = FilesBelow(directory_.Sub("of_dc"));
  ExpectRefusal("TCD", {Listen(), Data("tc"), Concat("--spill_dir=", directory_.Sub("of_dc"))},
                HasSubstr(directory_.Sub("of_dc")));
  EXPECT_EQ(FilesBelow(directory_.Sub("of_dc")), left);
}

TEST_F(DaemonRefusalsTest, AFolderWithFilesOfNobody) {
  std::filesystem::create_directories(directory_.Sub("home"));
  std::ofstream(directory_.Sub("home/letter.txt")) << "Dear";
  for (const char* daemon : {"DCD", "TCD"}) {
    ExpectRefusal(daemon, {Listen(), Data("home")}, AllOf(HasSubstr("is not empty"), HasSubstr("letter.txt")));
  }
  EXPECT_EQ(FilesBelow(directory_.Sub("home")), std::vector<std::string>{directory_.Sub("home/letter.txt") + " 4"});
  // A file system's own entry does not count as content.
  std::filesystem::create_directories(directory_.Sub("disk/lost+found"));
  Process process({ProgramAt("DCD"), Listen(), Data("disk")}, directory_.Sub("disk.log"));
  const Deadline deadline = RealRuntime().Now() + seconds(30);
  while (process.Output().find("dcd serves") == std::string::npos) {
    ASSERT_TRUE(process.Running()) << process.Output();
    ASSERT_LT(RealRuntime().Now(), deadline);
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(10));
  }
}

class ClientRefusalsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status serving = cluster_.AwaitServing();
    ASSERT_TRUE(serving.ok()) << serving.ToString();
    table_ = client().CreateTable("t").value();
  }
  Client& client() { return cluster_.client(); }
  Status Put(TableId table, const std::string& key, const std::string& value) {
    return RunTransaction(client(), {.timeout = seconds(30)}, [&](Transaction& t) { return t.Put(table, key, value); });
  }

  Cluster cluster_{{}};
  TableId table_;
};

TEST_F(ClientRefusalsTest, UnknownAndDoubleTables) {
  const Status unknown = client().OpenTable("nobody-made-it").status();
  EXPECT_EQ(unknown.code(), ErrorCode::kNotFound);
  EXPECT_THAT(unknown.ToString(), HasSubstr("nobody-made-it"));
  const Status twice = client().CreateTable("t").status();
  EXPECT_EQ(twice.code(), ErrorCode::kAlreadyExists);
  EXPECT_THAT(twice.ToString(), HasSubstr("\"t\""));
  const Status by_id = Put(TableId(4711), "k", "v");
  EXPECT_EQ(by_id.code(), ErrorCode::kNotFound) << by_id.ToString();
  EXPECT_THAT(by_id.ToString(), HasSubstr("4711"));
}

TEST_F(ClientRefusalsTest, KeysAndValuesHaveLimits) {
  const Status empty = Put(table_, "", "v");
  EXPECT_EQ(empty.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(empty.ToString(), HasSubstr("key"));
  const Status long_key = Put(table_, std::string(kMaxKeyBytes + 1, 'k'), "v");
  EXPECT_EQ(long_key.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(long_key.ToString(), AllOf(HasSubstr("key"), HasSubstr("4097"), HasSubstr("4096")));
  const Status long_value = Put(table_, "k", std::string(kMaxValueBytes + 1, 'v'));
  EXPECT_EQ(long_value.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(long_value.ToString(), AllOf(HasSubstr("value"), HasSubstr("1048577"), HasSubstr("1048576")));

  // A key and a value of the largest allowed sizes come back whole, also from the DC.
  const std::string key(kMaxKeyBytes, 'k'), value(kMaxValueBytes, 'v');
  const Status largest = Put(table_, key, value);
  ASSERT_TRUE(largest.ok()) << largest.ToString();
  for (const bool dropped : {false, true}) {
    if (dropped) ASSERT_TRUE(client().DropCaches().ok());
    const Status read = RunTransaction(client(), {}, [&](Transaction& t) -> Status {
      DEUT_ASSIGN_OR_RETURN(const std::optional<std::string> found, t.Get(table_, key));
      EXPECT_TRUE(found == value);
      return Status::Ok();
    });
    EXPECT_TRUE(read.ok()) << read.ToString();
  }
  // A refused operation does not end its transaction.
  const Status mixed = RunTransaction(client(), {}, [&](Transaction& t) -> Status {
    EXPECT_EQ(t.Put(table_, "", "v").code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(t.open());
    return t.Put(table_, "after", "v");
  });
  EXPECT_TRUE(mixed.ok()) << mixed.ToString();
}

TEST_F(ClientRefusalsTest, ASecondTcOnTheSameFolder) {
  const Ended second =
      RunProgram({ProgramAt("TCD"), Concat("--listen=127.0.0.1:", FreePort()), Concat("--dc=", cluster_.dc_address()),
                  Concat("--data_dir=", cluster_.directory().Sub("tc"))},
                 cluster_.directory().Sub("second.log"), seconds(20));
  EXPECT_EQ(second.status, 1) << second.output;
  EXPECT_THAT(second.output, AllOf(HasSubstr(cluster_.directory().Sub("tc")), HasSubstr("is locked by process")));
  // The attempt has not fenced the first TC.
  EXPECT_TRUE(Put(table_, "k", "v").ok());
}

}  // namespace
}  // namespace deut
