#include "integration/stale/stale_case.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <thread>
#include <utility>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/verify/verify.h"

namespace deut::stale {
namespace {

namespace fs = std::filesystem;

// More than two segments of the redo log.
constexpr int kLogMebibytes = 36;

struct ReplacementName {
  Replacement replacement;
  const char* name;
  bool of_dc, of_tc;  // the components whose folders it applies to
};

constexpr ReplacementName kReplacements[] = {
    {Replacement::kOlder, "Older", true, true},
    {Replacement::kOlderLaidOver, "OlderLaidOver", true, true},
    {Replacement::kOlderWhileItRan, "OlderWhileItRan", true, true},
    {Replacement::kForeign, "Foreign", true, true},
    {Replacement::kFork, "Fork", true, true},
    {Replacement::kEmpty, "Empty", true, true},
    {Replacement::kAbsent, "Absent", true, true},
    {Replacement::kWithoutCheckpoints, "WithoutCheckpoints", true, false},
    {Replacement::kWithoutPages, "WithoutPages", true, false},
    {Replacement::kSpilledRunOfOtherVersion, "SpilledRunOfOtherVersion", false, true},
};

constexpr FileChange kFileChanges[] = {FileChange::kMissing,      FileChange::kTruncated, FileChange::kZeroed,
                                       FileChange::kOtherVersion, FileChange::kOlder,     FileChange::kForeign};

Component PeerOf(Component component) { return component == Component::kDc ? Component::kTc : Component::kDc; }

bool Is(const StaleCase& stale, Replacement replacement) { return !stale.file && stale.replacement == replacement; }

bool NeedsOther(const StaleCase& stale) {
  return stale.file ? stale.change == FileChange::kForeign : stale.replacement == Replacement::kForeign;
}

bool NeedsOlder(const StaleCase& stale) {
  if (stale.file) return stale.change == FileChange::kOlder;
  return stale.replacement == Replacement::kOlder || stale.replacement == Replacement::kOlderLaidOver;
}

// Returns false if the folder has no such file.
bool Change(StaleWorld& world, const StaleCase& stale, StaleWorld* other) {
  const std::string folder = world.FolderOf(stale.component);
  const std::string foreign = other == nullptr ? "" : other->FolderOf(stale.component);
  if (stale.file) {
    const bool from_old = stale.change == FileChange::kOlder;
    return ChangeFile(folder, *stale.file, stale.change, from_old ? world.CopyAt(stale.component, "old") : foreign);
  }
  switch (stale.replacement) {
    case Replacement::kOlder:
    case Replacement::kOlderWhileItRan:
      world.Replace(stale.component, "old");
      return true;
    case Replacement::kOlderLaidOver:
      fs::copy(world.CopyAt(stale.component, "old"), folder,
               fs::copy_options::recursive | fs::copy_options::overwrite_existing);
      return true;
    case Replacement::kForeign:
      CopyFolder(foreign, folder);
      return true;
    case Replacement::kFork:
      world.Replace(stale.component, "fork");
      return true;
    case Replacement::kEmpty:
      fs::remove_all(folder);
      fs::create_directories(folder);
      return true;
    case Replacement::kAbsent:
      return fs::remove_all(folder) > 0;
    case Replacement::kWithoutCheckpoints:
      while (const auto file = FindFile(folder, FileKind::kNewestCheckpoint)) fs::remove(*file);
      return true;
    case Replacement::kWithoutPages:
      return fs::remove_all(fs::path(folder) / "pages") > 0;
    case Replacement::kSpilledRunOfOtherVersion:
      fs::create_directories(fs::path(folder) / "spill");
      std::ofstream(fs::path(folder) / "spill" / "spill-1", std::ios::binary) << "SPB2" + std::string(100, 'x');
      return true;
  }
  return false;
}

Status Prepare(StaleWorld& world) {
  DEUT_RETURN_IF_ERROR(world.Create());
  DEUT_RETURN_IF_ERROR(world.Write("old", 60));
  return world.AwaitCheckpoint();
}

Status Restart(StaleWorld& world, Component component) {
  world.Start(component);
  return world.cluster().AwaitServing();
}

// A cluster continues independently from copies of both folders, and no component remembers that. Then the copies are
// put back, and the store continues from there.
Status MakeFork(StaleWorld& world, Component component) {
  const Journal journal = world.journal();
  for (const Component each : {Component::kTc, Component::kDc}) world.Kill(each);
  for (const Component each : {Component::kTc, Component::kDc}) world.Copy(each, "base");
  for (const Component each : {Component::kDc, Component::kTc}) world.Start(each);
  DEUT_RETURN_IF_ERROR(world.cluster().AwaitServing());
  DEUT_RETURN_IF_ERROR(world.Write("fork", 30));
  DEUT_RETURN_IF_ERROR(world.AwaitCheckpoint());
  for (const Component each : {Component::kTc, Component::kDc}) world.Kill(each);
  world.Copy(component, "fork");
  for (const Component each : {Component::kDc, Component::kTc}) {
    world.Replace(each, "base");
    world.Start(each);
  }
  world.SetJournal(journal);
  return world.cluster().AwaitServing();
}

Status WriteAndCopy(StaleWorld& world, const StaleCase& stale) {
  DEUT_RETURN_IF_ERROR(Prepare(world));
  if (NeedsOlder(stale)) {
    world.Kill(stale.component);
    world.Copy(stale.component, "old");
    DEUT_RETURN_IF_ERROR(Restart(world, stale.component));
  } else if (Is(stale, Replacement::kOlderWhileItRan)) {
    std::thread copier([&] { world.Copy(stale.component, "old"); });
    const Status written = world.Write("meanwhile", 40);
    copier.join();
    DEUT_RETURN_IF_ERROR(written);
  } else if (Is(stale, Replacement::kFork)) {
    DEUT_RETURN_IF_ERROR(MakeFork(world, stale.component));
  }
  if (stale.component == Component::kTc && stale.file) DEUT_RETURN_IF_ERROR(world.WriteLarge(kLogMebibytes));
  if (stale.held_back) DEUT_RETURN_IF_ERROR(world.BlockShipping());
  DEUT_RETURN_IF_ERROR(world.Write("new", 60));
  // The TC has not started since the copy. If the DC loses its memory, only its state file can tell that the copy is
  // older.
  const bool lags = stale.component == Component::kTc && Is(stale, Replacement::kOlderWhileItRan) && !stale.peer_lives;
  if (lags) DEUT_RETURN_IF_ERROR(world.AwaitDurableLsnAtDc());
  if (stale.held_back) return Status::Ok();
  // Commits that only the newest log file has, and that the DC has not made stable, are lost for good with that file.
  if (stale.component == Component::kTc && stale.file) DEUT_RETURN_IF_ERROR(world.AwaitCheckpoint());
  return world.cluster().client().DropCaches({.timeout = seconds(60)});
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

// Returns what the check of a DC's folder finds. REQUIRES: the DC does not run.
Result<dc::VerifyReport> Verified(const std::string& folder) {
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<Storage> storage, NewSystemStorage(IoKind::kPosix, RealRuntime()));
  return dc::VerifyDirectory(*storage, RealRuntime(), folder, {});
}

// Returns "" if the folder of a DC that was running has no more damage than before; else the report.
std::string NewDamage(const Result<dc::VerifyReport>& before, const std::string& folder) {
  const Result<dc::VerifyReport> after = Verified(folder);
  if (!after.ok()) return Concat("the replaced folder cannot be checked: ", after.status().ToString());
  if (after->damages <= (before.ok() ? before->damages : 0)) return "";
  return Concat("the replaced folder is damaged: ", dc::ReportText(*after));
}

// Returns a refusal without the parts that differ from start to start: times, positions, numbers of processes and
// incarnations, and whether a client's call or a daemon's last line reported it.
std::string Form(const std::string& sentence) {
  const std::string heard = std::regex_replace(sentence, std::regex("^(tcd|dcd): "), "");
  return std::regex_replace(heard, std::regex("[0-9]+"), "#");
}

// Called after a first refusal. Returns "" if every start repeated it.
std::string RefuseAgain(StaleWorld& world, int restarts) {
  std::string form;
  for (int again = 1; again <= restarts; ++again) {
    const Verdict next = world.JudgeAgain();
    if (next.kind != Verdict::Kind::kRefused)
      return Concat("start ", again, " after the refusal was not refused any more: ",
                    next.why.empty() ? "everything is right" : next.why);
    if (again > 1 && Form(next.why) != form) return Concat("start ", again, " says something else: ", next.why);
    form = Form(next.why);
  }
  return "";
}

}  // namespace

std::string StaleCase::name() const {
  const auto* const found = std::ranges::find(kReplacements, replacement, &ReplacementName::replacement);
  return Concat(component == Component::kDc ? "Dc" : "Tc", file ? Concat(NameOf(*file), NameOf(change)) : found->name,
                peer_lives ? "UnderALivingPeer" : "AndAPeerThatStarts", held_back ? "HeldBack" : "");
}

std::vector<StaleCase> AllCases() {
  std::vector<StaleCase> cases;
  for (const Component component : {Component::kDc, Component::kTc}) {
    for (const bool peer_lives : {true, false}) {
      for (const ReplacementName& each : kReplacements) {
        if (component == Component::kTc ? !each.of_tc : !each.of_dc) continue;
        for (const bool held_back : {false, true})
          cases.push_back({component, each.replacement, std::nullopt, {}, peer_lives, held_back});
      }
      for (const FileKind file : FileKindsOf(component)) {
        for (const FileChange change : kFileChanges) cases.push_back({component, {}, file, change, peer_lives});
      }
    }
  }
  return cases;
}

std::vector<StaleCase> CoreCases() {
  std::vector<StaleCase> cases = AllCases();
  std::erase_if(cases, [](const StaleCase& each) {
    if (!each.file) return each.held_back && each.replacement != Replacement::kOlder;
    // The existence of delta segments depends on when the DC last consolidated its pages.
    const bool always_there = each.file != FileKind::kFirstDeltaSegment && each.file != FileKind::kLastDeltaSegment;
    return each.peer_lives || !always_there ||
           (each.change != FileChange::kMissing && each.change != FileChange::kOtherVersion);
  });
  return cases;
}

CaseResult RunCase(const StaleCase& stale, int restarts) {
  StaleWorld world;
  if (const Status status = WriteAndCopy(world, stale); !status.ok())
    return {{}, Concat("before: ", status.ToString())};
  std::unique_ptr<StaleWorld> other;
  if (NeedsOther(stale)) {
    other = std::make_unique<StaleWorld>();
    if (const Status status = Prepare(*other); !status.ok()) return {{}, Concat("the other: ", status.ToString())};
    if (stale.file && stale.component == Component::kTc) {
      if (const Status status = other->WriteLarge(kLogMebibytes); !status.ok())
        return {{}, Concat("the other: ", status.ToString())};
    }
    other->Kill(Component::kTc);
    other->Kill(Component::kDc);
  }
  const Component peer = PeerOf(stale.component);
  world.Kill(stale.component);
  if (!stale.peer_lives) world.Kill(peer);
  world.UnblockShipping();
  if (!Change(world, stale, other.get())) return {{Verdict::Kind::kRight, ""}, "", /*played=*/false};
  const std::string folder = world.FolderOf(stale.component), peer_folder = world.FolderOf(peer);
  const FolderBytes before = BytesOf(folder);
  const bool of_dc = stale.component == Component::kDc;
  const Result<dc::VerifyReport> verified = of_dc ? Verified(folder) : DEUT_ERROR(kNotFound, "no folder of a DC");
  const FolderBytes peer_before = stale.peer_lives ? FolderBytes() : BytesOf(peer_folder);
  world.Start(stale.component);
  if (!stale.peer_lives) world.Start(peer);

  CaseResult result{world.Judge(), ""};
  if (result.verdict.kind == Verdict::Kind::kWrong) result.broken = result.verdict.why;
  if (result.verdict.kind != Verdict::Kind::kRefused) return result;
  result.broken = RefuseAgain(world, restarts);
  if (!result.broken.empty()) {
    result.broken = Concat("refused at first (", result.verdict.why, "), then: ", result.broken);
    return result;
  }
  // A DC that starts writes its new incarnation, and may clean and take checkpoints while it waits for its TC; one that
  // refuses writes nothing.
  const bool dc_started = world.cluster().dc() != nullptr && world.cluster().dc()->Running();
  world.Kill(Component::kTc);
  world.Kill(Component::kDc);
  // Where everything is gone a DC begins a new folder before its TC can refuse it. A TC asks the DC first.
  const bool gone = Is(stale, Replacement::kEmpty) || Is(stale, Replacement::kAbsent);
  if (of_dc && dc_started && !gone) {
    result.broken = NewDamage(verified, folder);
  } else if (!of_dc || !gone) {
    result.broken = Differing(before, BytesOf(folder));
    if (!result.broken.empty()) result.broken = Concat("of the replaced folder, ", result.broken);
  }
  // If the peer is a TC, its folder stays unchanged while it refuses.
  if (result.broken.empty() && !stale.peer_lives && peer == Component::kTc) {
    result.broken = Differing(peer_before, BytesOf(peer_folder));
    if (!result.broken.empty()) result.broken = Concat("of the TC's folder, ", result.broken);
  }
  return result;
}

}  // namespace deut::stale
