#include "integration/ycsb/record.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace deut::ycsb {
namespace {

TEST(Keys, AreFixedWidthAndDistinct) {
  std::set<std::string> keys;
  for (uint64_t number = 0; number < 10'000; ++number) {
    const std::string key = KeyOf(number);
    ASSERT_EQ(key.size(), kKeyBytes);
    ASSERT_EQ(key.substr(0, 4), "user");
    ASSERT_EQ(key.find_first_not_of("0123456789", 4), std::string::npos);
    keys.insert(key);
  }
  EXPECT_EQ(keys.size(), 10'000u);
}

// Stores outlive programs, so a number must have the same key in every version.
TEST(Keys, Golden) {
  EXPECT_EQ(KeyOf(0), "user16294208416658607535");
  EXPECT_EQ(KeyOf(1), "user10451216379200822465");
}

TEST(Values, SayWhichWriteTheyAre) {
  const std::string key = KeyOf(77);
  for (const uint32_t bytes : {kMinValueBytes, kMinValueBytes + 1, 31u, 32u, 100u, 5000u}) {
    std::string value;
    MakeValue(77, {.writer = 0x1122334455667788, .sequence = 9}, key, bytes, &value);
    ASSERT_EQ(value.size(), bytes);
    const Result<WriteId> id = CheckValue(key, value);
    ASSERT_TRUE(id.ok()) << id.status().ToString();
    EXPECT_EQ(*id, (WriteId{.writer = 0x1122334455667788, .sequence = 9}));
  }
}

TEST(Values, AnyChangedByteIsNoticed) {
  const std::string key = KeyOf(5);
  std::string value;
  MakeValue(5, {.writer = 1, .sequence = 2}, key, 100, &value);
  for (size_t i = 0; i < value.size(); ++i) {
    std::string torn = value;
    torn[i] = static_cast<char>(torn[i] ^ 0x10);
    EXPECT_EQ(CheckValue(key, torn).status().code(), ErrorCode::kCorruption) << i;
  }
  EXPECT_EQ(CheckValue(KeyOf(6), value).status().code(), ErrorCode::kCorruption) << "another key's value";
  EXPECT_EQ(CheckValue(key, value.substr(0, 99)).status().code(), ErrorCode::kCorruption);
  EXPECT_EQ(CheckValue(key, value.substr(0, 23)).status().code(), ErrorCode::kCorruption);
  EXPECT_EQ(CheckValue(key, "").status().code(), ErrorCode::kCorruption);
  // The value is half of one write and half of another.
  std::string other;
  MakeValue(5, {.writer = 1, .sequence = 3}, key, 100, &other);
  EXPECT_EQ(CheckValue(key, value.substr(0, 50) + other.substr(50)).status().code(), ErrorCode::kCorruption);
}

}  // namespace
}  // namespace deut::ycsb
