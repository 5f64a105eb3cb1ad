#include "common/config/units.h"

#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(Units, BytesInAllForms) {
  EXPECT_EQ(*ParseBytes("0"), 0u);
  EXPECT_EQ(*ParseBytes("4096"), 4096u);
  EXPECT_EQ(*ParseBytes("7B"), 7u);
  EXPECT_EQ(*ParseBytes("64KiB"), 65536u);
  EXPECT_EQ(*ParseBytes("2GiB"), uint64_t{2} << 30);
  EXPECT_EQ(*ParseBytes("3TB"), uint64_t{3'000'000'000'000});
  EXPECT_EQ(*ParseBytes("18446744073709551615"), UINT64_MAX);
  for (const char* bad : {"", "MiB", "-1", "1.5GiB", "1 KiB", "1kib", "18446744073709551616", "16777216TiB", "1KiBx"}) {
    EXPECT_EQ(ParseBytes(bad).status(), ErrorCode::kInvalidArgument) << bad;
  }
  EXPECT_NE(ParseBytes("many").status().message().find("\"many\""), std::string_view::npos);
}

TEST(Units, DurationsInAllForms) {
  EXPECT_EQ(*ParseDuration("0"), Duration(0));
  EXPECT_EQ(*ParseDuration("250us"), microseconds(250));
  EXPECT_EQ(*ParseDuration("30s"), seconds(30));
  EXPECT_EQ(*ParseDuration("2h"), seconds(7200));
  EXPECT_EQ(*ParseDuration("5m"), seconds(300));
  EXPECT_EQ(*ParseDuration("9223372036854775807ns"), Duration(INT64_MAX));
  for (const char* bad : {"", "30", "s", "-1s", "1.5s", "9223372036854775808ns", "9999999999s", "1 s"}) {
    EXPECT_EQ(ParseDuration(bad).status(), ErrorCode::kInvalidArgument) << bad;
  }
}

TEST(Units, FormattedAmountsAreReadBack) {
  EXPECT_EQ(FormatBytes(0), "0");
  EXPECT_EQ(FormatBytes(uint64_t{512} << 20), "512MiB");
  EXPECT_EQ(FormatBytes(1000), "1000B");
  EXPECT_EQ(FormatDuration(milliseconds(1500)), "1500ms");
  EXPECT_EQ(FormatDuration(seconds(120)), "2m");
  EXPECT_EQ(FormatDuration(-seconds(1)), "-1s");
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1536}, uint64_t{1} << 40, UINT64_MAX}) {
    EXPECT_EQ(*ParseBytes(FormatBytes(bytes)), bytes);
  }
  for (const Duration duration : {Duration(0), Duration(1), Duration(seconds(90)), Duration(INT64_MAX)}) {
    EXPECT_EQ(*ParseDuration(FormatDuration(duration)), duration);
  }
}

}  // namespace
}  // namespace deut
