#include "tc/scan/byte_arena.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace deut::tc {
namespace {

TEST(ByteArenaTest, CopiesStayWhereTheyAre) {
  ByteArena arena;
  std::vector<std::string> texts;
  std::vector<std::string_view> copies;
  for (size_t i = 0; i < 3000; ++i) {
    texts.push_back(std::string(i % 50 == 0 ? 2 * ByteArena::kChunk : i % 40, static_cast<char>('a' + i % 26)));
    copies.push_back(arena.Copy(texts.back()));
  }
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(copies[i], texts[i]);
}

TEST(ByteArenaTest, ClearKeepsOneChunk) {
  ByteArena arena;
  arena.Clear();
  EXPECT_EQ(arena.capacity(), 0u);
  const std::string_view first = arena.Copy("a");
  EXPECT_EQ(arena.capacity(), ByteArena::kChunk);
  arena.Clear();
  EXPECT_EQ(arena.Copy("b").data(), first.data());
  for (int i = 0; i < 100; ++i) arena.Copy(std::string(ByteArena::kChunk / 2 + 1, 'c'));
  arena.Clear();
  EXPECT_EQ(arena.capacity(), ByteArena::kChunk);
  ByteArena large;
  large.Copy(std::string(3 * ByteArena::kChunk, 'd'));
  large.Clear();
  EXPECT_EQ(large.capacity(), ByteArena::kChunk);
  EXPECT_EQ(large.Copy(std::string(ByteArena::kChunk, 'e')), std::string(ByteArena::kChunk, 'e'));
  EXPECT_EQ(large.capacity(), ByteArena::kChunk);
}

}  // namespace
}  // namespace deut::tc
