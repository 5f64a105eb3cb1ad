// One transaction of more bytes than the log keeps allocated, over sockets: it commits at the first attempt, and both daemons have it after they were
// killed. DEUT_COMMIT_MIB sets the size, and leaves the daemons' flags as they are by default: the long run has a GiB. Figures are printed, none is
// judged.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "integration/harness/cluster.h"
#include "integration/harness/process.h"
#include "tc/client/client.h"
#include "tc/client/transaction.h"

namespace deut {
namespace {

using testing::Cluster;
using testing::ClusterOptions;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kValueBytes = 256 << 10;
constexpr uint64_t kSegmentMebibytes = 16;

std::optional<uint64_t> GivenMebibytes() {
  const char* const given = std::getenv("DEUT_COMMIT_MIB");
  if (given == nullptr) return std::nullopt;
  return std::strtoull(given, nullptr, 10);
}

ClusterOptions Options() {
  ClusterOptions options;
  if (GivenMebibytes()) options.tc.flags.clear();
  return options;
}

std::string Key(uint64_t i) { return Concat("key", 10'000'000 + i); }
std::string Value(uint64_t i) {
  std::string value(kValueBytes, static_cast<char>('a' + i % 26));
  value.replace(0, 8, Concat(10'000'000 + i));
  return value;
}

// As the kernel has it: "VmHWM:   12345 kB".
std::string MostResident(testing::Process* process) {
  std::ifstream status(Concat("/proc/", process->pid(), "/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return line;
  }
  return "unknown";
}

class LargeCommitOverSocketsTest : public ::testing::Test {
 protected:
  template <typename Work>
  void Timed(const char* what, const Work& work) {
    const MonotonicTime begin = RealRuntime().Now();
    ASSERT_NO_FATAL_FAILURE(work());
    std::cout << what << ": " << duration_cast<milliseconds>(RealRuntime().Now() - begin).count() << " ms\n";
  }
  void TellMemory(const char* when) {
    std::cout << when << ": tcd " << MostResident(cluster_.tc()) << ", dcd " << MostResident(cluster_.dc())
              << std::endl;
  }
  void ExpectAllIsThere(TableId table, uint64_t records) {
    Result<Transaction> reader = cluster_.client().Begin();
    ASSERT_TRUE(reader.ok()) << reader.status().ToString();
    Scanner scanner = reader->OpenScanner(table, {});
    uint64_t seen = 0;
    for (; scanner.Next(); ++seen) {
      ASSERT_EQ(scanner.key(), Key(seen));
      ASSERT_TRUE(scanner.value() == Value(seen)) << scanner.key();
    }
    ASSERT_TRUE(scanner.status().ok()) << scanner.status().ToString();
    EXPECT_EQ(seen, records);
    EXPECT_TRUE(reader->Commit().ok());
  }

  Cluster cluster_{Options()};
};

TEST_F(LargeCommitOverSocketsTest, ACommitOfManySegmentsSucceedsAtTheFirstAttemptAndOutlivesBothDaemons) {
  const uint64_t records = GivenMebibytes().value_or(6 * kSegmentMebibytes) * kMiB / kValueBytes;
  const Status serving = cluster_.AwaitServing();
  ASSERT_TRUE(serving.ok()) << serving.ToString();
  const Result<TableId> table = cluster_.client().CreateTable("large");
  ASSERT_TRUE(table.ok()) << table.status().ToString();
  {
    Result<Transaction> transaction = cluster_.client().Begin();
    ASSERT_TRUE(transaction.ok()) << transaction.status().ToString();
    Timed("puts", [&] {
      for (uint64_t i = 0; i < records; ++i) {
        const Status put = transaction->Put(*table, Key(i), Value(i));
        ASSERT_TRUE(put.ok()) << "put " << i << ": " << put.ToString();
      }
    });
    Timed("commit", [&] {
      const Result<CommitAnswer> committed = transaction->Commit();
      ASSERT_TRUE(committed.ok()) << committed.status().ToString();
    });
  }
  if (HasFatalFailure()) return;
  TellMemory("most resident after the commit");
  ASSERT_NO_FATAL_FAILURE(Timed("scan", [&] { ExpectAllIsThere(*table, records); }));
  TellMemory("most resident after the scan");
  cluster_.KillTc();
  cluster_.KillDc();
  Timed("start of both after a kill", [&] {
    cluster_.StartDc();
    cluster_.StartTc();
    const Status again = cluster_.AwaitServing(seconds(300));
    ASSERT_TRUE(again.ok()) << again.ToString();
  });
  ASSERT_NO_FATAL_FAILURE(Timed("scan after the start", [&] { ExpectAllIsThere(*table, records); }));
  TellMemory("most resident after the start");
}

}  // namespace
}  // namespace deut
