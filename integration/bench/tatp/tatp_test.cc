#include "integration/bench/tatp/tatp.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "integration/bench/model_session.h"
#include "integration/bench/tatp/schema.h"

namespace deut::bench::tatp {
namespace {

constexpr uint32_t kSubscribers = 7000;  // two parts

class TatpTest : public ::testing::Test {
 protected:
  TatpTest() {
    EXPECT_EQ(tatp_.parts(), 2u);
    for (uint32_t part = 0; part < tatp_.parts(); ++part) EXPECT_TRUE(tatp_.LoadPart(session_, part).ok());
  }

  size_t RowsOf(std::string_view prefix) {
    size_t rows = 0;
    for (auto it = session_.records().lower_bound(prefix);
         it != session_.records().end() && it->first.starts_with(prefix); ++it)
      ++rows;
    return rows;
  }

  const Tatp tatp_{kSubscribers};
  ModelSession session_;
};

TEST_F(TatpTest, ThePopulationIsWhatTheSpecificationSays) {
  EXPECT_EQ(RowsOf("Ts"), kSubscribers);
  EXPECT_EQ(RowsOf("Tn"), kSubscribers);
  // A subscriber has one to four rows of each; a facility has up to three forwardings, 1.5 on average.
  for (const char* table : {"Ta", "Tf"}) {
    EXPECT_GT(RowsOf(table), 2 * kSubscribers) << table;
    EXPECT_LT(RowsOf(table), 3 * kSubscribers) << table;
  }
  EXPECT_GT(RowsOf("Tc"), RowsOf("Tf") * 14 / 10);
  EXPECT_LT(RowsOf("Tc"), RowsOf("Tf") * 16 / 10);
  const Status consistent = tatp_.Check(session_);
  EXPECT_TRUE(consistent.ok()) << consistent.ToString();
}

TEST_F(TatpTest, EveryTransactionRunsAndLeavesItConsistent) {
  const ModelSession::Records before = session_.records();
  const std::unique_ptr<Terminal> terminal = tatp_.NewTerminal(0, 5);
  for (int i = 0; i < 5000; ++i) {
    const Status status = terminal->RunNext(session_);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  EXPECT_EQ(terminal->counted(), 5000u);
  const Status consistent = tatp_.Check(session_);
  EXPECT_TRUE(consistent.ok()) << consistent.ToString();
  // Subscribers and facilities were updated, forwardings inserted and deleted.
  size_t subscribers = 0, facilities = 0, inserted = 0, deleted = 0;
  for (const auto& [key, value] : session_.records()) {
    const auto it = before.find(key);
    if (it == before.end()) {
      EXPECT_TRUE(key.starts_with("Tc")) << key;
      ++inserted;
    } else if (it->second != value) {
      (key.starts_with("Ts") ? subscribers : facilities) += 1;
    }
  }
  for (const auto& [key, value] : before) deleted += session_.records().contains(key) ? 0 : 1;
  EXPECT_GT(subscribers, 100u);
  EXPECT_GT(facilities, 10u);
  EXPECT_GT(inserted, 5u);
  EXPECT_GT(deleted, 5u);
}

TEST_F(TatpTest, CheckReportsAMissingRecord) {
  const ModelSession::Records whole = session_.records();
  const auto broken_without = [&](const std::string& key) {
    session_.records() = whole;
    EXPECT_EQ(session_.records().erase(key), 1u) << key;
    return tatp_.Check(session_) == ErrorCode::kCorruption;
  };
  EXPECT_TRUE(broken_without(SubscriberKey(kSubscribers)));
  EXPECT_TRUE(broken_without(SubscriberKey(17)));
  EXPECT_TRUE(broken_without(NumberKey(17)));
  // Removes the facility of a forwarding.
  const std::string forwarding = whole.lower_bound("Tc")->first;
  EXPECT_TRUE(broken_without("Tf" + forwarding.substr(2, kSubscriberDigits + kKindDigits)));
}

}  // namespace
}  // namespace deut::bench::tatp
