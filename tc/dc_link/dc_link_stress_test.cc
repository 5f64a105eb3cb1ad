// Writers, readers and a collector on one link, while the DC dies and comes back, and its acknowledgements are late,
// lost or doubled. The tested property is the purpose of the gate: a value that the TC has collected because of
// `applied` is never missing from a later answer.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"
#include "tc/dc_link/bulk_scan.h"
#include "tc/dc_link/dc_link.h"
#include "tc/dc_link/fake_data_component.h"
#include "tc/dc_link/link_harness.h"

namespace deut::tc {
namespace {

constexpr int kKeys = 16;

std::string KeyOf(int key) { return absl::StrCat("key", 100 + key); }

// splitmix64, from a printed seed.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  uint64_t Below(uint64_t n) {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % n;
  }

 private:
  uint64_t state_;
};

struct Written {
  std::atomic<uint64_t> value{0};   // the last value committed
  std::atomic<uint64_t> commit{0};  // its commit LSN
  std::atomic<uint64_t> collected{
      0};  // the last value that the TC has removed: readers must find it, or a later one, in the DC
};

class DcLinkStressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    seed_ = RealRuntime().RandomSeed();
    RecordProperty("seed", absl::StrCat(seed_));
    h_.link_options.stall_timeout = milliseconds(50);
    h_.dc.Start();
    h_.StartTc();
    ASSERT_TRUE(h_.WaitCaughtUp().ok());
  }

  // One thread commits rising values. After each it collects the applied ones.
  void Write() {
    for (uint64_t value = 1; !stop_; ++value) {
      const int key = static_cast<int>(value % kKeys);
      const Position end = h_.Commit({{KeyOf(key), absl::StrCat(value)}});
      keys_[key].value = value;
      keys_[key].commit = end.commit.value;
      Collect();
      if (value % 64 == 0) RealRuntime().SleepUntil(LinkHarness::After(microseconds(200)));  // paces the log's growth
    }
  }

  void Collect() {
    const Position applied = h_.link->applied();
    for (Written& key : keys_) {
      if (Position{Lsn{key.commit.load()}, UINT32_MAX} <= applied) key.collected.store(key.value.load());
    }
  }

  void ReadPoints(uint64_t seed) {
    Dice dice(seed);
    while (!stop_) {
      const int key = static_cast<int>(dice.Below(kKeys));
      const uint64_t at_least = keys_[key].collected;
      const auto read = h_.Read(KeyOf(key), LinkHarness::After(seconds(20)));
      ASSERT_TRUE(read.ok()) << read.status().ToString();
      Check(key, at_least, read->value_or("0"));
      ++reads_;
    }
  }

  void ReadScans() {
    while (!stop_) {
      std::vector<uint64_t> at_least;
      for (Written& key : keys_) at_least.push_back(key.collected);
      ScanSpec spec;
      spec.table = LinkHarness::kTable;
      spec.batch_bytes = 100;
      auto scan = h_.link->OpenScan(spec, LinkHarness::Soon());
      ASSERT_TRUE(scan.ok()) << scan.status().ToString();
      ASSERT_TRUE((*scan)->Grant("", 1 << 20).ok());
      int key = 0;
      for (ScanBatch batch; !batch.complete;) {
        const Status status = (*scan)->Next(&batch, LinkHarness::Soon());
        ASSERT_TRUE(status.ok()) << status.ToString();
        for (RecordBatch::Iterator it(batch.records); it.Valid(); it.Next()) {
          for (; KeyOf(key) < it.record().key; ++key) Check(key, at_least[key], "0");
          Check(key, at_least[key], std::string(it.record().value));
          ++key;
        }
      }
      for (; key < kKeys; ++key) Check(key, at_least[key], "0");
      ++scans_;
    }
  }

  void Check(int key, uint64_t at_least, const std::string& text) {
    uint64_t value = 0;
    ASSERT_TRUE(absl::SimpleAtoi(text, &value));
    ASSERT_GE(value, at_least) << KeyOf(key) << " is older than what was collected";
  }

  uint64_t seed_ = 0;
  LinkHarness h_;
  Written keys_[kKeys];
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> reads_{0}, scans_{0};
};

TEST_F(DcLinkStressTest, NothingCollectedIsEverMissing) {
  std::vector<std::unique_ptr<Thread>> threads;
  threads.push_back(RealRuntime().StartThread("writer", [this] { Write(); }));
  threads.push_back(RealRuntime().StartThread("points-1", [this] { ReadPoints(seed_ + 1); }));
  threads.push_back(RealRuntime().StartThread("points-2", [this] { ReadPoints(seed_ + 2); }));
  threads.push_back(RealRuntime().StartThread("scans", [this] { ReadScans(); }));
  Dice dice(seed_);
  for (int round = 0; round < 60 && !HasFailure(); ++round) {
    const uint64_t reads = reads_;
    switch (dice.Below(6)) {
      case 0:
        h_.dc.HoldAcks(true);
        break;
      case 1:
        h_.dc.LoseAcks(dice.Below(2) == 0);
        break;
      case 2:
        h_.dc.DuplicateAcks(dice.Below(2) == 0);
        break;
      case 3:
        h_.dc.MakeStable();
        break;
      case 4:
        h_.dc.BreakStream(DEUT_ERROR(kUnavailable, "a cable"));
        break;
      default:
        break;
    }
    if (dice.Below(3) != 0) {
      h_.dc.Kill();
      if (dice.Below(3) == 0) RealRuntime().SleepUntil(LinkHarness::After(milliseconds(dice.Below(10))));
      h_.dc.Start();
      if (dice.Below(3) == 0) h_.dc.Restart();  // an incarnation that hardly any thread sees
    }
    h_.dc.HoldAcks(false);
    h_.dc.DeliverHeldAcks();
    ASSERT_TRUE(h_.dc.WaitUntil([&] { return reads_ > reads + 5 || HasFailure(); })) << h_.link->status().state;
  }
  h_.dc.LoseAcks(false);
  stop_ = true;
  threads.clear();
  EXPECT_TRUE(h_.WaitApplied(h_.Commit({{"end", "1"}})));
  for (int key = 0; key < kKeys; ++key) {
    EXPECT_EQ(h_.dc.Get(LinkHarness::kTable, KeyOf(key)).value_or("0"), absl::StrCat(keys_[key].value.load()));
  }
  EXPECT_GT(scans_, 0u);
  EXPECT_TRUE(h_.fatal().empty()) << h_.fatal().front().ToString();
  EXPECT_EQ(h_.dc.counts().gaps, 0u);
  if (HasFailure()) ADD_FAILURE() << "seed " << seed_;
}

}  // namespace
}  // namespace deut::tc
