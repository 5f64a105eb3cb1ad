#include "tc/log_format/record_codec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/base/status.h"
#include "common/coding/fixed.h"
#include "common/runtime/random.h"

namespace deut::tc {
namespace {

struct StringSink {
  std::string bytes;
  void Put(const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); }
};

template <typename Body>
std::string Encode(Lsn lsn, RecordType type, const Body& body) {
  const RecordWord word = MakeRecordWord(type, body.Bytes());
  StringSink sink;
  AppendU64(&sink.bytes, EncodeRecordWord(lsn, word));
  body.Write(sink);
  EXPECT_EQ(sink.bytes.size(), kRecordWordBytes + body.Bytes());
  sink.bytes.resize(word.bytes, '\0');
  return sink.bytes;
}

LogRecord Decode(Lsn lsn, std::string_view bytes) {
  LogRecord record;
  size_t needed = 0;
  const Status status = DecodeRecord(lsn, bytes, &record, &needed);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(needed, bytes.size());
  return record;
}

Status DecodeStatus(Lsn lsn, std::string_view bytes) {
  LogRecord record;
  size_t needed = 0;
  return DecodeRecord(lsn, bytes, &record, &needed);
}

std::string Hex(std::string_view bytes) { return absl::BytesToHexString({bytes.data(), bytes.size()}); }

std::vector<Update> SomeUpdates() {
  return {{.kind = LogEntryKind::kPut, .sequence = 1, .table = TableId(7), .key = "key-a", .value = "value"},
          {.kind = LogEntryKind::kDelete, .sequence = 2, .table = TableId(7), .key = "b", .value = {}},
          {.kind = LogEntryKind::kCreateTable, .sequence = 5, .table = TableId(9), .key = "orders", .value = {}},
          {.kind = LogEntryKind::kDropTable, .sequence = 6, .table = TableId(3), .key = "old", .value = {}},
          {.kind = LogEntryKind::kPut, .sequence = 7, .table = TableId(7), .key = "c", .value = {}}};
}

TEST(RecordCodec, CommitRoundTrip) {
  const std::vector<Update> updates = SomeUpdates();
  const std::vector<Lsn> chunks = {Lsn(64), Lsn(512)};
  const TransactionBody body{.timestamp = Timestamp(11), .epoch = TcEpoch(3), .updates = updates, .chunks = chunks};
  const std::string bytes = Encode(Lsn(4096), RecordType::kCommit, body);
  const LogRecord record = Decode(Lsn(4096), bytes);
  EXPECT_EQ(record.type, RecordType::kCommit);
  EXPECT_EQ(record.lsn, Lsn(4096));
  EXPECT_EQ(record.end, Lsn(4096 + bytes.size()));
  EXPECT_EQ(record.timestamp, Timestamp(11));
  EXPECT_EQ(record.epoch, TcEpoch(3));
  ASSERT_EQ(record.chunks.size(), 2u);
  EXPECT_EQ(record.chunks[1], Lsn(512));
  ASSERT_EQ(record.updates.size(), updates.size());
  size_t i = 0;
  for (const Update& update : record.updates) {
    EXPECT_EQ(update.kind, updates[i].kind);
    EXPECT_EQ(update.sequence, updates[i].sequence);
    EXPECT_EQ(update.table, updates[i].table);
    EXPECT_EQ(update.key, updates[i].key);
    EXPECT_EQ(update.value, updates[i].value);
    ++i;
  }
  EXPECT_EQ(i, updates.size());
}

TEST(RecordCodec, ANamedCommitIsACommitWithAnId) {
  const std::vector<Update> updates = SomeUpdates();
  const std::vector<Lsn> chunks = {Lsn(64)};
  const TransactionBody body{.timestamp = Timestamp(11),
                             .epoch = TcEpoch(3),
                             .updates = updates,
                             .chunks = chunks,
                             .id = {.high = 5, .low = 6}};
  EXPECT_EQ(body.commit_type(), RecordType::kNamedCommit);
  const LogRecord record = Decode(Lsn(4096), Encode(Lsn(4096), body.commit_type(), body));
  EXPECT_EQ(record.type, RecordType::kCommit);
  EXPECT_EQ(record.id, (TransactionId{.high = 5, .low = 6}));
  EXPECT_EQ(record.chunks.size(), 1u);
  EXPECT_EQ(record.updates.size(), updates.size());
  // Without an id it is the record type that logs have had from the beginning.
  const TransactionBody unnamed{.timestamp = Timestamp(11), .epoch = TcEpoch(3), .updates = updates, .chunks = chunks};
  EXPECT_EQ(unnamed.commit_type(), RecordType::kCommit);
  EXPECT_FALSE(Decode(Lsn(4096), Encode(Lsn(4096), RecordType::kCommit, unnamed)).id.given());
  EXPECT_TRUE(DecodeStatus(Lsn(4096), Encode(Lsn(4096), RecordType::kNamedCommit,
                                             BytesBody{std::string(kTransactionHeaderBytes + 15, '\0')})) ==
              ErrorCode::kCorruption);
  EXPECT_TRUE(DecodeStatus(Lsn(4096), Encode(Lsn(4096), RecordType::kNamedCommit,
                                             BytesBody{std::string(kTransactionHeaderBytes + 16, '\0')})) ==
              ErrorCode::kCorruption);
}

TEST(RecordCodec, SmallKindsRoundTrip) {
  const Lsn lsn(88);
  EXPECT_EQ(Decode(lsn, Encode(lsn, RecordType::kLowWater, BytesBody{EncodeTimestampBody(Timestamp(5))})).timestamp,
            Timestamp(5));
  EXPECT_EQ(
      Decode(lsn, Encode(lsn, RecordType::kReserveTimestamps, BytesBody{EncodeTimestampBody(Timestamp(6))})).timestamp,
      Timestamp(6));
  EXPECT_EQ(
      Decode(lsn, Encode(lsn, RecordType::kOutcomeHorizon, BytesBody{EncodeTimestampBody(Timestamp(7))})).timestamp,
      Timestamp(7));
  EXPECT_EQ(Decode(lsn, Encode(lsn, RecordType::kTrimmed, BytesBody{EncodeTrimmedBody(Lsn(8))})).trimmed, Lsn(8));
  const LogRecord start =
      Decode(lsn, Encode(lsn, RecordType::kEpochStart, BytesBody{EncodeEpochStartBody(TcId(1), TcEpoch(2), 3)}));
  EXPECT_EQ(start.tc, TcId(1));
  EXPECT_EQ(start.epoch, TcEpoch(2));
  EXPECT_EQ(start.nonce, 3u);
  const Cut cut{.lsn = Lsn(40), .segment = 2, .offset = 8192};
  EXPECT_EQ(Decode(lsn, Encode(lsn, RecordType::kEndOfEpoch, BytesBody{EncodeCutBody(cut)})).cut, cut);
  const RedoStart redo{
      .lsn = Lsn(48),
      .stable = {{.dc = DcId(4), .stable = {.commit = Lsn(56), .sequence = 9}}, {.dc = DcId(5), .stable = {}}}};
  EXPECT_EQ(Decode(lsn, Encode(lsn, RecordType::kRedoStart, BytesBody{EncodeRedoStartBody(redo)})).redo_start, redo);
  EXPECT_EQ(Decode(lsn, Encode(lsn, RecordType::kKnownDc, BytesBody{EncodeKnownDcBody(DcId(77))})).dc, DcId(77));
}

// The bytes on disk never change for a given version of the format.
TEST(RecordCodec, GoldenBytes) {
  const std::vector<Update> updates = {
      {.kind = LogEntryKind::kPut, .sequence = 1, .table = TableId(7), .key = "key", .value = "value"},
      {.kind = LogEntryKind::kDelete, .sequence = 2, .table = TableId(8), .key = "x", .value = {}}};
  const std::vector<Lsn> chunks = {Lsn(0x1000)};
  const TransactionBody body{
      .timestamp = Timestamp(0x0102030405060708), .epoch = TcEpoch(3), .updates = updates, .chunks = chunks};
  EXPECT_EQ(Hex(Encode(Lsn(0x2000), RecordType::kCommit, body)),
            "580000000107dc30080706050403020103000000000000000100000002000000001000000000000001000300050000000700"
            "0000010000006b657976616c7565020001000000000008000000020000007800000000000000");
  TransactionBody named = body;
  named.id = {.high = 0x1112131415161718, .low = 0x2122232425262728};
  EXPECT_EQ(Hex(Encode(Lsn(0x2000), RecordType::kNamedCommit, named)),
            "68000000090722a4080706050403020103000000000000000100000002000000181716151413121128272625242322210010000000"
            "00000001000300050000000700000001000000"
            "6b657976616c7565020001000000000008000000020000007800000000000000");
  EXPECT_EQ(Hex(Encode(Lsn(8), RecordType::kOutcomeHorizon, BytesBody{EncodeTimestampBody(Timestamp(258))})),
            "100000000a0003c70201000000000000");
  EXPECT_EQ(Hex(Encode(Lsn(8), RecordType::kTrimmed, BytesBody{EncodeTrimmedBody(Lsn(258))})),
            "100000000b008db60201000000000000");
  EXPECT_EQ(Hex(Encode(Lsn(8), RecordType::kLowWater, BytesBody{EncodeTimestampBody(Timestamp(258))})),
            "10000000030081080201000000000000");
  EXPECT_EQ(Hex(Encode(Lsn(8), RecordType::kEpochStart, BytesBody{EncodeEpochStartBody(TcId(1), TcEpoch(2), 3)})),
            "2000000005003575010000000000000002000000000000000300000000000000");
  EXPECT_EQ(Hex(Encode(Lsn(8), RecordType::kEndOfEpoch,
                       BytesBody{EncodeCutBody({.lsn = Lsn(1), .segment = 2, .offset = 3})})),
            "200000000600c3ae010000000000000002000000000000000300000000000000");
  EXPECT_EQ(
      Hex(Encode(Lsn(8), RecordType::kRedoStart,
                 BytesBody{EncodeRedoStartBody(
                     {.lsn = Lsn(1), .stable = {{.dc = DcId(2), .stable = {.commit = Lsn(3), .sequence = 4}}}})})),
      "3000000007002a8601000000000000000100000000000000020000000000000003000000000000000400000000000000");
}

TEST(RecordCodec, AsksForWhatIsMissing) {
  const std::string bytes = Encode(Lsn(8), RecordType::kLowWater, BytesBody{EncodeTimestampBody(Timestamp(258))});
  LogRecord record;
  size_t needed = 0;
  EXPECT_TRUE(DecodeRecord(Lsn(8), std::string_view(bytes).substr(0, 4), &record, &needed).ok());
  EXPECT_EQ(needed, kRecordWordBytes);
  EXPECT_TRUE(DecodeRecord(Lsn(8), std::string_view(bytes).substr(0, 8), &record, &needed).ok());
  EXPECT_EQ(needed, bytes.size());
  EXPECT_TRUE(DecodeRecord(Lsn(8), bytes + "more", &record, &needed).ok());
  EXPECT_EQ(needed, bytes.size());
}

TEST(RecordCodec, ARecordBelongsToItsPlace) {
  const std::string bytes = Encode(Lsn(8), RecordType::kLowWater, BytesBody{EncodeTimestampBody(Timestamp(258))});
  EXPECT_TRUE(DecodeStatus(Lsn(16), bytes) == ErrorCode::kCorruption);
  EXPECT_TRUE(DecodeStatus(Lsn(8 + (uint64_t{1} << 40)), bytes) == ErrorCode::kCorruption);
  EXPECT_TRUE(DecodeStatus(Lsn(8), std::string(64, '\0')) == ErrorCode::kCorruption);
}

std::string OneUpdate(const Update& update) {
  const std::vector<Update> updates = {update};
  return Encode(Lsn(8), RecordType::kCommit,
                TransactionBody{.timestamp = Timestamp(1), .epoch = TcEpoch(1), .updates = updates, .chunks = {}});
}

TEST(RecordCodec, ReadsTheOptionsOfATable) {
  for (const std::string_view options : {"", "\1", "\2", "\3"}) {
    const std::string bytes = OneUpdate(
        {.kind = LogEntryKind::kCreateTable, .sequence = 1, .table = TableId(4), .key = "t", .value = options});
    EXPECT_TRUE(DecodeStatus(Lsn(8), bytes).ok());
    EXPECT_EQ((*Decode(Lsn(8), bytes).updates.begin()).value, options);
  }
}

TEST(RecordCodec, RefusesWhatNoWriterProduces) {
  const std::string big_key(kMaxKeyBytes + 1, 'k');
  const std::string big_name(kMaxTableNameBytes + 1, 'n');
  const std::string big_value(kMaxValueBytes + 1, 'v');
  const std::vector<std::pair<Update, std::string>> cases = {
      {{.kind = LogEntryKind::kPut, .sequence = 0, .table = {}, .key = "k", .value = {}}, "sequence 0"},
      {{.kind = LogEntryKind::kPut, .sequence = 1, .table = {}, .key = "", .value = {}}, "key length"},
      {{.kind = LogEntryKind::kPut, .sequence = 1, .table = {}, .key = big_key, .value = {}}, "key length"},
      {{.kind = LogEntryKind::kPut, .sequence = 1, .table = {}, .key = "k", .value = big_value}, "value length"},
      {{.kind = LogEntryKind::kDelete, .sequence = 1, .table = {}, .key = "k", .value = "v"}, "delete with a value"},
      {{.kind = LogEntryKind::kCreateTable, .sequence = 1, .table = {}, .key = big_name, .value = {}}, "table name"},
      {{.kind = LogEntryKind::kDropTable, .sequence = 1, .table = {}, .key = "t", .value = "v"},
       "table update with an unknown value"},
      {{.kind = LogEntryKind::kCreateTable, .sequence = 1, .table = {}, .key = "t", .value = "\4"},
       "table update with an unknown value"},
      {{.kind = LogEntryKind::kCreateTable, .sequence = 1, .table = {}, .key = "t", .value = "\2\2"},
       "table update with an unknown value"},
      {{.kind = LogEntryKind::kLowWater, .sequence = 1, .table = {}, .key = "k", .value = {}}, "unknown update kind 5"},
      {{.kind = static_cast<LogEntryKind>(0), .sequence = 1, .table = {}, .key = "k", .value = {}},
       "unknown update kind 0"}};
  for (const auto& [update, message] : cases) {
    const Status status = DecodeStatus(Lsn(8), OneUpdate(update));
    EXPECT_TRUE(status == ErrorCode::kCorruption) << message;
    EXPECT_NE(status.message().find(message), std::string_view::npos) << status.ToString();
    EXPECT_NE(status.message().find("LSN 8"), std::string_view::npos) << status.ToString();
  }
  const std::vector<Update> falling = {{.sequence = 2, .table = {}, .key = "a", .value = {}},
                                       {.sequence = 2, .table = {}, .key = "b", .value = {}}};
  EXPECT_TRUE(
      DecodeStatus(Lsn(8), Encode(Lsn(8), RecordType::kCommit,
                                  TransactionBody{.timestamp = {}, .epoch = {}, .updates = falling, .chunks = {}})) ==
      ErrorCode::kCorruption);
  const std::vector<Lsn> own = {Lsn(8)};
  EXPECT_TRUE(
      DecodeStatus(Lsn(8), Encode(Lsn(8), RecordType::kCommit,
                                  TransactionBody{.timestamp = {}, .epoch = {}, .updates = {}, .chunks = own})) ==
      ErrorCode::kCorruption);
  const std::vector<Lsn> earlier = {Lsn(8)};
  EXPECT_TRUE(
      DecodeStatus(Lsn(16), Encode(Lsn(16), RecordType::kChunk,
                                   TransactionBody{.timestamp = {}, .epoch = {}, .updates = {}, .chunks = earlier})) ==
      ErrorCode::kCorruption);
}

// Damage behind a valid first word is detected, or only changes values. Nothing is read out of bounds (run under
// ASan).
TEST(RecordCodec, DamagedBodiesAreHarmless) {
  Random random(20240607);
  const std::vector<Update> updates = SomeUpdates();
  const std::vector<Lsn> chunks = {Lsn(64), Lsn(512)};
  const std::string whole =
      Encode(Lsn(4096), RecordType::kCommit,
             TransactionBody{.timestamp = Timestamp(11), .epoch = TcEpoch(3), .updates = updates, .chunks = chunks});
  size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = whole;
    for (uint64_t i = random.Below(3) + 1; i > 0; --i) {
      bytes[kRecordWordBytes + random.Below(bytes.size() - kRecordWordBytes)] = static_cast<char>(random.Next());
    }
    const auto copy =
        std::make_unique<char[]>(bytes.size());  // exactly as large, so that ASan detects a read one byte beyond
    std::memcpy(copy.get(), bytes.data(), bytes.size());
    LogRecord record;
    size_t needed = 0;
    const Status status = DecodeRecord(Lsn(4096), {copy.get(), bytes.size()}, &record, &needed);
    if (!status.ok()) {
      ++refused;
      continue;
    }
    uint64_t sum = 0;
    for (const Update& update : record.updates) sum += update.key.size() + update.value.size();
    EXPECT_LE(sum, bytes.size());
  }
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace deut::tc
