#include "integration/product/cli/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace deut::cli {
namespace {

using ::testing::HasSubstr;

ServiceStatus Serving() {
  ServiceStatus status;
  status.tc = {{"serving", 1},
               {"dc.gate_open", 1},
               {"ship.ever_sent", 5000},
               {"ship.applied", 4000},
               {"ship.backlog_bytes", 1000}};
  status.dc = {{"incarnation", 3}, {"recovering", 0}, {"free_bytes", 1000000}};
  return status;
}

void Set(std::vector<CounterValue>* counters, const std::string& name, uint64_t value) {
  for (CounterValue& counter : *counters) {
    if (counter.name == name) {
      counter.value = value;
      return;
    }
  }
  counters->push_back({name, value});
}

TEST(HealthTest, AServingStoreReportsOnlyThat) {
  const Health health = HealthOf(Serving());
  EXPECT_TRUE(health.serves);
  EXPECT_EQ(health.text, "tc: serving\ndc: serving, incarnation 3, 1000 bytes of the redo log to apply\n");
}

TEST(HealthTest, AStartIsFollowedThroughItsStages) {
  ServiceStatus status = Serving();
  Set(&status.tc, "dc.gate_open", 0);
  status.dc.clear();
  EXPECT_FALSE(HealthOf(status).serves);
  EXPECT_EQ(HealthOf(status).text, "tc: serving\ndc: away, or it does not answer\n");
  status.dc = {{"incarnation", 4},
               {"recovering", 1},
               {"recovery_checkpoint", 17},
               {"recovery_segments", 2000},
               {"recovery_segments_checked", 300},
               {"recovery_inner_pages", 1},
               {"recovery_inner_pages_loaded", 0}};
  EXPECT_FALSE(HealthOf(status).serves);
  EXPECT_EQ(
      HealthOf(status).text,
      "tc: serving\ndc: recovering from checkpoint 17: 300 of 2000 segments checked, 0 of 1 inner pages loaded\n");
  status.dc = Serving().dc;
  EXPECT_FALSE(HealthOf(status).serves);
  EXPECT_THAT(HealthOf(status).text, HasSubstr("dc: repeating the redo log: it is at 4000 of 5000, 1000 bytes to go"));
  Set(&status.tc, "serving", 0);
  EXPECT_THAT(HealthOf(status).text, HasSubstr("tc: not serving yet"));
}

TEST(HealthTest, EachTroubleHasALine) {
  ServiceStatus status = Serving();
  Set(&status.dc, "disk_waiting_operations", 2);
  Set(&status.dc, "disk_waiting_ms", 6000);
  Set(&status.dc, "pages_damaged", 1);
  Set(&status.dc, "scrub_errors", 4);
  Set(&status.dc, "checkpoint_failing", 1);
  Set(&status.dc, "free_bytes", 0);
  const Health health = HealthOf(status);
  EXPECT_TRUE(health.serves);
  for (const char* piece : {"its disk hangs: 2 operations wait, the oldest for 6000 ms", "1 pages cannot be read",
                            "4 places found", "no checkpoint can be taken", "puts are refused"}) {
    EXPECT_THAT(health.text, HasSubstr(piece));
  }
}

}  // namespace
}  // namespace deut::cli
