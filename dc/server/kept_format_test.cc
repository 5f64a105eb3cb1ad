// Data folders of earlier programs are kept in dc/server/format_samples, by number: a new one for each change of a
// format's version. This test reads them, today and in later versions. With the version of any of its files changed,
// each folder is refused with that file's name, and nothing changes on disk (protocol/docs/versions.md). The newest
// sample has the versions that are written today.
// DEUT_WRITE_SAMPLE=FOLDER writes a sample: only for a new version, beside the earlier ones.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/compression.h"
#include "common/base/concat.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/server/data_component_server.h"
#include "dc/server/folder_fixture.h"
#include "dc/server/server_fixture.h"
#include "gtest/gtest.h"
#include "protocol/table_options.h"

namespace deut::dc {
namespace {

namespace fs = std::filesystem;

constexpr char kSamples[] = "dc/server/format_samples";

using Files = FolderFiles;

// Returns the samples by number, the oldest first.
std::map<int, fs::path> Samples() {
  std::map<int, fs::path> samples;
  for (const auto& entry : fs::directory_iterator(kSamples)) {
    samples[std::stoi(entry.path().filename().string())] = entry.path();
  }
  EXPECT_GE(samples.size(), 4u);
  return samples;
}

Files ReadSample(const fs::path& sample) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(sample)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::stringstream bytes;
    bytes << in.rdbuf();
    files[entry.path().lexically_relative(sample).string()] = bytes.str();
  }
  return files;
}

// All versions share the position of the version and the range of the checksum.
std::string OfVersion(const std::string& name, std::string bytes, uint16_t version) {
  if (name == "dc_state" || name == "OWNER") {
    StoreU32(bytes.data() + 8, version);
    bytes.resize(bytes.size() - 4);
    AppendU32(&bytes, Crc32c(bytes));
  } else if (name.find("checkpoint-") != std::string::npos) {
    constexpr size_t kBlock = 64 << 10;
    StoreU16(bytes.data() + 8, version);
    StoreU32(bytes.data() + 4, Crc32c(std::string_view(bytes).substr(8, kBlock - 8)));
  } else {
    constexpr size_t kHeader = 4096;
    StoreU16(bytes.data() + 8, version);
    StoreU32(bytes.data() + 12, 0);
    StoreU32(bytes.data() + 12, Crc32c(std::string_view(bytes).substr(0, kHeader)));
  }
  return bytes;
}

// Returns a folder as this program leaves it, with a table that has these options.
Files MakeFolder(const TableOptions& options = {}) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  const std::unique_ptr<DataComponentServer> server = StartServer(*storage);
  const Sender tc = SayHello(*server, 3, 4);
  CountingListener listener;
  auto stream = server->OpenApplyLog(tc, &listener, kNoDeadline);
  TestLog log;
  log.Entry(LogEntryKind::kCreateTable, 1, "accounts", EncodeTableOptions(options));
  constexpr TableId kDropped{8};
  log.Entry(LogEntryKind::kCreateTable, 1, "dropped", {}, kDropped);
  for (int i = 0; i < 30; ++i) log.Put(Concat("key", 10 + i), Concat("value ", i));
  log.Entry(LogEntryKind::kDropTable, 1000, "dropped", {}, kDropped);
  EXPECT_TRUE((*stream)->Send(log.Take(), kNoDeadline).ok());
  EXPECT_TRUE(server->TakeCheckpoints(log.end()).ok());
  // A few updates of one page make a delta part.
  EXPECT_TRUE((*stream)->Send(log.Delete("key11").Put("key12", "changed").Take(), kNoDeadline).ok());
  EXPECT_TRUE(server->TakeCheckpoints(log.end()).ok());
  return ReadFolder(*storage);
}

void WriteSample(const std::string& folder) {
  for (const auto& [name, bytes] : MakeFolder()) {
    fs::create_directories((fs::path(folder) / name).parent_path());
    std::ofstream(fs::path(folder) / name, std::ios::binary) << bytes;
  }
}

// Returns the versions of each kind of file, and of the parts in segments.
std::map<std::string, uint32_t> VersionsOf(const Files& files) {
  std::map<std::string, uint32_t> versions;
  for (const auto& [name, bytes] : files) {
    const std::string kind = name.substr(0, name.find('-'));
    versions[kind] = name.starts_with("pages/") ? LoadU16(bytes.data() + 8) : LoadU32(bytes.data() + 8);
    constexpr size_t kFirstPart = 4096;
    if (name.ends_with(".seg")) versions[kind + " part"] = LoadU16(bytes.data() + kFirstPart + 8);
  }
  return versions;
}

// This test fails if a version is raised without a new sample.
TEST(KeptFormatTest, TheNewestSampleIsOfTodaysVersions) {
  const auto today = VersionsOf(MakeFolder());
  EXPECT_EQ(today.size(), 7u);
  EXPECT_EQ(VersionsOf(ReadSample(Samples().rbegin()->second)), today);
}

void ExpectIsRead(const Files& sample) {
  for (const char* kind : {"dc_state", "pages/checkpoint-", "pages/base-", "pages/delta-"}) {
    const auto found = sample.lower_bound(kind);
    EXPECT_TRUE(found != sample.end() && found->first.starts_with(kind)) << kind;
  }
  const std::unique_ptr<Storage> storage = StorageWith(sample);
  const auto server = OpenServer(*storage);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  HelloRequest inquiry = HelloOf(1);
  inquiry.inquiry = true;
  EXPECT_EQ((*server)->Hello(inquiry, kNoDeadline)->obeyed, (ObeyedTc{TcId(5), TcEpoch(3), 4}));
  const Sender tc = SayHello(**server, 3, 4);
  for (int i = 0; i < 30; ++i) {
    const ReadAnswer read = Read(**server, tc, Concat("key", 10 + i));
    EXPECT_TRUE(read.status.ok());
    EXPECT_EQ(read.value.value_or("-"), i == 1 ? "-" : i == 2 ? "changed" : Concat("value ", i)) << i;
  }
}

TEST(KeptFormatTest, TheSamplesAreRead) {
  if (const char* folder = std::getenv("DEUT_WRITE_SAMPLE")) return WriteSample(folder);
  for (const auto& [number, folder] : Samples()) {
    SCOPED_TRACE(number);
    ExpectIsRead(ReadSample(folder));
  }
}

void ExpectOtherVersionsAreRefused(const Files& sample) {
  ASSERT_FALSE(sample.empty());
  for (const auto& [name, bytes] : sample) {
    SCOPED_TRACE(name);
    Files changed = sample;
    changed[name] = OfVersion(name, bytes, 40);
    const std::unique_ptr<Storage> storage = StorageWith(changed);
    for (int start = 0; start < 12; ++start) {
      const auto refused = OpenServer(*storage);
      ASSERT_FALSE(refused.ok()) << "start " << start;
      EXPECT_EQ(refused.status(), ErrorCode::kVersionMismatch) << refused.status().ToString();
      for (const std::string& part : {name, std::string("format version 40"), std::string("this program knows")})
        EXPECT_NE(refused.status().message().find(part), std::string::npos) << refused.status().ToString();
      EXPECT_TRUE(ReadFolder(*storage) == changed) << "start " << start;
    }
  }
}

TEST(KeptFormatTest, EachFileOfAnotherVersionIsRefusedByNameAndNothingIsChanged) {
  for (const auto& [number, folder] : Samples()) {
    SCOPED_TRACE(number);
    ExpectOtherVersionsAreRefused(ReadSample(folder));
  }
}

// The versions of the files say so: an earlier program refuses them by name. Without a compressed table they are those
// of the newest sample (TheNewestSampleIsOfTodaysVersions).
TEST(KeptFormatTest, AFolderWithACompressedTableHasVersionsOfItsOwn) {
  for (const Compression compression : {Compression::kLz4, Compression::kZstd}) {
    const Files folder = MakeFolder({.compression = compression});
    std::map<std::string, uint32_t> versions = VersionsOf(folder);
    EXPECT_EQ(versions["pages/checkpoint"], 5u);
    EXPECT_EQ(versions["pages/base"], 3u);
    EXPECT_EQ(versions["pages/base part"], 3u);
    EXPECT_EQ(versions["pages/delta"], 2u);  // so short a part is not compressed
    EXPECT_EQ(versions["pages/delta part"], 2u);
    ExpectIsRead(folder);
    ExpectOtherVersionsAreRefused(folder);
  }
}

// Files of another version are also refused if no checkpoint names them. A later program may have left them, and they
// would be removed after the next checkpoint.
TEST(KeptFormatTest, FilesOfAnotherVersionThatNobodyNamesAreRefusedToo) {
  const Files sample = ReadSample(Samples().rbegin()->second);
  for (const auto& [name, bytes] : sample) {
    if (!name.starts_with("pages/")) continue;
    const std::string stray =
        Concat(name.substr(0, name.find('-') + 1), "0000000000ff", name.ends_with(".seg") ? ".seg" : ".tmp");
    SCOPED_TRACE(stray);
    Files changed = sample;
    changed[stray] = OfVersion(name, bytes, 40);
    const std::unique_ptr<Storage> storage = StorageWith(changed);
    const auto refused = OpenServer(*storage);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status(), ErrorCode::kVersionMismatch) << refused.status().ToString();
    EXPECT_NE(refused.status().message().find(stray), std::string::npos) << refused.status().ToString();
    EXPECT_TRUE(ReadFolder(*storage) == changed);
  }
}

// Damage and missing files are refused at every start of the DC, with the same message and unchanged bytes.
TEST(KeptFormatTest, DamagedOrMissingFilesAreRefusedForEverAndNothingIsChanged) {
  const Files sample = ReadSample(Samples().rbegin()->second);
  struct Case {
    const char* prefix;  // prefix of the files that are changed
    bool damaged;        // false: missing
  };
  for (const Case& each : {Case{"dc_state", true}, Case{"dc_state", false}, Case{"pages/checkpoint-", true},
                           Case{"pages/base-", false}, Case{"OWNER", true}}) {
    SCOPED_TRACE(Concat(each.prefix, each.damaged ? " damaged" : " missing"));
    Files changed = sample;
    for (const auto& [name, bytes] : sample) {
      if (!name.starts_with(each.prefix)) continue;
      if (each.damaged) {
        changed[name][17] = static_cast<char>(bytes[17] ^ 0x40);
      } else {
        changed.erase(name);
      }
    }
    ASSERT_FALSE(changed == sample);
    const std::unique_ptr<Storage> storage = StorageWith(changed);
    std::string sentence;
    for (int start = 0; start < 12; ++start) {
      const auto refused = OpenServer(*storage);
      ASSERT_FALSE(refused.ok()) << "start " << start;
      EXPECT_EQ(refused.status(), ErrorCode::kCorruption) << refused.status().ToString();
      if (start == 0) sentence = refused.status().message();
      EXPECT_EQ(refused.status().message(), sentence);
      ASSERT_TRUE(ReadFolder(*storage) == changed) << "start " << start;
    }
  }
}

// The file has no version that this program knows, and no damage that it recognizes. It stays, whatever else is
// removed.
TEST(KeptFormatTest, FilesThatAreNotUnderstoodAreNeverRemoved) {
  Files files = ReadSample(Samples().rbegin()->second);
  const std::vector<std::string> strays = {"pages/base-0000000000ff.seg", "pages/delta-0000000000fe.seg",
                                           "pages/checkpoint-0000000000fd.tmp", "pages/checkpoint-000000000000"};
  for (const std::string& stray : strays) files[stray] = std::string(9000, 'x');
  const std::unique_ptr<Storage> storage = StorageWith(files);
  auto server = OpenServer(*storage);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  const Sender tc = SayHello(**server, 4);
  CountingListener listener;
  auto stream = (*server)->OpenApplyLog(tc, &listener, kNoDeadline);
  const auto hello = (*server)->Hello(HelloOf(4), kNoDeadline);
  for (int checkpoint = 0; checkpoint < 3; ++checkpoint) {
    LogBatch batch;
    batch.from = batch.to = checkpoint == 0 ? hello->applied : listener.last.applied;
    LogEntryView entry;
    entry.kind = LogEntryKind::kPut;
    entry.position = Position{Lsn(batch.from.commit.value + 64), 1};
    entry.timestamp = Timestamp(1000 + static_cast<uint64_t>(checkpoint));
    entry.table = kTable;
    entry.key = "key";
    entry.value = "v";
    batch.Append(entry);
    batch.to = entry.position;
    ASSERT_TRUE((*stream)->Send(batch, kNoDeadline).ok());
    ASSERT_TRUE((*server)->TakeCheckpoints(batch.to).ok());
  }
  stream->reset();
  server->reset();
  const Files now = ReadFolder(*storage);
  for (const std::string& stray : strays) EXPECT_TRUE(now.contains(stray) && now.at(stray) == files[stray]) << stray;
}

}  // namespace
}  // namespace deut::dc
