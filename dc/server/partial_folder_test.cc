// Data folders with missing or damaged files, all cases that a script can enumerate. At every start, each folder is
// right or is refused with a message, and a refusal changes nothing. "Right" is the property on which the TC relies:
// the DC has everything that it has reported as stable. With the rest of the log it has everything, also after two
// more checkpoints.
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/segment_format.h"
#include "dc/server/data_component_server.h"
#include "dc/server/folder_fixture.h"
#include "dc/server/server_fixture.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"

namespace deut::dc {
namespace {

constexpr int kKeys = 200;
constexpr int kStarts = 12;
constexpr int kRounds = 3;  // each in an incarnation of its own, with a checkpoint

std::string KeyOf(int key) { return Concat("key", 1000 + key); }
bool IsOfRound(int key, int round) { return key % (1 << (2 * round)) == 0; }
std::string ValueOf(int key) {
  int last = 0;
  for (int round = 0; round < kRounds; ++round) last = IsOfRound(key, round) ? round : last;
  return Concat("value ", key, " of round ", last);
}
void AppendRound(int round, TestLog* log) {
  if (round == 0) log->Create();
  for (int key = 0; key < kKeys; ++key) {
    if (IsOfRound(key, round)) log->Put(KeyOf(key), Concat("value ", key, " of round ", round));
  }
}

class PartialFolderTest : public ::testing::Test {
 protected:
  PartialFolderTest() {
    const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
    TestLog log;
    for (int round = 0; round < kRounds; ++round) {
      const std::unique_ptr<DataComponentServer> server = StartServer(*storage);
      const Sender tc = SayHello(*server, 1 + static_cast<uint64_t>(round));
      AppendRound(round, &log);
      CountingListener listener;
      auto stream = server->OpenApplyLog(tc, &listener, kNoDeadline);
      EXPECT_TRUE((*stream)->Send(log.Take(), kNoDeadline).ok());
      const bool one = round == 1;  // so that the two kept checkpoints differ
      EXPECT_TRUE(server->records().Checkpoint([&] { return log.end(); }).ok());
      if (!one) {
        EXPECT_TRUE(server->TakeCheckpoints(log.end()).ok());
      }
      told_ = server->Hello(Inquiry(), kNoDeadline)->stable;
      dc_ = server->id();
    }
    whole_ = ReadFolder(*storage);
    // A segment of an incarnation that took no checkpoint.
    std::string left_over(kSegmentHeaderBytes, '\0');
    EncodeSegmentHeader({.kind = SegmentKind::kBase, .number = 0xff, .dc = dc_, .capacity_bytes = 1 << 20},
                        left_over.data());
    whole_["pages/base-0000000000ff.seg"] = left_over + std::string(8192, 'x');
  }

  static HelloRequest Inquiry() {
    HelloRequest inquiry = HelloOf(1);
    inquiry.inquiry = true;
    return inquiry;
  }

  // Returns an empty string if the folder is right, or is refused as it must be.
  std::string Judge(const std::string& name, const FolderFiles& files, bool with_pages = true) {
    const std::unique_ptr<Storage> storage = StorageWith(files, with_pages);
    std::string refusal;
    for (int start = 0; start < kStarts; ++start) {
      auto server = OpenServer(*storage);
      if (start > 0 && server.ok() != refusal.empty()) return Concat("start ", start, " answers something else");
      if (server.ok()) {
        if (const std::string wrong = JudgeAccepted(**server, start); !wrong.empty()) return wrong;
        continue;
      }
      const std::string why(server.status().message());
      if (start > 0 && why != refusal) return Concat("start ", start, " says something else: ", why);
      refusal = why;
      if (server.status() != ErrorCode::kCorruption) return Concat("not called a corruption: ", why);
      if (why.find(kServerFolder) == std::string::npos) return Concat("no file is named: ", why);
      if (ReadFolder(*storage) != files)
        return Concat("start ", start, " was refused and has changed something: ", why);
      if (*storage->Exists(Concat(kServerFolder, "/pages")) != StorageHasPages(files, with_pages))
        return "a refused start has made the folder of the pages";
    }
    (refusal.empty() ? accepted_ : refused_) += 1;
    std::cout << (refusal.empty() ? "accepted " : "refused  ") << name << (refusal.empty() ? "" : ": ")
              << refusal.substr(0, 160) << "\n";
    return {};
  }

  static bool StorageHasPages(const FolderFiles& files, bool with_pages) {
    for (const auto& [name, bytes] : files) with_pages |= name.starts_with("pages/");
    return with_pages;
  }

  std::string JudgeAccepted(DataComponentServer& server, int start) {
    const auto hello = server.Hello(Inquiry(), kNoDeadline);
    if (hello->stable < told_) {
      return Concat("start ", start, " has less than was told to be stable: ", hello->stable.commit.value, " of ",
                    told_.commit.value);
    }
    const Sender tc = SayHello(server, 100 + static_cast<uint64_t>(start));
    TestLog log;
    for (int round = 0; round < kRounds; ++round) AppendRound(round, &log);
    CountingListener listener;
    auto stream = server.OpenApplyLog(tc, &listener, kNoDeadline);
    if (const Status sent = (*stream)->Send(log.Take(), kNoDeadline); !sent.ok()) return sent.ToString();
    for (int key = 0; key < kKeys; ++key) {
      const ReadAnswer read = Read(server, tc, KeyOf(key));
      if (!read.status.ok()) return read.status.ToString();
      if (read.value != ValueOf(key))
        return Concat("start ", start, ": ", KeyOf(key), " is ", read.value.value_or("-"));
    }
    for (int i = 0; i < 2; ++i) {
      const Status taken = server.records().Checkpoint([&] { return log.end(); });
      if (!taken.ok()) return taken.ToString();
    }
    return {};
  }

  FolderFiles whole_;
  Position told_;
  DcId dc_;
  int accepted_ = 0;
  int refused_ = 0;
};

struct Damage {
  const char* name;
  std::function<void(FolderFiles*, const std::string&)> make;
};
const Damage kDamages[] = {
    {"absent", [](FolderFiles* files, const std::string& name) { files->erase(name); }},
    {"empty", [](FolderFiles* files, const std::string& name) { (*files)[name].clear(); }},
    {"cut to the half",
     [](FolderFiles* files, const std::string& name) { (*files)[name].resize((*files)[name].size() / 2); }},
    {"with a first block of zeros",
     [](FolderFiles* files, const std::string& name) {
       std::string& bytes = (*files)[name];
       bytes.replace(0, std::min<size_t>(bytes.size(), 4096), std::string(std::min<size_t>(bytes.size(), 4096), '\0'));
     }},
};

TEST_F(PartialFolderTest, AFolderWithOneDamageIsRightOrRefused) {
  ASSERT_EQ(Judge("whole", whole_), "");
  for (const auto& [name, bytes] : whole_) {
    for (const Damage& damage : kDamages) {
      const std::string what = Concat(name, " ", damage.name);
      FolderFiles files = whole_;
      damage.make(&files, name);
      EXPECT_EQ(Judge(what, files), "") << what;
    }
  }
  EXPECT_GE(accepted_, 10);
  EXPECT_GE(refused_, 10);
}

TEST_F(PartialFolderTest, AFolderWithoutTwoFilesIsRightOrRefused) {
  for (auto first = whole_.begin(); first != whole_.end(); ++first) {
    for (auto second = std::next(first); second != whole_.end(); ++second) {
      const std::string what = Concat("without ", first->first, " and ", second->first);
      FolderFiles files = whole_;
      files.erase(first->first);
      files.erase(second->first);
      EXPECT_EQ(Judge(what, files), "") << what;
    }
  }
  EXPECT_GE(accepted_, 2);
  EXPECT_GE(refused_, 10);
}

// S2: without the check, each of these would pass for a new folder.
TEST_F(PartialFolderTest, AFolderWithoutItsCheckpointsOrPagesIsRefused) {
  FolderFiles files = whole_;
  std::erase_if(files, [](const auto& file) { return file.first.starts_with("pages/checkpoint-"); });
  EXPECT_EQ(Judge("without checkpoints", files), "");
  std::erase_if(files, [](const auto& file) { return file.first.starts_with("pages/"); });
  EXPECT_EQ(Judge("without a file in pages", files), "");
  EXPECT_EQ(Judge("without pages", files, /*with_pages=*/false), "");
  files.erase("dc_state");
  EXPECT_EQ(Judge("with its owner alone", files, /*with_pages=*/true), "");
  EXPECT_EQ(refused_, 4);
}

}  // namespace
}  // namespace deut::dc
