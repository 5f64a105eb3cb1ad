#include "dc/record_ops/superseded_updates.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/runtime/random.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

class Updates {
 public:
  void Add(uint32_t table, std::string key, bool tombstone = false) {
    keys_.push_back(std::make_unique<std::string>(std::move(key)));
    const uint64_t number = updates.size() + 1;
    updates.push_back({.kind = tombstone ? LogEntryKind::kDelete : LogEntryKind::kPut,
                       .position = {Lsn(number * 8), 1},
                       .timestamp = Timestamp(number),
                       .table = TableId(table),
                       .key = *keys_.back(),
                       .value = {}});
  }
  // The final content of a table of versions.
  using Outcome = std::map<std::pair<uint32_t, std::string>, std::pair<uint64_t, LogEntryKind>>;
  Outcome OutcomeOf(size_t count) const {
    Outcome outcome;
    for (size_t i = 0; i < count; ++i) {
      auto& last = outcome[{updates[i].table.value, std::string(updates[i].key)}];
      if (updates[i].timestamp.value > last.first) last = {updates[i].timestamp.value, updates[i].kind};
    }
    return outcome;
  }

  std::vector<LogEntryView> updates;

 private:
  std::vector<std::unique_ptr<std::string>> keys_;
};

std::string KeyOf(uint64_t number) { return "key" + std::to_string(number); }

TEST(SupersededUpdatesTest, S3TheLastOfEachKeyStays) {
  SupersededUpdates superseded;
  for (const size_t size : {64u, 100u, 1000u, 2048u, 5000u}) {
    Random random(size);
    Updates run;
    for (size_t i = 0; i < size; ++i)
      run.Add(static_cast<uint32_t>(1 + random.Below(2)), KeyOf(random.Below(size / 4)), random.Below(3) == 0);
    const Updates::Outcome all = run.OutcomeOf(size);
    const size_t kept = superseded.MoveNeededToFront(run.updates);
    EXPECT_TRUE(run.OutcomeOf(kept) == all);
    if (size <= SupersededUpdates::kMaxExamined) EXPECT_EQ(kept, all.size());
    EXPECT_LT(kept, size);
    for (size_t i = 1; i < kept; ++i) EXPECT_LT(run.updates[i - 1].position, run.updates[i].position);
  }
}

TEST(SupersededUpdatesTest, FewAreLeftAsTheyAre) {
  SupersededUpdates superseded;
  Updates run;
  for (int i = 0; i < 10; ++i) run.Add(1, "same");
  EXPECT_EQ(superseded.MoveNeededToFront(run.updates), 10u);
  EXPECT_EQ(superseded.MoveNeededToFront({}), 0u);
}

TEST(SupersededUpdatesTest, WhereNoneWasFoundItIsSeldomLookedForThem) {
  SupersededUpdates superseded;
  Updates different, same;
  for (uint64_t i = 0; i < 200; ++i) {
    different.Add(1, KeyOf(i));
    same.Add(1, "same");
  }
  EXPECT_EQ(superseded.MoveNeededToFront(different.updates), 200u);
  EXPECT_EQ(superseded.MoveNeededToFront(same.updates), 200u);
  size_t kept = 200;
  for (int runs = 0; kept == 200; ++runs) {
    ASSERT_LT(runs, 100);
    kept = superseded.MoveNeededToFront(same.updates);
  }
  EXPECT_EQ(kept, 1u);
  EXPECT_EQ(same.updates.front().timestamp, Timestamp(200));
}

}  // namespace
}  // namespace deut::dc
