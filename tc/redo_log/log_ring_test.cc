#include "tc/redo_log/log_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/coding/fixed.h"
#include "common/runtime/random.h"

namespace deut::tc {
namespace {

BytesBody SomeBody(uint64_t seed, size_t bytes) {
  BytesBody body;
  Random random(seed);
  while (body.bytes.size() < bytes) body.bytes.push_back(static_cast<char>(random.Next()));
  return body;
}

// Passes bytes on in small uneven pieces, to exercise the ring's packing of words.
struct PiecemealBody {
  std::string bytes;
  uint64_t seed;
  size_t Bytes() const { return bytes.size(); }
  template <typename Sink>
  void Write(Sink& sink) const {
    Random random(seed);
    for (size_t at = 0; at < bytes.size();) {
      const size_t piece = std::min<size_t>(random.Below(30), bytes.size() - at);
      sink.Put(bytes.data() + at, piece);
      at += piece;
    }
  }
};

constexpr Lsn kStart{8};

class LogRingTest : public ::testing::Test {
 protected:
  // Takes the record at `lsn` as the consumer does. `body` gets its body without padding.
  static bool Take(LogRing& ring, Lsn* lsn, std::string* body) {
    RecordWord word;
    if (!ring.Peek(*lsn, &word)) return false;
    std::string bytes(word.bytes, '\0');
    ring.CopyOut(*lsn, word.bytes, bytes.data());
    *body = bytes.substr(kRecordWordBytes, word.body_bytes());
    *lsn = Lsn(lsn->value + word.bytes);
    return true;
  }

  Runtime& runtime_ = RealRuntime();
  WriterRole role_{RealRuntime(), nullptr};
};

TEST_F(LogRingTest, RecordsComeOutAsTheyWentInAcrossManyLaps) {
  LogRing ring(1024, kStart, runtime_, role_);
  Lsn consumed = kStart;
  Random random(7);
  for (uint64_t i = 0; i < 5000; ++i) {
    const PiecemealBody body{SomeBody(i, random.Below(200)).bytes, i};
    const RecordWord word = MakeRecordWord(RecordType::kCommit, body.Bytes());
    EXPECT_EQ(ring.Append(word, body), consumed);
    std::string taken;
    ASSERT_TRUE(Take(ring, &consumed, &taken));
    ASSERT_EQ(taken, body.bytes) << "record " << i;
    EXPECT_FALSE(Take(ring, &consumed, &taken));
    ring.Release(consumed);
  }
  EXPECT_EQ(ring.waits(), 0u);
}

TEST_F(LogRingTest, AFullRingShowsNothingBehindItsEnd) {
  LogRing ring(1024, kStart, runtime_, role_);
  Lsn consumed = kStart;
  std::string body;
  for (int i = 0; i < 8; ++i) ring.Append(MakeRecordWord(RecordType::kCommit, 120), SomeBody(i, 120));
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(Take(ring, &consumed, &body));
  // The next word belongs to the oldest record, one lap lower. It is not a record at this LSN.
  EXPECT_FALSE(Take(ring, &consumed, &body));
}

TEST_F(LogRingTest, AppendWaitsForSpaceAndForNothingElse) {
  LogRing ring(1024, kStart, runtime_, role_);
  Lsn consumed = kStart;
  for (int i = 0; i < 8; ++i) ring.Append(MakeRecordWord(RecordType::kCommit, 120), SomeBody(i, 120));
  std::atomic<bool> done{false};
  auto thread = runtime_.StartThread("appender", [&] {
    ring.Append(MakeRecordWord(RecordType::kCommit, 120), SomeBody(8, 120));
    done.store(true);
  });
  while (!ring.has_waiters()) runtime_.Yield();
  EXPECT_FALSE(done.load());
  std::string body;
  ASSERT_TRUE(Take(ring, &consumed, &body));
  ring.Release(consumed);
  thread->Join();
  EXPECT_TRUE(done.load());
  EXPECT_EQ(ring.waits(), 1u);
}

TEST_F(LogRingTest, ReadersSeeWholeRecordsOrNothing) {
  LogRing ring(1024, kStart, runtime_, role_);
  const BytesBody body = SomeBody(1, 120);
  const Lsn first = ring.Append(MakeRecordWord(RecordType::kCommit, 120), body);
  std::string copy(128, '\0');
  ASSERT_TRUE(ring.TryCopy(first, 128, copy.data()));
  EXPECT_EQ(copy.substr(8), body.bytes);
  ring.Release(Lsn(first.value + 128));
  EXPECT_FALSE(ring.TryCopy(first, 128, copy.data()));
  EXPECT_FALSE(ring.TryCopy(Lsn(first.value - 8), 8, copy.data()));
}

// Many appenders, one consumer, one reader, a small ring. Every record arrives once, whole, and in order per
// appender. The reader gets the right bytes, or an answer that they are gone.
TEST_F(LogRingTest, ManyAppenders) {
  constexpr int kAppenders = 4;
  constexpr uint64_t kRecords = 4000;
  LogRing ring(4096, kStart, runtime_, role_);
  std::atomic<uint64_t> consumed_lsn{kStart.value};
  std::atomic<bool> stop{false};
  std::vector<std::unique_ptr<Thread>> appenders;
  for (int a = 0; a < kAppenders; ++a) {
    appenders.push_back(runtime_.StartThread("appender", [&ring, a] {
      Random random(static_cast<uint64_t>(a));
      for (uint64_t i = 0; i < kRecords; ++i) {
        BytesBody body;
        AppendU64(&body.bytes, static_cast<uint64_t>(a));
        AppendU64(&body.bytes, i);
        body.bytes.append(random.Below(100), static_cast<char>(i));
        ring.Append(MakeRecordWord(RecordType::kCommit, body.Bytes()), body);
      }
    }));
  }
  auto reader = runtime_.StartThread("reader", [&] {
    std::string copy(4096, '\0');
    uint64_t copied = 0;
    while (!stop.load()) {
      const uint64_t to = consumed_lsn.load();
      const uint64_t from = kStart.value + (copied * 64) % (to - kStart.value + 1) / 8 * 8;
      if (to - from > 4096 || to == from) {
        ++copied;
        continue;
      }
      ring.TryCopy(Lsn(from), to - from, copy.data());
      ++copied;
    }
  });
  std::vector<uint64_t> next(kAppenders, 0);
  Lsn consumed = kStart;
  for (uint64_t taken = 0; taken < kAppenders * kRecords;) {
    std::string body;
    if (!Take(ring, &consumed, &body)) {
      runtime_.Yield();
      continue;
    }
    const uint64_t appender = LoadU64(body.data());
    const uint64_t i = LoadU64(body.data() + 8);
    ASSERT_LT(appender, static_cast<uint64_t>(kAppenders));
    ASSERT_EQ(i, next[appender]++);
    ASSERT_EQ(body.substr(16), std::string(body.size() - 16, static_cast<char>(i)));
    consumed_lsn.store(consumed.value);
    // Half a lap stays readable.
    if (consumed.value > kStart.value + 2048) ring.Release(Lsn(consumed.value - 2048));
    if (ring.has_waiters()) ring.Release(consumed);
    ++taken;
  }
  stop.store(true);
  EXPECT_EQ(consumed, ring.tail());
}

}  // namespace
}  // namespace deut::tc
