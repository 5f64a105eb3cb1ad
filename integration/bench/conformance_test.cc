// The behaviour, byte by byte, that every measured store must have; linked with one backend each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/bench/application_runner.h"
#include "integration/bench/backend.h"
#include "integration/bench/mix.h"
#include "integration/bench/runner.h"
#include "integration/bench/tatp/tatp.h"
#include "integration/bench/tpcc/tpcc.h"
#include "integration/ycsb/record.h"

namespace deut::bench {
namespace {

constexpr uint32_t kValueBytes = 100;
constexpr uint64_t kRecords = 3000;

class ConformanceTest : public ::testing::Test {
 protected:
  ConformanceTest() {
    BackendOptions options;
    options.directory = directory_.Sub("store");
    std::filesystem::create_directories(options.directory);
    options.cache_bytes = uint64_t{256} << 20;
    // The person who runs the test may choose a variant, or name a server.
    if (const char* variant = std::getenv("BENCH_VARIANT")) options.variant = variant;
    if (const char* target = std::getenv("BENCH_TARGET")) options.target = target;
    Result<std::unique_ptr<Backend>> opened = OpenBackend(options);
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    backend_ = *std::move(opened);
    EXPECT_TRUE(backend_->SetDurable(false).ok());
  }

  std::string Value(uint64_t number, uint32_t sequence) {
    std::string value;
    ycsb::MakeValue(number, {.writer = 77, .sequence = sequence}, ycsb::KeyOf(number), kValueBytes, &value);
    return value;
  }

  // Writes records 0 to count - 1 to the store, in transactions of 500, and to model_.
  void Fill(uint64_t count) {
    for (uint64_t first = 0; first < count; first += 500) {
      std::vector<std::string> keys, values;
      std::vector<Step> steps;
      for (uint64_t n = first; n < std::min(count, first + 500); ++n) {
        keys.push_back(ycsb::KeyOf(n));
        values.push_back(Value(n, 1));
        model_[keys.back()] = values.back();
      }
      for (size_t i = 0; i < keys.size(); ++i)
        steps.push_back({.kind = StepKind::kInsert, .key = keys[i], .value = values[i]});
      ReadCheck check;
      const Status status = session().Run(steps, &check);
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
  }

  Session& session() {
    if (session_ == nullptr) session_ = *backend_->NewSession();
    return *session_;
  }

  // Runs the steps, and expects the model's result: the same bytes, in the same order.
  void RunAsTheModel(const std::vector<Step>& steps) {
    ReadCheck check(/*check_every_value=*/true), expected(/*check_every_value=*/true);
    const Status status = session().Run(steps, &check);
    ASSERT_TRUE(status.ok()) << status.ToString();
    const Status committed = check.Commit();
    EXPECT_TRUE(committed.ok()) << committed.ToString();
    for (const Step& step : steps) {
      const std::string key(step.key);
      if (step.kind == StepKind::kScan) {
        expected.BeginScan(step.key, step.limit);
        uint32_t left = step.limit;
        for (auto it = model_.lower_bound(key); it != model_.end() && left-- > 0; ++it)
          expected.Record(it->first, it->second);
        expected.EndScan();
        continue;
      }
      if (step.kind == StepKind::kRead || step.kind == StepKind::kReadModifyWrite) expected.Value(key, model_.at(key));
      if (step.kind != StepKind::kRead) model_[key] = std::string(step.value);
    }
    ASSERT_TRUE(expected.Commit().ok());
    EXPECT_EQ(check.records(), expected.records());
    EXPECT_EQ(check.checksum(), expected.checksum());
  }

  // A store without interactive transactions must refuse one, and must not run it.
  void ExpectNoInteractive() {
    const Status refused = session().RunInteractive(true, [](InteractiveTransaction&) {
      ADD_FAILURE() << "it has run";
      return Status();
    });
    EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument) << refused.ToString();
  }

  testing::TempDir directory_;
  std::map<std::string, std::string> model_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Session> session_;
};

TEST_F(ConformanceTest, EveryKindOfStepDoesWhatItSays) {
  Fill(kRecords);
  const std::string low = model_.begin()->first, middle = ycsb::KeyOf(1234), last = model_.rbegin()->first;
  RunAsTheModel({{.kind = StepKind::kRead, .key = middle}});
  RunAsTheModel({{.kind = StepKind::kScan, .key = middle, .limit = 1}});
  RunAsTheModel({{.kind = StepKind::kScan, .key = middle, .limit = 57}});
  // Scans to the end, in one piece and in several.
  RunAsTheModel({{.kind = StepKind::kScan, .key = last, .limit = 100}});
  RunAsTheModel({{.kind = StepKind::kScan, .key = low, .limit = 2999}});
  RunAsTheModel({{.kind = StepKind::kScan, .key = low, .limit = 10'000}});

  const std::string updated = Value(1234, 2), modified = Value(1234, 3);
  RunAsTheModel({{.kind = StepKind::kUpdate, .key = middle, .value = updated}});
  RunAsTheModel({{.kind = StepKind::kRead, .key = middle}});
  RunAsTheModel({{.kind = StepKind::kReadModifyWrite, .key = middle, .value = modified}});
  RunAsTheModel({{.kind = StepKind::kRead, .key = middle}});
  RunAsTheModel({{.kind = StepKind::kScan, .key = low, .limit = 10'000}});

  const std::string fresh = ycsb::KeyOf(kRecords), fresh_value = Value(kRecords, 1);
  RunAsTheModel({{.kind = StepKind::kInsert, .key = fresh, .value = fresh_value}});
  RunAsTheModel({{.kind = StepKind::kScan, .key = low, .limit = 10'000}});
}

TEST_F(ConformanceTest, ATransactionOfSeveralStepsSeesItsOwnWrites) {
  Fill(100);
  const std::string one = ycsb::KeyOf(1), two = ycsb::KeyOf(2);
  const std::string first = Value(1, 2), second = Value(2, 2);
  RunAsTheModel({{.kind = StepKind::kUpdate, .key = one, .value = first},
                 {.kind = StepKind::kRead, .key = one},
                 {.kind = StepKind::kUpdate, .key = two, .value = second},
                 {.kind = StepKind::kRead, .key = two}});
  RunAsTheModel({{.kind = StepKind::kScan, .key = model_.begin()->first, .limit = 100}});
}

TEST_F(ConformanceTest, AMissingRecordIsNoticed) {
  Fill(10);
  const std::string absent = ycsb::KeyOf(99);
  ReadCheck check;
  ASSERT_TRUE(session().Run({{.kind = StepKind::kRead, .key = absent}}, &check).ok());
  EXPECT_EQ(check.Commit().code(), ErrorCode::kCorruption);
  check.Restart();
  ASSERT_TRUE(session().Run({{.kind = StepKind::kScan, .key = absent, .limit = 3}}, &check).ok());
  EXPECT_EQ(check.Commit().code(), ErrorCode::kCorruption);
}

TEST_F(ConformanceTest, AWrongValueIsNoticedAndChangesTheChecksum) {
  Fill(300);
  const auto scan = [&](Status* status) {
    ReadCheck check(/*check_every_value=*/true);
    *status = session().Run({{.kind = StepKind::kScan, .key = model_.begin()->first, .limit = 300}}, &check);
    if (status->ok()) *status = check.Commit();
    return check.checksum();
  };
  Status whole, damaged;
  const uint64_t before = scan(&whole);
  ASSERT_TRUE(whole.ok()) << whole.ToString();
  // Flips one bit of one value.
  const std::string key = ycsb::KeyOf(123);
  std::string value = model_.at(key);
  value[60] ^= 4;
  ReadCheck check;
  ASSERT_TRUE(session().Run({{.kind = StepKind::kUpdate, .key = key, .value = value}}, &check).ok());
  const uint64_t after = scan(&damaged);
  EXPECT_EQ(damaged.code(), ErrorCode::kCorruption);
  EXPECT_NE(before, after);
}

// Runs every mix with three threads at once, buffered and durable; afterwards all records must be there and whole.
TEST_F(ConformanceTest, EveryMixRuns) {
  session_.reset();
  Runner runner(*backend_, RealRuntime(), kValueBytes);
  const Result<RunResult> loaded = runner.Load(kRecords, 2, 100);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(loaded->records_written, kRecords);
  EXPECT_EQ(loaded->transactions, kRecords / 100);
  for (const bool durable : {false, true}) {
    ASSERT_TRUE(backend_->SetDurable(durable).ok());
    for (const char* name : {"a", "b", "c", "d", "e", "f", "t", "l", "u"}) {
      RunOptions options{.mix = *MixByName(name), .threads = 3, .transactions = 40, .check_every_value = true};
      const Result<RunResult> run = runner.Run(options);
      ASSERT_TRUE(run.ok()) << name << ": " << run.status().ToString();
      EXPECT_EQ(run->transactions, 120u) << name;
      options.pipeline = 8;
      const Result<RunResult> together = runner.Run(options);
      ASSERT_TRUE(together.ok()) << name << ": " << together.status().ToString();
      EXPECT_EQ(together->transactions, 120u) << name;
    }
  }
  EXPECT_GT(runner.records(), kRecords);
  ASSERT_TRUE(backend_->Settle().ok());
  for (uint64_t number = 0; number < runner.records(); ++number) {
    const std::string key = ycsb::KeyOf(number);
    ReadCheck check;
    ASSERT_TRUE(session().Run({{.kind = StepKind::kRead, .key = key}}, &check).ok());
    const Status status = check.Commit();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
}

// Transactions that conflict are retried until each has committed.
TEST_F(ConformanceTest, ManyAtOnceOnFewRecords) {
  Runner runner(*backend_, RealRuntime(), kValueBytes);
  ASSERT_TRUE(runner.Load(20, 1, 20).ok());
  for (const char* name : {"t", "f", "a"}) {
    const Result<RunResult> run =
        runner.Run({.mix = *MixByName(name), .threads = 8, .transactions = 200, .check_every_value = true});
    ASSERT_TRUE(run.ok()) << name << ": " << run.status().ToString();
    EXPECT_EQ(run->transactions, 1600u) << name;
  }
}

// Compares an interactive transaction, step by step, with a map.
TEST_F(ConformanceTest, AnInteractiveTransactionGoesOnAfterItsReads) {
  if (!backend_->Facts().interactive) return ExpectNoInteractive();
  const auto run = [&](bool writes, Session::Body body) { return session().RunInteractive(writes, body); };
  std::vector<std::string> keys;
  for (int i = 0; i < 50; ++i) keys.push_back(Concat("k", i / 10, i % 10));
  ASSERT_TRUE(run(true, [&](InteractiveTransaction& tx) {
                for (const std::string& key : keys) DEUT_RETURN_IF_ERROR(tx.Put(key, key + "v"));
                return Status();
              }).ok());
  const Status changed = run(true, [&](InteractiveTransaction& tx) -> Status {
    std::vector<std::optional<std::string>> values;
    DEUT_RETURN_IF_ERROR(tx.Get({"k07", "k99", "k49"}, &values));
    EXPECT_THAT(values, ::testing::ElementsAre("k07v", std::nullopt, "k49v"));
    DEUT_RETURN_IF_ERROR(tx.Put("k07", *values[0] + "+"));
    DEUT_RETURN_IF_ERROR(tx.Remove("k08"));
    DEUT_RETURN_IF_ERROR(tx.Remove("k98"));
    DEUT_RETURN_IF_ERROR(tx.Put("k99", "new"));
    // The transaction sees its own writes.
    DEUT_RETURN_IF_ERROR(tx.Get({"k07", "k08", "k99"}, &values));
    EXPECT_THAT(values, ::testing::ElementsAre("k07v+", std::nullopt, "new"));
    return Status();
  });
  ASSERT_TRUE(changed.ok()) << changed.ToString();
  const auto scan = [&](std::string low, std::string high, Order order, uint32_t limit) {
    std::string shown;
    EXPECT_TRUE(run(false, [&](InteractiveTransaction& tx) {
                  shown.clear();
                  return tx.Scan(low, high, order, limit, [&](std::string_view key, std::string_view value) {
                    shown += Concat(key, "=", value, " ");
                  });
                }).ok());
    return shown;
  };
  EXPECT_EQ(scan("k06", "k10", Order::kAscending, 9), "k06=k06v k07=k07v+ k09=k09v ");
  EXPECT_EQ(scan("k06", "k10", Order::kDescending, 9), "k09=k09v k07=k07v+ k06=k06v ");
  EXPECT_EQ(scan("k06", "k10", Order::kDescending, 2), "k09=k09v k07=k07v+ ");
  EXPECT_EQ(scan("k08", "k1", Order::kAscending, 1), "k09=k09v ");
  EXPECT_EQ(scan("k48", "l", Order::kDescending, 9), "k99=new k49=k49v k48=k48v ");
  EXPECT_EQ(scan("k5", "k6", Order::kAscending, 9), "");
  EXPECT_EQ(scan("k5", "k6", Order::kDescending, 9), "");
  // An error of the body's own undoes the transaction.
  EXPECT_EQ(run(true,
                [&](InteractiveTransaction& tx) -> Status {
                  DEUT_RETURN_IF_ERROR(tx.Put("k07", "never"));
                  return DEUT_ERROR(kConditionFailed, "given up");
                })
                .code(),
            ErrorCode::kConditionFailed);
  EXPECT_EQ(scan("k07", "k08", Order::kAscending, 1), "k07=k07v+ ");
}

// All threads increment the same counters: no increment may be lost.
TEST_F(ConformanceTest, NoReadModifyWriteIsLost) {
  if (!backend_->Facts().interactive) return ExpectNoInteractive();
  constexpr int kThreads = 4, kEach = 100;
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < kThreads; ++i) sessions.push_back(*backend_->NewSession());
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(RealRuntime().StartThread("adder", [&, i] {
      for (int n = 0; n < kEach; ++n) {
        const Status added = sessions[i]->RunInteractive(true, [&](InteractiveTransaction& tx) -> Status {
          const std::string key = Concat("counter", n % 2);
          std::vector<std::optional<std::string>> values;
          DEUT_RETURN_IF_ERROR(tx.Get({key}, &values));
          return tx.Put(key, Concat(std::stoi(values[0].value_or("0")) + 1));
        });
        EXPECT_TRUE(added.ok()) << added.ToString();
      }
    }));
  }
  for (const auto& thread : threads) thread->Join();
  const Status read = session().RunInteractive(false, [&](InteractiveTransaction& tx) -> Status {
    std::vector<std::optional<std::string>> values;
    DEUT_RETURN_IF_ERROR(tx.Get({"counter0", "counter1"}, &values));
    EXPECT_THAT(values, ::testing::Each(std::to_string(kThreads * kEach / 2)));
    return Status();
  });
  EXPECT_TRUE(read.ok()) << read.ToString();
}

TEST_F(ConformanceTest, ApplicationsStayConsistent) {
  if (!backend_->Facts().interactive) return ExpectNoInteractive();
  session_.reset();
  ApplicationRunner runner(*backend_, RealRuntime());
  const tpcc::Scale scale{.warehouses = 2, .items = 100, .customers = 20};
  const tpcc::Tpcc whole(scale, tpcc::Transactions::kAll);
  const tpcc::Tpcc part(scale, tpcc::Transactions::kNewOrdersAndPayments);
  const tatp::Tatp tatp(1000);
  for (const Application* application : std::initializer_list<const Application*>{&whole, &tatp}) {
    const Result<ApplicationResult> loaded = runner.Load(*application, 2);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  }
  for (const Application* application : std::initializer_list<const Application*>{&whole, &part, &tatp}) {
    const Result<ApplicationResult> run = runner.Run(*application, {.threads = 3, .transactions = 100, .seed = 4});
    ASSERT_TRUE(run.ok()) << application->prefix() << ": " << run.status().ToString();
    EXPECT_EQ(run->transactions, 300u);
    const Result<uint64_t> checked = runner.Check(*application);
    EXPECT_TRUE(checked.ok()) << application->prefix() << ": " << checked.status().ToString();
  }
}

// The data that a run of one thread reads follows from the seed alone.
TEST_F(ConformanceTest, TheSameSeedReadsTheSame) {
  Runner runner(*backend_, RealRuntime(), kValueBytes);
  ASSERT_TRUE(runner.Load(kRecords, 1, 100).ok());
  const auto checksum = [&](uint64_t seed) {
    RunOptions options{.mix = *MixByName("l"), .transactions = 30, .seed = seed};
    options.mix.scan_min = 1;
    return runner.Run(options)->checksum;
  };
  EXPECT_EQ(checksum(5), checksum(5));
  EXPECT_NE(checksum(5), checksum(6));
}

}  // namespace
}  // namespace deut::bench
