// Reads past the end of an allocation: must fail under --config=asan.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace deut::probes {
namespace {

TEST(OverflowTest, ReadsPastTheEnd) {
  const size_t size = 16;
  std::vector<char> bytes(size, 'x');
  const volatile char* data = bytes.data();
  EXPECT_LE(data[size], 127);
}

}  // namespace
}  // namespace deut::probes
