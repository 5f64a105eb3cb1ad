#include "integration/ycsb/old_readers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/testing/temp_dir.h"
#include "integration/product/embedded/embedded.h"
#include "integration/ycsb/phase.h"
#include "integration/ycsb/record.h"
#include "integration/ycsb/workload.h"
#include "tc/client/fake_transaction_service.h"

namespace deut::ycsb {
namespace {

using ::testing::HasSubstr;

BenchmarkOptions Small(const char* workload) {
  BenchmarkOptions options;
  options.records = 300;
  options.threads = 2;
  options.durability = Durability::kBuffered;
  options.run_time = milliseconds(1500);
  options.workload = WorkloadByName(workload).value();
  return options;
}

TEST(OldReadersTest, SeeTheSameWhileOthersWrite) {
  testing::TempDir directory;
  EmbeddedOptions embedded;
  embedded.data_dir = directory.path();
  embedded.tc.log.segment_bytes = 16 << 20;
  embedded.tc.log.ring_bytes = 16 << 20;
  Result<std::unique_ptr<Embedded>> store = Embedded::Open(embedded);
  ASSERT_TRUE(store.ok()) << store.status().ToString();
  Client& client = (*store)->client();
  const TableId table = client.CreateTable("t").value();
  const BenchmarkOptions options = Small("a");
  ASSERT_TRUE(RunPhase(PhaseKind::kLoad, client, table, options, nullptr, {}).failure.ok());
  OldReaders readers(client, table, options, 5, milliseconds(400));
  const Status started = readers.Start();
  ASSERT_TRUE(started.ok()) << started.ToString();
  const PhaseResult run = RunPhase(PhaseKind::kRun, client, table, options, nullptr, {});
  EXPECT_TRUE(run.failure.ok()) << run.failure.ToString();
  EXPECT_GT(run.total.writes, 0u);
  const Status held = readers.Stop();
  EXPECT_TRUE(held.ok()) << held.ToString();
  EXPECT_GE(readers.counters().begun, 5u);
  EXPECT_GE(readers.counters().looks, 5u);
}

// Shows that the check can fail, with a store that keeps one version of each record.
TEST(OldReadersTest, AStoreThatForgetsIsFoundOut) {
  testing::FakeTransactionService service(RealRuntime());
  const std::unique_ptr<Client> client = Client::FromService(&service, {});
  const TableId table = client->CreateTable("t").value();
  const BenchmarkOptions options = Small("a");
  ASSERT_TRUE(RunPhase(PhaseKind::kLoad, *client, table, options, nullptr, {}).failure.ok());
  OldReaders readers(*client, table, options, 1, Duration{0});
  ASSERT_TRUE(readers.Start().ok());
  for (uint64_t number = 0; number < options.records; ++number) {
    Transaction writer = client->Begin().value();
    ASSERT_TRUE(writer.Put(table, KeyOf(number), "something else").ok());
    ASSERT_TRUE(writer.Commit().ok());
  }
  EXPECT_THAT(std::string(readers.Stop().message()), HasSubstr("sees something else than before"));
}

}  // namespace
}  // namespace deut::ycsb
