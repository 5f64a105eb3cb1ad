#include "common/runtime/process_memory.h"

#include <cstring>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(ProcessMemoryTest, FreedPiecesBetweenKeptOnesAreGivenBack) {
  constexpr size_t kPieces = 2000;
  constexpr size_t kBytes = 64 << 10;
  const uint64_t before = ResidentBytes();
  ASSERT_GT(before, 0u);
  std::vector<std::unique_ptr<char[]>> pieces;
  std::vector<std::unique_ptr<char[]>> kept;
  for (size_t i = 0; i < kPieces; ++i) {
    pieces.push_back(std::make_unique<char[]>(kBytes));
    std::memset(pieces.back().get(), 1, kBytes);
    kept.push_back(std::make_unique<char[]>(64));
  }
  const uint64_t full = ResidentBytes();
  EXPECT_GT(full, before + kPieces * kBytes / 2);
  pieces.clear();
  ReturnFreedMemory();
  EXPECT_LT(ResidentBytes(), full - kPieces * kBytes / 2);
}

}  // namespace
}  // namespace deut
