#include "protocol/record_batch.h"

#include <string>
#include <utility>
#include <vector>

#include "common/runtime/random.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

struct Owned {
  std::string key;
  std::string value;
  Version version;
};

std::string Bytes(Random& random, size_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random.Next());
  return text;
}

TEST(RecordBatchTest, GoldenBytes) {
  RecordBatch batch;
  batch.Append("key", "va", Version{Timestamp(0x0102030405060708), 0x0a0b0c0d});
  const std::string expected(
      "\x03\x00"
      "\x02\x00\x00\x00"
      "\x08\x07\x06\x05\x04\x03\x02\x01"
      "\x0d\x0c\x0b\x0a"
      "keyva",
      23);
  EXPECT_EQ(batch.bytes(), expected);
}

TEST(RecordBatchTest, ReturnsTheAppendedRecords) {
  Random random(11);
  std::vector<Owned> records;
  RecordBatch batch;
  for (int i = 0; i < 300; ++i) {
    records.push_back({Bytes(random, random.Between(1, 40)), Bytes(random, random.Below(200)),
                       Version{Timestamp(random.Next()), static_cast<uint32_t>(random.Next())}});
  }
  records.push_back({std::string(kMaxKeyBytes, 'k'), std::string(kMaxValueBytes, 'v'), Version{Timestamp(1), 2}});
  for (const Owned& record : records) batch.Append(record.key, record.value, record.version);
  ASSERT_EQ(batch.size(), records.size());

  Result<RecordBatch> parsed = RecordBatch::Parse(batch.bytes());
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  for (const RecordBatch* each : {&batch, &*parsed}) {
    ASSERT_EQ(each->size(), records.size());
    size_t i = 0;
    for (RecordBatch::Iterator it(*each); it.Valid(); it.Next(), ++i) {
      EXPECT_EQ(it.record().key, records[i].key);
      EXPECT_EQ(it.record().value, records[i].value);
      EXPECT_EQ(it.record().version, records[i].version);
    }
    EXPECT_EQ(i, records.size());
  }
}

TEST(RecordBatchTest, RunsAreRecords) {
  RecordBatch from;
  from.Append("a", "1", Version{Timestamp(1), 1});
  from.Append("b", "2", Version{Timestamp(2), 1});
  RecordBatch batch;
  batch.Append("0", "", Version{});
  batch.AppendRun(from.bytes(), 2, from.newest());
  EXPECT_EQ(batch.size(), 3u);
  std::string keys;
  for (RecordBatch::Iterator it(batch); it.Valid(); it.Next()) keys += it.record().key;
  EXPECT_EQ(keys, "0ab");
  batch.Clear();
  EXPECT_TRUE(batch.empty());
  EXPECT_FALSE(RecordBatch::Iterator(batch).Valid());
}

TEST(RecordBatchTest, KnowsABoundOfItsVersions) {
  RecordBatch batch;
  EXPECT_EQ(batch.newest(), Timestamp());
  batch.Append("a", "1", Version{Timestamp(7), 1});
  batch.Append("b", "2", Version{Timestamp(3), 9});
  EXPECT_EQ(batch.newest(), Timestamp(7));
  EXPECT_EQ(RecordBatch::Parse(batch.bytes())->newest(), Timestamp(7));
  RecordBatch run;
  run.AppendRun(batch.bytes(), 2, Timestamp(8));
  EXPECT_EQ(run.newest(), Timestamp(8));
  run.Append("c", "3", Version{Timestamp(2), 1});
  EXPECT_EQ(run.newest(), Timestamp(8));
  run.Clear();
  EXPECT_EQ(run.newest(), Timestamp());
}

TEST(RecordBatchTest, RefusesWhatIsNotABatch) {
  RecordBatch batch;
  batch.Append("key", "value", Version{Timestamp(1), 1});
  const std::string good = batch.bytes();
  // Every proper prefix is refused, except the empty one.
  EXPECT_TRUE(RecordBatch::Parse("").ok());
  for (size_t bytes = 1; bytes < good.size(); ++bytes) {
    EXPECT_EQ(RecordBatch::Parse(good.substr(0, bytes)).status(), ErrorCode::kCorruption) << bytes;
  }
  EXPECT_EQ(RecordBatch::Parse(good + "x").status(), ErrorCode::kCorruption);

  std::string no_key = good;
  no_key[0] = no_key[1] = '\0';
  EXPECT_EQ(RecordBatch::Parse(no_key).status(), ErrorCode::kCorruption);

  RecordBatch long_key;
  long_key.Append(std::string(kMaxKeyBytes + 1, 'k'), "", Version{});
  EXPECT_EQ(RecordBatch::Parse(long_key.bytes()).status(), ErrorCode::kCorruption);
  RecordBatch long_value;
  long_value.Append("k", std::string(kMaxValueBytes + 1, 'v'), Version{});
  const Result<RecordBatch> refused = RecordBatch::Parse(long_value.bytes());
  EXPECT_EQ(refused.status(), ErrorCode::kCorruption);
  EXPECT_NE(refused.status().message().find("1048576"), std::string::npos) << refused.status().ToString();
}

}  // namespace
}  // namespace deut
