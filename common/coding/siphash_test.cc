#include "common/coding/siphash.h"

#include <gtest/gtest.h>

#include <string>

namespace deut {
namespace {

constexpr SipHashKey kKey{.low = 0x0706050403020100, .high = 0x0F0E0D0C0B0A0908};

std::string Counting(size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text.push_back(static_cast<char>(i));
  return text;
}

// The test vectors of the algorithm's paper and of its reference implementation.
TEST(SipHash, KnownVectors) {
  EXPECT_EQ(SipHash(kKey, Counting(15)), 0xA129CA6149BE45E5u);
  EXPECT_EQ(SipHash(kKey, ""), 0x726FDB47DD0E0E31u);
  EXPECT_EQ(SipHash(kKey, Counting(1)), 0x74F839C593DC67FDu);
  EXPECT_EQ(SipHash(kKey, Counting(8)), 0x93F5F5799A932462u);
}

TEST(SipHash, KeyAndLengthCount) {
  EXPECT_NE(SipHash(kKey, Counting(16)), SipHash({.low = kKey.low, .high = kKey.high + 1}, Counting(16)));
  EXPECT_NE(SipHash(kKey, std::string(1, '\0')), SipHash(kKey, std::string(2, '\0')));
}

}  // namespace
}  // namespace deut
