// An older copy of the DC's folder is put back while the TC keeps running, as after the restore of a backup, or on a
// disk that went back to a snapshot. The TC has already met the incarnation number of this start, and the DC's
// content is older than what it has reported.
#include <gtest/gtest.h>

#include <string>

#include "common/runtime/runtime.h"
#include "integration/stale/stale_world.h"

namespace deut::stale {
namespace {

std::string Text(const Verdict& verdict) { return verdict.why; }

TEST(OlderCopyTest, ADcFromAnOlderCopyIsBroughtUpToDateBeforeItIsRead) {
  StaleWorld world;
  ASSERT_EQ(world.Create().ToString(), "OK");
  ASSERT_TRUE(world.Write("old", 80).ok());
  ASSERT_TRUE(world.AwaitCheckpoint().ok());
  world.Kill(Component::kDc);
  world.Copy(Component::kDc, "old");
  world.Start(Component::kDc);
  ASSERT_TRUE(world.cluster().AwaitServing().ok());
  ASSERT_TRUE(world.Write("new", 80).ok());
  ASSERT_EQ(world.WriteFiller(2).ToString(), "OK");
  // The TC forgets the updates that the DC has applied, so it must read them from the DC.
  ASSERT_TRUE(world.cluster().client().DropCaches({.timeout = seconds(60)}).ok());
  world.Kill(Component::kDc);
  world.Replace(Component::kDc, "old");
  EXPECT_EQ(world.StartDcUnderReaders(), "");
  const Verdict verdict = world.Judge();
  EXPECT_EQ(verdict.kind, Verdict::Kind::kRight) << Text(verdict);
}

}  // namespace
}  // namespace deut::stale
