#include "tc/server/range_cuts.h"

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

using Keys = std::vector<std::string>;

TEST(RangeCutsTest, CutsAreEven) {
  EXPECT_EQ(EvenCuts({}, 5), Keys());
  EXPECT_EQ(EvenCuts({"a", "b", "c"}, 1), Keys());
  EXPECT_EQ(EvenCuts({"a", "b", "c"}, 2), Keys({"b"}));
  EXPECT_EQ(EvenCuts({"a", "b", "c"}, 4), Keys({"a", "b", "c"}));
  EXPECT_EQ(EvenCuts({"a", "b", "c"}, 9), Keys({"a", "b", "c"}));
  EXPECT_EQ(EvenCuts({"a", "b", "c", "d", "e", "f", "g"}, 3), Keys({"b", "e"}));
  // A candidate that occurs often takes the places of others.
  EXPECT_EQ(EvenCuts({"a", "b", "b", "b", "b", "b", "c"}, 4), Keys({"b"}));
}

TEST(RangeCutsTest, FindsKeysThatAreBeingWritten) {
  EngineFixture f;
  f.SetRanges({"c", "m"});
  const auto written = [&](std::string_view key) {
    return KeysWritten(f.domain, *f.catalogue->Find(EngineFixture::kTable), f.RangeOf(key));
  };
  EXPECT_EQ(written("d"), Keys());
  {
    TestTransaction t = f.Begin(), other = f.Begin();
    for (const char* key : {"f", "c", "a", "x"}) EXPECT_EQ(t.Put(key, "1"), "ok");
    EXPECT_EQ(other.Put("e", "1"), "ok");
    // "c" is where the range begins, so it is no cut.
    EXPECT_EQ(written("d"), Keys({"e", "f"}));
    // The latest transactions come first.
    EXPECT_EQ(KeysWritten(f.domain, *f.catalogue->Find(EngineFixture::kTable), f.RangeOf("d"), 1), Keys({"e"}));
    EXPECT_EQ(t.Commit(), "ok");
    EXPECT_EQ(written("d"), Keys({"e", "f"}));
    EXPECT_EQ(written("z"), Keys({"x"}));
  }
  EXPECT_TRUE(f.Settle());
  EXPECT_EQ(written("d"), Keys());
}

TEST(RangeCutsTest, RandomCutsAreAnyOfThem) {
  Random random(1);
  const Keys candidates = {"c", "a", "c", "g"};
  std::set<Keys> seen;
  Keys now = {"b", "e"};
  for (int i = 0; i < 5000; ++i) {
    now = RandomCuts(now, candidates, 4, random);
    EXPECT_LT(now.size(), 4u);
    for (size_t k = 1; k < now.size(); ++k) EXPECT_LT(now[k - 1], now[k]);
    seen.insert(now);
  }
  EXPECT_TRUE(seen.contains(Keys()));
  EXPECT_TRUE(seen.contains(Keys({"a", "c", "g"})));
}

}  // namespace
}  // namespace deut::tc
