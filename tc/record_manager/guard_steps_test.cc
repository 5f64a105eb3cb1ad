// The collector's passes over the updates of one large commit leave their guard again and again. So memory that is
// retired during a pass is freed before its end (stepped_guard.h, spiller.h).
#include <atomic>
#include <string>

#include "common/base/concat.h"
#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

constexpr int kUpdates = 2000;
// An object is retired in the middle of a pass, and must be freed when the pass has come this much further. The
// spiller has the largest batches.
constexpr int kRetiredAt = 1000;
constexpr int kFreedAfter = 600;

struct Marker {
  explicit Marker(std::atomic<bool>* freed) : freed_(freed) {}
  ~Marker() { freed_->store(true); }
  std::atomic<bool>* const freed_;
};

void CommitMany(EngineFixture& f, const char* name) {
  TestTransaction t = f.Begin();
  for (int i = 0; i < kUpdates; ++i) ASSERT_EQ(t.Put(Concat(name, i), "value"), "ok");
  ASSERT_EQ(t.Commit(), "ok");
}

// Plays every pass that there is over such a commit: one commit is collected, one is folded and collected, one is
// folded and spilled.
void PlayAll(EngineFixture& f) {
  CommitMany(f, "collected");
  EXPECT_TRUE(f.Settle());
  {
    TestTransaction reader = f.BeginSnapshot();
    CommitMany(f, "folded");
    f.Collect();
    f.Fold();
    reader.Abort();
  }
  EXPECT_TRUE(f.Settle());
  TestTransaction reader = f.BeginSnapshot();
  CommitMany(f, "spilled");
  f.Collect();
  f.SetVersionBudget(1);
  const MonotonicTime patience = EngineFixture::Soon();
  while (f.collector->spilled() < kUpdates && RealRuntime().Now() < patience) f.Fold();
  EXPECT_GE(f.collector->spilled(), static_cast<uint64_t>(kUpdates));
  reader.Abort();
}

TEST(GuardStepsTest, MemoryRetiredDuringAPassOverOneCommitIsFreed) {
  for (const char* point : {"collector.collect_update", "collector.fold.gathered", "collector.fold_update",
                            "collector.early_entry", "collector.folded_update", "spill.cut"}) {
    std::atomic<bool> freed{false}, looked{false}, freed_when_looked{false};
    EngineFixture f({.spills = true});
    int passes = 0;
    testing::SetPointHandler([&](std::string_view name) {
      if (name != point || looked.load()) return;
      if (++passes == kRetiredAt) f.domain.RetireObject(new Marker(&freed), ReclamationDomain::kBatchBytes);
      if (passes != kRetiredAt + kFreedAfter) return;
      f.domain.Collect();
      freed_when_looked.store(freed.load());
      looked.store(true);
    });
    PlayAll(f);
    testing::SetPointHandler(nullptr);
    EXPECT_TRUE(looked.load()) << point;
    EXPECT_TRUE(freed_when_looked.load()) << point << ": one guard is held over the whole pass";
  }
}

}  // namespace
}  // namespace deut::tc
