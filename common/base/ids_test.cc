#include "common/base/ids.h"

#include <type_traits>

#include "absl/container/flat_hash_set.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

static_assert(!std::is_convertible_v<uint64_t, Lsn> && !std::is_convertible_v<Lsn, uint64_t>);
static_assert(!std::is_convertible_v<Lsn, Timestamp>);
static_assert(sizeof(Lsn) == sizeof(uint64_t) && sizeof(TableId) == sizeof(uint32_t));

TEST(Ids, VersionsOrderByTimestampThenSequence) {
  const Version old{Timestamp(5), 9};
  EXPECT_LT(old, (Version{Timestamp(6), 1}));
  EXPECT_LT((Version{Timestamp(6), 1}), (Version{Timestamp(6), 2}));
  EXPECT_LT((Version{Timestamp(6), 2}), (Version{kMaxTimestamp, 0}));
}

TEST(Ids, PositionWithMaximalSequenceLiesBehindItsCommit) {
  const Position end{Lsn(100), UINT32_MAX};
  EXPECT_LT((Position{Lsn(100), 12345}), end);
  EXPECT_LT(end, (Position{Lsn(101), 0}));
}

TEST(Ids, AreHashable) {
  absl::flat_hash_set<TableId> tables = {TableId(1), TableId(2), TableId(1)};
  EXPECT_EQ(tables.size(), 2u);
  EXPECT_TRUE(tables.contains(TableId(2)));
}

}  // namespace
}  // namespace deut
