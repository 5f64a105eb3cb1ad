// Drops a table beside an open writer of it, over sockets: the second of the two loses at once, with an error that
// names the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/harness/cluster.h"
#include "integration/harness/process.h"
#include "tc/client/client.h"

namespace deut {
namespace {

using ::testing::AllOf;
using testing::Cluster;
using testing::Ended;
using ::testing::HasSubstr;
using testing::ProgramAt;
using testing::RunProgram;
using testing::TempDir;

constexpr Duration kPatience = seconds(60);
constexpr Duration kAtOnce = seconds(10);

class DropTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status serving = cluster_.AwaitServing();
    ASSERT_TRUE(serving.ok()) << serving.ToString();
  }

  // Returns the status of a call that must not wait.
  template <typename Call>
  static Status AtOnce(Call&& call) {
    const MonotonicTime begin = RealRuntime().Now();
    Status status = call();
    EXPECT_LT(RealRuntime().Now() - begin, kAtOnce) << status.ToString();
    return status;
  }
  Status Drop() {
    return AtOnce([&] { return cluster_.client().DropTable("t", {.timeout = kPatience}); });
  }

  TempDir directory_;
  Cluster cluster_{{}};
};

TEST_F(DropTest, ADropBesideAnOpenWriterFailsAtOnce) {
  const TableId table = *cluster_.client().CreateTable("t");
  Transaction writer = *cluster_.client().Begin();
  ASSERT_TRUE(writer.Put(table, "k", "v").ok());
  ASSERT_TRUE(writer.Get(table, "other").ok());  // an answer proves that the write before it has arrived
  const Status dropped = Drop();
  EXPECT_EQ(dropped, ErrorCode::kAborted) << dropped.ToString();
  ASSERT_NE(dropped.abort(), nullptr);
  EXPECT_EQ(dropped.abort()->reason, AbortReason::kTableWriter);
  EXPECT_EQ(dropped.abort()->other_timestamp, writer.timestamp().value);
  EXPECT_TRUE(writer.Commit().ok());
  EXPECT_TRUE(Drop().ok());
}

// Neither the client library nor the program retries: a drop succeeds only after the writer's end, for which they
// cannot wait.
TEST_F(DropTest, TheCommandFailsAtOnceAndNamesTheWriter) {
  const TableId table = *cluster_.client().CreateTable("t");
  Transaction writer = *cluster_.client().Begin();
  ASSERT_TRUE(writer.Put(table, "k", "v").ok());
  ASSERT_TRUE(writer.Get(table, "other").ok());
  const auto drop = [&] {
    return RunProgram(
        {ProgramAt("DEUT"), Concat("--target=", cluster_.tc_address()), "--deadline=60s", "tables", "drop", "t"},
        directory_.Sub("deut.log"));
  };
  const MonotonicTime begin = RealRuntime().Now();
  const Ended refused = drop();
  EXPECT_LT(RealRuntime().Now() - begin, kAtOnce);
  EXPECT_EQ(refused.status, 1) << refused.output;
  EXPECT_THAT(refused.output, AllOf(HasSubstr("ABORTED"), HasSubstr("table-writer"),
                                    HasSubstr(Concat("against transaction ", writer.timestamp().value))));
  EXPECT_TRUE(writer.Commit().ok());
  const Ended dropped = drop();
  EXPECT_EQ(dropped.status, 0) << dropped.output;
}

TEST_F(DropTest, AWriterThatIsEarlierThanADropFailsAtOnce) {
  const TableId table = *cluster_.client().CreateTable("t");
  Transaction writer = *cluster_.client().Begin();
  ASSERT_TRUE(writer.Get(table, "k").ok());  // the transaction has its timestamp now
  EXPECT_TRUE(Drop().ok());
  const Status written = AtOnce([&] {
    Status put = writer.Put(table, "k", "v");
    return put.ok() ? writer.Commit().status() : put;
  });
  EXPECT_EQ(written, ErrorCode::kAborted) << written.ToString();
  ASSERT_NE(written.abort(), nullptr);
  EXPECT_EQ(written.abort()->reason, AbortReason::kTableReadLater);
}

}  // namespace
}  // namespace deut
