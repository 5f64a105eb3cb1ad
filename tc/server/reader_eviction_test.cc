// The reader that is aborted for a full budget (S9), and readers that never are.
#include "tc/server/reader_eviction.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"
#include "tc/record_manager/pinned.h"

namespace deut::tc {
namespace {

constexpr int kKeys = 300;

class ReaderEvictionTest : public ::testing::Test {
 protected:
  // Makes commits of which nothing can leave memory: their values are too small.
  void Fill() {
    for (int i = 0; i < kKeys; ++i) {
      TestTransaction writer = f_.Begin();
      ASSERT_EQ(writer.Put("k" + std::to_string(i), "v"), "ok");
      ASSERT_EQ(writer.Commit(), "ok");
    }
    f_.Fold();
    f_.Collect();
  }
  // Makes the pinned bytes exceed the budget, even if runs are merged later.
  void SetFull() { f_.SetVersionBudget(PinnedBytes(*f_.engine) / 4 * 3); }
  // Waits until the oldest one has been that for long enough.
  Timestamp Next() {
    (void)f_.active->AdvanceNow();
    const MonotonicTime ripe = f_.active->held_back_by().since + ReaderEviction::kMinHeld;
    RealRuntime().SleepUntil(ripe);
    return eviction_.Next();
  }
  // The collector reports at the end of each of its rounds whether anything can still leave memory.
  Timestamp AwaitNext() {
    const Deadline deadline = EngineFixture::Soon();
    Timestamp next;
    while ((next = Next()) == Timestamp{0} && RealRuntime().Now() < deadline) RealRuntime().Yield();
    return next;
  }

  EngineFixture f_;
  bool dc_is_at_rest_ = true;
  ReaderEviction eviction_{*f_.engine, [this] { return dc_is_at_rest_; }};
};

TEST_F(ReaderEvictionTest, EvictsTheOldestReaderWhenItFillsTheBudget) {
  TestTransaction old = f_.Begin();
  EXPECT_EQ(old.Get("k1"), "-");
  Fill();
  EXPECT_EQ(Next(), Timestamp{0}) << "there is room";
  SetFull();
  EXPECT_EQ(AwaitNext().value, old.timestamp());
  dc_is_at_rest_ = false;
  EXPECT_EQ(Next(), Timestamp{0}) << "the DC has not applied what it was sent, or is away";
  dc_is_at_rest_ = true;
  EXPECT_EQ(Next().value, old.timestamp());
  f_.SetVersionBudget(2 * PinnedBytes(*f_.engine));
  EXPECT_EQ(Next(), Timestamp{0});
}

TEST_F(ReaderEvictionTest, NoReaderForCommitsBeforeIt) {
  Fill();  // and the DC applies nothing
  TestTransaction reader = f_.Begin();
  EXPECT_EQ(reader.Get("k1"), "v");
  SetFull();
  f_.Collect();
  EXPECT_EQ(Next(), Timestamp{0});
}

// An open transaction's own writes would stay even if the reader were aborted.
TEST_F(ReaderEvictionTest, NobodyForWhatAnOpenTransactionWrites) {
  TestTransaction old = f_.Begin();
  EXPECT_EQ(old.Get("k1"), "-");
  TestTransaction large = f_.Begin();
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(large.Put("own" + std::to_string(i), "v"), "ok");
  {
    TestTransaction small = f_.Begin();
    EXPECT_EQ(small.Put("one", "v"), "ok");
    EXPECT_EQ(small.Commit(), "ok");
  }
  f_.Fold();
  f_.Collect();
  SetFull();
  EXPECT_EQ(Next(), Timestamp{0});
}

}  // namespace
}  // namespace deut::tc
