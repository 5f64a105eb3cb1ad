#include "dc/server/state_file.h"

#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr char kDirectory[] = "/data";

DcState StateOf(uint64_t incarnation, uint64_t epoch = 0) {
  return DcState{DcId(0x1122334455667788),
                 IncarnationNumber(incarnation),
                 DcIncarnation(incarnation * 0x9e3779b97f4a7c15),
                 FenceState{TcId(epoch == 0 ? 0 : 9), TcEpoch(epoch), epoch * 3},
                 CheckpointNumber(epoch),
                 Lsn(epoch * 1000)};
}

void WriteFile(Storage& storage, const std::string& path, std::string_view bytes) {
  OpenOptions options;
  options.create = true;
  options.writable = true;
  auto file = storage.Open(path, options);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Truncate(0).ok());
  ASSERT_TRUE((*file)->Write(0, bytes.data(), bytes.size()).ok());
}

TEST(StateFileTest, GoldenBytes) {
  const DcState state{DcId(0x0102030405060708), IncarnationNumber(3),
                      DcIncarnation(0x4455),    FenceState{TcId(0x11), TcEpoch(0x22), 0x33},
                      CheckpointNumber(0x66),   Lsn(0x667788)};
  std::string expected(
      "DEUTDCST"
      "\x03\x00\x00\x00"
      "\x54\x00\x00\x00"
      "\x08\x07\x06\x05\x04\x03\x02\x01"
      "\x03\x00\x00\x00\x00\x00\x00\x00"
      "\x11\x00\x00\x00\x00\x00\x00\x00"
      "\x22\x00\x00\x00\x00\x00\x00\x00"
      "\x33\x00\x00\x00\x00\x00\x00\x00"
      "\x55\x44\x00\x00\x00\x00\x00\x00"
      "\x66\x00\x00\x00\x00\x00\x00\x00"
      "\x88\x77\x66\x00\x00\x00\x00\x00",
      80);
  AppendU32(&expected, Crc32c(expected));
  EXPECT_EQ(EncodeDcState(state), expected);
  const auto decoded = DecodeDcState(expected, "dc_state");
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(*decoded, state);
}

TEST(StateFileTest, EveryDamageIsRefusedAndNothingIsChanged) {
  const std::string good = EncodeDcState(StateOf(4, 2));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x40);
    const auto decoded = DecodeDcState(bad, "/data/dc_state");
    ASSERT_FALSE(decoded.ok()) << i;
    EXPECT_EQ(decoded.status(), ErrorCode::kCorruption) << i;
    EXPECT_NE(decoded.status().message().find("/data/dc_state: offset"), std::string::npos);
  }
  const auto storage = NewMemoryStorage(RealRuntime());
  ASSERT_TRUE(storage->CreateDirectory(kDirectory).ok());
  for (const std::string& bad : {std::string(), good.substr(0, 30), good + "x", std::string(60, '\0')}) {
    WriteFile(*storage, "/data/dc_state", bad);
    EXPECT_EQ(StateFile(*storage, kDirectory).Load().status(), ErrorCode::kCorruption);
    auto file = storage->Open("/data/dc_state", OpenOptions{});
    EXPECT_EQ(*(*file)->Size(), bad.size());
  }
}

TEST(StateFileTest, NewAndStrangeDirectories) {
  const auto storage = NewMemoryStorage(RealRuntime());
  ASSERT_TRUE(storage->CreateDirectory(kDirectory).ok());
  StateFile file(*storage, kDirectory);
  EXPECT_EQ(*file.Load(), std::nullopt);
  WriteFile(*storage, "/data/lock", "");
  WriteFile(*storage, "/data/dc_state.new", "half");
  EXPECT_EQ(*file.Load(), std::nullopt);
  WriteFile(*storage, "/data/segment-1", "records");
  const auto refused = file.Load();
  EXPECT_EQ(refused.status(), ErrorCode::kCorruption);
  EXPECT_NE(refused.status().message().find("segment-1"), std::string::npos);
  EXPECT_TRUE(*storage->Exists("/data/segment-1"));
}

// Files of earlier releases are read. They contain no incarnation, so it is 0.
TEST(StateFileTest, ReadsVersion1) {
  const std::string bytes(
      "DEUTDCST"
      "\x01\x00\x00\x00"
      "\x3c\x00\x00\x00"
      "\x08\x07\x06\x05\x04\x03\x02\x01"
      "\x03\x00\x00\x00\x00\x00\x00\x00"
      "\x11\x00\x00\x00\x00\x00\x00\x00"
      "\x22\x00\x00\x00\x00\x00\x00\x00"
      "\x33\x00\x00\x00\x00\x00\x00\x00"
      "\x06\x18\x15\xb3",
      60);
  const auto decoded = DecodeDcState(bytes, "dc_state");
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(*decoded, (DcState{DcId(0x0102030405060708), IncarnationNumber(3), DcIncarnation(),
                               FenceState{TcId(0x11), TcEpoch(0x22), 0x33}}));
}

// Files of version 2 do not state which checkpoints there were.
TEST(StateFileTest, ReadsVersion2) {
  const DcState state{DcId(0x0102030405060708), IncarnationNumber(3), DcIncarnation(0x4455),
                      FenceState{TcId(0x11), TcEpoch(0x22), 0x33}};
  std::string bytes = EncodeDcState(state);
  bytes.resize(64);
  StoreU32(bytes.data() + 8, 2);
  StoreU32(bytes.data() + 12, 68);
  AppendU32(&bytes, Crc32c(bytes));
  const auto decoded = DecodeDcState(bytes, "dc_state");
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(*decoded, state);
}

// Returns an intact state as a later program would write it: another version, other contents, another length.
std::string OfAnotherVersion(uint32_t version, size_t bytes) {
  std::string other = EncodeDcState(StateOf(4, 2));
  other.resize(bytes - sizeof(uint32_t), '\x5a');
  StoreU32(other.data() + 8, version);
  StoreU32(other.data() + 12, static_cast<uint32_t>(bytes));
  AppendU32(&other, Crc32c(other));
  return other;
}

TEST(StateFileTest, AnotherVersionIsRefusedByNameAndNothingIsChanged) {
  for (const char* path : {"/data/dc_state", "/data/dc_state.new"}) {
    for (const size_t bytes : {size_t{24}, size_t{68}, size_t{500}, size_t{4096}}) {
      const auto storage = NewMemoryStorage(RealRuntime());
      ASSERT_TRUE(storage->CreateDirectory(kDirectory).ok());
      const std::string other = OfAnotherVersion(7, bytes);
      WriteFile(*storage, path, other);
      const auto refused = StateFile(*storage, kDirectory).Load();
      EXPECT_EQ(refused.status(), ErrorCode::kVersionMismatch) << refused.status().ToString();
      const std::string expected = Concat(path, ": offset 8: format version 7, this program knows 1 to 3");
      EXPECT_NE(refused.status().message().find(expected), std::string::npos) << refused.status().ToString();
      const auto file = storage->Open(path, OpenOptions{});
      std::string now(bytes + 1, '\0');
      now.resize(*(*file)->Read(0, now.data(), now.size()));
      EXPECT_EQ(now, other);
    }
  }
}

// A crash at every step of replacing the state: a state whose Save returned OK is found, and no state is ever torn.
TEST(StateFileTest, CrashesAtEveryStep) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    for (uint64_t operations = 1; operations <= 12; ++operations) {
      SCOPED_TRACE(Concat("seed ", seed, ", crash after ", operations));
      FaultyDisk disk(RealRuntime(), seed);
      uint64_t durable = 0;
      uint64_t tried = 0;
      {
        const auto storage = disk.Mount();
        ASSERT_TRUE(storage->CreateDirectory(kDirectory).ok());
        StateFile file(*storage, kDirectory);
        ASSERT_TRUE(file.Save(StateOf(durable = tried = 1)).ok());
        disk.CrashAfter(operations);
        while (disk.crashes() == 0) {
          if (file.Save(StateOf(++tried)).ok()) durable = tried;
        }
      }
      const auto storage = disk.Mount();
      const auto found = StateFile(*storage, kDirectory).Load();
      ASSERT_TRUE(found.ok()) << found.status().ToString();
      ASSERT_TRUE(found->has_value());
      ASSERT_GE((*found)->number.value, durable);
      ASSERT_LE((*found)->number.value, tried);
    }
  }
}

}  // namespace
}  // namespace deut::dc
