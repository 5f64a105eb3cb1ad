#include "integration/stale/stale_case.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "common/base/concat.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"

namespace deut::stale {
namespace {

namespace fs = std::filesystem;

constexpr uint16_t kLaterVersion = 40;

struct ReplacementName {
  Replacement replacement;
  const char* name;
  bool of_dc, of_tc;  // whose folders it is done to
};

constexpr ReplacementName kReplacements[] = {
    {Replacement::kOlder, "Older", true, true},
    {Replacement::kOlderWhileItRan, "OlderWhileItRan", true, true},
    {Replacement::kForeign, "Foreign", true, true},
    {Replacement::kEmpty, "Empty", true, true},
    {Replacement::kWithoutState, "WithoutState", true, false},
    {Replacement::kWithoutCheckpoints, "WithoutCheckpoints", true, false},
    {Replacement::kWithoutASegment, "WithoutASegment", true, false},
    {Replacement::kStateOfOtherVersion, "StateOfOtherVersion", true, false},
    {Replacement::kCheckpointOfOtherVersion, "CheckpointOfOtherVersion", true, false},
    {Replacement::kSegmentOfOtherVersion, "SegmentOfOtherVersion", true, true},
    {Replacement::kOldestSegmentOfOtherVersion, "OldestSegmentOfOtherVersion", false, true},
    {Replacement::kSpareOfOtherVersion, "SpareOfOtherVersion", false, true},
    {Replacement::kSpilledRunOfOtherVersion, "SpilledRunOfOtherVersion", false, true},
    {Replacement::kOwnerOfOtherVersion, "OwnerOfOtherVersion", true, true},
};

// The files of a folder whose names begin like this, in order.
std::vector<fs::path> FilesIn(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(prefix)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::vector<fs::path> PagesFiles(const std::string& folder, std::string_view prefix) {
  return FilesIn(fs::path(folder) / "pages", prefix);
}

std::string BytesOfFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

void WriteFile(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Where each format has version and checksum, in every version (protocol/docs/versions.md).
void ChangeVersion(const fs::path& path) {
  std::string bytes = BytesOfFile(path);
  StoreU16(bytes.data() + 8, kLaterVersion);
  constexpr size_t kFirstBlock = 4096;
  const std::string name = path.filename().string();
  if (name.starts_with("checkpoint-")) {
    constexpr size_t kBlock = 64 << 10;
    StoreU32(bytes.data() + 4, Crc32c(std::string_view(bytes).substr(8, kBlock - 8)));
  } else if (name.starts_with("log-")) {
    StoreU32(bytes.data() + 4, Crc32c(std::string_view(bytes).substr(8, kFirstBlock - 8)));
  } else if (name.ends_with(".seg")) {
    StoreU32(bytes.data() + 12, 0);
    StoreU32(bytes.data() + 12, Crc32c(std::string_view(bytes).substr(0, kFirstBlock)));
  } else {  // OWNER and dc_state: at the end
    bytes.resize(bytes.size() - 4);
    AppendU32(&bytes, Crc32c(bytes));
  }
  WriteFile(path, bytes);
}

// A TC's segments with something in them; behind them are spares.
std::vector<fs::path> UsedSegments(const std::string& folder) {
  std::vector<fs::path> files = FilesIn(folder, "log-");
  std::erase_if(files, [](const fs::path& file) { return LoadU32(BytesOfFile(file).data()) == 0; });
  return files;
}

void MakeSpareOfOtherVersion(const std::string& folder) {
  constexpr size_t kFirstBlock = 4096;
  const fs::path spare = FilesIn(folder, "log-").back();
  WriteFile(spare,
            BytesOfFile(UsedSegments(folder).front()).substr(0, kFirstBlock) + BytesOfFile(spare).substr(kFirstBlock));
  ChangeVersion(spare);
}

// REQUIRES: the component does not run.
void Change(StaleWorld& world, const StaleCase& stale, StaleWorld* other) {
  const std::string folder = world.FolderOf(stale.component);
  switch (stale.replacement) {
    case Replacement::kOlder:
    case Replacement::kOlderWhileItRan:
      return world.Replace(stale.component, "old");
    case Replacement::kForeign:
      return CopyFolder(other->FolderOf(stale.component), folder);
    case Replacement::kEmpty:
      fs::remove_all(folder);
      fs::create_directories(folder);
      return;
    case Replacement::kWithoutState:
      fs::remove(fs::path(folder) / "dc_state");
      return;
    case Replacement::kWithoutCheckpoints:
      for (const fs::path& file : PagesFiles(folder, "checkpoint-")) fs::remove(file);
      return;
    case Replacement::kWithoutASegment:
      fs::remove(PagesFiles(folder, "base-").front());
      return;
    case Replacement::kStateOfOtherVersion:
      return ChangeVersion(fs::path(folder) / "dc_state");
    case Replacement::kCheckpointOfOtherVersion:
      return ChangeVersion(PagesFiles(folder, "checkpoint-").back());
    case Replacement::kSegmentOfOtherVersion:
      return ChangeVersion(stale.component == Component::kDc ? PagesFiles(folder, "base-").back()
                                                             : UsedSegments(folder).back());
    case Replacement::kOldestSegmentOfOtherVersion:
      return ChangeVersion(UsedSegments(folder).front());
    case Replacement::kSpareOfOtherVersion:
      return MakeSpareOfOtherVersion(folder);
    case Replacement::kSpilledRunOfOtherVersion:
      fs::create_directories(fs::path(folder) / "spill");
      return WriteFile(fs::path(folder) / "spill" / "spill-1", "SPB2" + std::string(100, 'x'));
    case Replacement::kOwnerOfOtherVersion:
      return ChangeVersion(fs::path(folder) / "OWNER");
  }
}

Status Prepare(StaleWorld& world) {
  DEUT_RETURN_IF_ERROR(world.Create());
  DEUT_RETURN_IF_ERROR(world.Write("old", 60));
  return world.AwaitCheckpoint();
}

Status WriteAndCopy(StaleWorld& world, const StaleCase& stale) {
  DEUT_RETURN_IF_ERROR(Prepare(world));
  if (stale.replacement == Replacement::kOlder) {
    world.Kill(stale.component);
    world.Copy(stale.component, "old");
    world.Start(stale.component);
    DEUT_RETURN_IF_ERROR(world.cluster().AwaitServing());
  } else if (stale.replacement == Replacement::kOlderWhileItRan) {
    std::thread copier([&] { world.Copy(stale.component, "old"); });
    const Status written = world.Write("meanwhile", 40);
    copier.join();
    DEUT_RETURN_IF_ERROR(written);
  }
  DEUT_RETURN_IF_ERROR(world.Write("new", 60));
  return world.cluster().client().DropCaches({.timeout = seconds(60)});
}

// What a refusal must leave alone in a folder.
FolderBytes Evidence(const std::string& folder, bool with_state) {
  FolderBytes bytes = BytesOf(folder);
  std::erase_if(bytes, [&](const auto& file) { return !with_state && file.first == "dc_state"; });
  return bytes;
}

std::string Differing(const FolderBytes& before, const FolderBytes& after) {
  for (const auto& [name, bytes] : before) {
    if (!after.contains(name)) return Concat(name, " is gone");
    if (after.at(name) != bytes) return Concat(name, " has changed");
  }
  for (const auto& [name, bytes] : after) {
    if (!before.contains(name)) return Concat(name, " is new");
  }
  return "";
}

}  // namespace

std::string StaleCase::name() const {
  const auto* const found = std::ranges::find(kReplacements, replacement, &ReplacementName::replacement);
  return Concat(component == Component::kDc ? "Dc" : "Tc", found->name,
                peer_lives ? "UnderALivingPeer" : "AndAPeerThatStarts");
}

std::vector<StaleCase> AllCases() {
  std::vector<StaleCase> cases;
  for (const Component component : {Component::kDc, Component::kTc}) {
    for (const ReplacementName& each : kReplacements) {
      if (component == Component::kTc ? !each.of_tc : !each.of_dc) continue;
      for (const bool peer_lives : {true, false}) cases.push_back({component, each.replacement, peer_lives});
    }
  }
  return cases;
}

CaseResult RunCase(const StaleCase& stale) {
  StaleWorld world;
  if (const Status status = WriteAndCopy(world, stale); !status.ok())
    return {{}, Concat("before: ", status.ToString())};
  std::unique_ptr<StaleWorld> other;
  if (stale.replacement == Replacement::kForeign) {
    other = std::make_unique<StaleWorld>();
    if (const Status status = Prepare(*other); !status.ok()) return {{}, Concat("the other: ", status.ToString())};
    other->Kill(Component::kTc);
    other->Kill(Component::kDc);
  }
  const Component peer = stale.component == Component::kDc ? Component::kTc : Component::kDc;
  world.Kill(stale.component);
  if (!stale.peer_lives) world.Kill(peer);
  Change(world, stale, other.get());
  const std::string folder = world.FolderOf(stale.component);
  const FolderBytes before = Evidence(folder, true);
  world.Start(stale.component);
  if (!stale.peer_lives) world.Start(peer);

  CaseResult result{world.Judge(), ""};
  if (result.verdict.kind == Verdict::Kind::kWrong) result.broken = result.verdict.why;
  if (result.verdict.kind != Verdict::Kind::kRefused) return result;
  for (int again = 0; again < 2 && result.broken.empty(); ++again) {
    const Verdict next = world.JudgeAgain();
    if (next.kind != Verdict::Kind::kRefused)
      result.broken = Concat("refused at first (", result.verdict.why, "), then not: ", next.why);
  }
  // A DC that starts writes its new incarnation; one that refuses writes nothing.
  const bool started = stale.component == Component::kDc && world.cluster().dc()->Running();
  world.Kill(Component::kTc);
  world.Kill(Component::kDc);
  if (result.broken.empty() && stale.replacement != Replacement::kEmpty) {
    FolderBytes expected = before;
    if (started) expected.erase("dc_state");
    result.broken = Differing(expected, Evidence(folder, !started));
  }
  return result;
}

}  // namespace deut::stale
