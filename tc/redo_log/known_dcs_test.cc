#include "tc/redo_log/known_dcs.h"

#include <gtest/gtest.h>

#include <optional>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/record_codec.h"
#include "tc/redo_log/log_ring.h"
#include "tc/redo_log/writer_role.h"

namespace deut::tc {
namespace {

class KnownDcsTest : public ::testing::Test {
 protected:
  WriterRole role_{RealRuntime(), nullptr};
  LogRing ring_{8192, Lsn(8), RealRuntime(), role_};
};

TEST_F(KnownDcsTest, EachIsAppendedOnceAndItsRecordIsNamedAgain) {
  KnownDcs known(RealRuntime(), ring_, {DcId(3)});
  EXPECT_EQ(*known.Add(DcId(3)), std::nullopt) << "an earlier process has logged it";
  EXPECT_EQ(ring_.tail(), Lsn(8));
  EXPECT_EQ(*known.Add(DcId(5)), Lsn(8));
  const Lsn tail = ring_.tail();
  EXPECT_GT(tail, Lsn(8));
  EXPECT_EQ(*known.Add(DcId(5)), Lsn(8)) << "perhaps it is not durable yet";
  EXPECT_EQ(ring_.tail(), tail);
  EXPECT_EQ(*known.Add(DcId(4)), tail);
}

TEST_F(KnownDcsTest, OneMoreThanTheLimitIsRefused) {
  KnownDcs known(RealRuntime(), ring_, {DcId(1000)});
  for (uint64_t dc = 1; dc < kMaxKnownDcs; ++dc) ASSERT_TRUE(known.Add(DcId(dc)).ok());
  EXPECT_TRUE(known.Add(DcId(1001)).status() == ErrorCode::kResourceExhausted);
  EXPECT_TRUE(known.Add(DcId(1)).ok());
}

}  // namespace
}  // namespace deut::tc
