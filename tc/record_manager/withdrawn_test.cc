// A version that its owner withdraws, and commits, while another transaction is looking at it (rule R4).
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

class WithdrawnTest : public ::testing::Test {
 protected:
  WithdrawnTest() {
    testing::SetPointHandler([this](std::string_view name) {
      if (name == "collector.taken") {
        // Otherwise the collector would unlink the version before the look continues, and the look would begin again.
        collects_.Wait(RealRuntime(), kNoDeadline);
      } else if (name == stops_) {
        stops_ = {};
        installed_.Signal(RealRuntime());
        go_.Wait(RealRuntime(), kNoDeadline);
      } else if (name == looks_) {
        looks_ = {};
        go_.Signal(RealRuntime());
        ended_.Wait(RealRuntime(), kNoDeadline);
      }
    });
  }
  ~WithdrawnTest() override { testing::SetPointHandler(nullptr); }

  // An update of an absent key is in the key's chain when `look` begins. The version is withdrawn, and its
  // transaction commits, when the look reaches the point, and so between two of its steps.
  std::string LookWhileItIsWithdrawn(std::string_view point, const std::function<std::string()>& look) {
    const std::unique_ptr<Thread> updater = RealRuntime().StartThread("updater", [this] {
      stops_ = "write.installed";
      TestTransaction updates = f_.Begin();
      EXPECT_EQ(updates.Update("k", "none"), "NOT_FOUND");
      EXPECT_EQ(updates.Commit(), "ok");
      ended_.Signal(RealRuntime());
    });
    installed_.Wait(RealRuntime(), kNoDeadline);
    looks_ = point;
    std::string found = look();
    EXPECT_TRUE(looks_.empty()) << "the look has not come to " << point;
    looks_ = {};
    go_.Signal(RealRuntime());
    collects_.Signal(RealRuntime());
    return found;
  }

  EngineFixture f_;
  Event installed_, go_, ended_, collects_;

 private:
  static thread_local std::string_view stops_, looks_;
};

thread_local std::string_view WithdrawnTest::stops_, WithdrawnTest::looks_;

TEST_F(WithdrawnTest, AReaderDoesNotSeeIt) {
  // Between the first and the second thing that it looks at.
  const std::string_view between = DEUT_OMITTED("R4.status_first") ? "chain.look.first" : "chain.look.status_loaded";
  EXPECT_EQ(LookWhileItIsWithdrawn(between, [this] { return f_.Begin().Get("k"); }), "-");
}

TEST_F(WithdrawnTest, AWriterDoesNotFindItPresent) {
  const auto insert = [this] {
    TestTransaction inserts = f_.Begin();
    const std::string inserted = inserts.Insert("k", "1");
    return inserted == "ok" ? inserts.Commit() : inserted;
  };
  EXPECT_EQ(LookWhileItIsWithdrawn("write.head_seen", insert), "ok");
  EXPECT_EQ(f_.Contents(), "k=1");
}

}  // namespace
}  // namespace deut::tc
