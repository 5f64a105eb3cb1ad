#include "tc/mvcc/record_hash.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

std::string KeyOf(uint32_t number, size_t bytes) {
  std::string key(bytes, 'k');
  for (size_t at = bytes; number != 0 && at > 0; number /= 10) key[--at] = static_cast<char>('0' + number % 10);
  return key;
}

TEST(RecordHashTest, TheSameNameHasTheSameHashWhereverItLies) {
  for (size_t bytes = 0; bytes <= 70; ++bytes) {
    const std::string key = KeyOf(12345, bytes);
    for (size_t shift = 0; shift < 8; ++shift) {
      const std::string apart = std::string(shift, 'x') + key + "yz";
      EXPECT_EQ(HashRecord(TableId(7), key), HashRecord(TableId(7), std::string_view(apart).substr(shift, bytes)));
    }
  }
}

// Each bit of the key and of the table matters: about half of the hash's bits change with it.
TEST(RecordHashTest, EveryBitCounts) {
  for (size_t bytes = 1; bytes <= 70; ++bytes) {
    std::string key = KeyOf(987, bytes);
    const uint64_t hash = HashRecord(TableId(1), key);
    uint64_t changed = 0;
    for (size_t bit = 0; bit < bytes * 8; ++bit) {
      key[bit / 8] = static_cast<char>(key[bit / 8] ^ (1 << (bit % 8)));
      const int bits = std::popcount(hash ^ HashRecord(TableId(1), key));
      EXPECT_GE(bits, 8) << bytes << " bytes, bit " << bit;
      changed += static_cast<uint64_t>(bits);
      key[bit / 8] = static_cast<char>(key[bit / 8] ^ (1 << (bit % 8)));
    }
    EXPECT_GT(changed, bytes * 8 * 26);
    EXPECT_LT(changed, bytes * 8 * 38);
    EXPECT_GE(std::popcount(hash ^ HashRecord(TableId(2), key)), 8);
  }
}

// Consecutive numbers as keys of one length, and keys of one repeated byte in all lengths: all hashes differ.
TEST(RecordHashTest, NamesThatAreAlikeDiffer) {
  std::set<uint64_t> hashes;
  size_t names = 0;
  for (size_t bytes = 0; bytes <= 300; ++bytes, ++names)
    hashes.insert(HashRecord(TableId(1), std::string(bytes, '\0')));
  for (uint32_t number = 0; number < 20'000; ++number, ++names)
    hashes.insert(HashRecord(TableId(1), KeyOf(number, 20)));
  for (uint32_t table = 2; table < 500; ++table, ++names) hashes.insert(HashRecord(TableId(table), "key"));
  EXPECT_EQ(hashes.size(), names);
}

// Any run of hash bits, as the record table takes them, spreads consecutive keys as chance would: 16 keys a bucket. The fullest of 4,096 buckets
// has more than 60 with a probability below 10^-12.
TEST(RecordHashTest, AnyOfItsBitsChooseABucketWell) {
  constexpr uint32_t kBuckets = 4096;
  for (const size_t bytes : {size_t{7}, size_t{12}, size_t{16}, size_t{24}}) {
    for (const uint32_t shift : {0U, 12U, 20U, 33U, 52U}) {
      std::vector<uint32_t> buckets(kBuckets, 0);
      for (uint32_t number = 0; number < 16 * kBuckets; ++number)
        ++buckets[(HashRecord(TableId(3), KeyOf(number, bytes)) >> shift) % kBuckets];
      EXPECT_LE(*std::ranges::max_element(buckets), 60U) << bytes << " bytes, bits from " << shift;
      EXPECT_LT(std::ranges::count(buckets, 0U), 10) << bytes << " bytes, bits from " << shift;
    }
  }
}

// The test below runs this test in separate processes.
TEST(RecordHashTest, DISABLED_PrintsAHash) {
  std::printf("hash %llx\n", static_cast<unsigned long long>(HashRecord(TableId(1), "key")));
}

// The seed depends neither on the program nor on its place in memory: two processes without address randomization differ, too.
TEST(RecordHashTest, ProcessesAtTheSameAddressHashDifferently) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string arguments = " --gtest_also_run_disabled_tests --gtest_filter=RecordHashTest.DISABLED_PrintsAHash";
  const auto hash = [&] {
    const std::string command = Concat("(setarch -R '", program, "'", arguments, " || '", program, "'", arguments, ")");
    FILE* const pipe = popen(command.c_str(), "r");
    std::string found;
    char line[256];
    while (std::fgets(line, sizeof(line), pipe) != nullptr) {
      if (std::string_view(line).starts_with("hash ")) found = line;
    }
    pclose(pipe);
    return found;
  };
  const std::string first = hash();
  EXPECT_NE(first, "");
  EXPECT_NE(first, hash());
}

}  // namespace
}  // namespace deut::tc
