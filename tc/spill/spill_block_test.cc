#include "tc/spill/spill_block.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

constexpr uint64_t kOffset = 4096;

std::string TwoVersions() {
  SpillBlockBuilder builder;
  EXPECT_TRUE(builder.empty());
  builder.Add({.table = TableId{7},
               .key = "ab",
               .timestamp = Timestamp{0x0102},
               .sequence = 3,
               .value_bytes = 500,
               .commit = Lsn{0x0304},
               .place = Lsn{0x0506}});
  builder.Add({.table = TableId{7}, .key = "b", .timestamp = Timestamp{9}, .sequence = 1, .tombstone = true});
  EXPECT_FALSE(builder.empty());
  std::string block = builder.Finish(kOffset);
  EXPECT_TRUE(builder.empty());
  return block;
}

TEST(SpillBlockTest, GoldenBytes) {
  const std::string block = TwoVersions();
  EXPECT_EQ(std::string(absl::BytesToHexString(block.substr(0, 4) + block.substr(8))),
            "53504231"  // "SPB1"; the checksum is omitted
            "6d00000002000000"
            "0010000000000000"  // bytes, versions, offset
            "07000000"
            "02000000"
            "0201000000000000"
            "0403000000000000"
            "0605000000000000"
            "03000000"
            "f4010000"
            "00"
            "6162"
            "07000000"
            "01000000"
            "0900000000000000"
            "0000000000000000"
            "0000000000000000"
            "01000000"
            "00000000"
            "01"
            "62");
}

TEST(SpillBlockTest, ComesBackAsItWas) {
  const Result<SpillBlock> block = SpillBlock::Decode(TwoVersions(), "file", kOffset);
  ASSERT_TRUE(block.ok()) << block.status().ToString();
  ASSERT_EQ(block->versions().size(), 2u);
  const SpilledVersion& first = block->versions()[0];
  EXPECT_EQ(first.table, TableId{7});
  EXPECT_EQ(first.key, "ab");
  EXPECT_EQ(first.version(), (Version{Timestamp{0x0102}, 3}));
  EXPECT_EQ(first.commit, Lsn{0x0304});
  EXPECT_EQ(first.place, Lsn{0x0506});
  EXPECT_EQ(first.value_bytes, 500u);
  EXPECT_FALSE(first.tombstone);
  EXPECT_TRUE(block->versions()[1].tombstone);
}

TEST(SpillBlockTest, EveryDamagedByteIsFound) {
  const std::string good = TwoVersions();
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    const Result<SpillBlock> block = SpillBlock::Decode(bad, "spill-1", kOffset);
    EXPECT_EQ(block.status(), ErrorCode::kCorruption) << i;
    EXPECT_NE(block.status().ToString().find("spill-1 at offset 4096"), std::string::npos);
  }
  for (size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_EQ(SpillBlock::Decode(good.substr(0, bytes), "f", kOffset).status(), ErrorCode::kCorruption) << bytes;
  EXPECT_EQ(SpillBlock::Decode(good, "f", kOffset + 4096).status(), ErrorCode::kCorruption);
}

}  // namespace
}  // namespace deut::tc
