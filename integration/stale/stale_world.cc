#include "integration/stale/stale_world.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "dc/server/state_file.h"
#include "integration/harness/ports.h"
#include "integration/harness/process.h"
#include "tc/client/client.h"
#include "tc/client/retry.h"

namespace deut::stale {
namespace {

namespace fs = std::filesystem;

constexpr int kKeys = 40;
constexpr char kCounter[] = "counter";

const std::vector<std::string> kDcFlags = {"--dc_segment=64KiB", "--dc_checkpoint_interval=50ms",
                                           "--dc_checkpoint_log=64KiB"};

testing::ClusterOptions Small(bool proxies) {
  testing::ClusterOptions options;
  options.proxies = proxies;
  options.tc.flags.push_back("--read_cache=0");
  options.dc.flags = kDcFlags;
  return options;
}

std::string Pad(std::string value) {
  value.resize(200, '.');
  return value;
}

}  // namespace

FolderBytes BytesOf(const std::string& folder) {
  FolderBytes bytes;
  if (!fs::exists(folder)) return bytes;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = fs::relative(entry.path(), folder).string();
    const std::string name = entry.path().filename().string();
    if (entry.is_directory()) {
      bytes[Concat(path, "/")] = "";
    } else if (name == "lock" || name == "LOCK") {
      bytes[path] = "";
    } else if (entry.is_regular_file()) {
      std::ifstream in(entry.path(), std::ios::binary);
      std::stringstream all;
      all << in.rdbuf();
      bytes[path] = all.str();
    }
  }
  return bytes;
}

void CopyFolder(const std::string& from, const std::string& to) {
  fs::remove_all(to);
  fs::create_directories(to);
  std::error_code vanished;
  for (auto it = fs::recursive_directory_iterator(from, vanished); it != fs::recursive_directory_iterator();
       it.increment(vanished)) {
    const fs::path target = fs::path(to) / fs::relative(it->path(), from);
    if (it->is_directory(vanished)) {
      fs::create_directories(target, vanished);
    } else {
      fs::copy_file(it->path(), target, fs::copy_options::overwrite_existing, vanished);
    }
  }
}

StaleWorld::StaleWorld(bool proxies) : cluster_(Small(proxies)) {}

Status StaleWorld::Create() {
  DEUT_RETURN_IF_ERROR(cluster_.AwaitServing());
  DEUT_ASSIGN_OR_RETURN(table_, cluster_.client().CreateTable("stale"));
  return Status::Ok();
}

Status StaleWorld::Write(const std::string& label, int transactions) {
  for (int i = 0; i < transactions; ++i) {
    const std::string key = Concat("key", journal_.written % kKeys), value = Pad(Concat(label, " ", journal_.written));
    ++journal_.written;
    Result<int64_t> sum = int64_t{0};
    DEUT_RETURN_IF_ERROR(RunTransaction(cluster_.client(), {}, [&](Transaction& t) -> Status {
      DEUT_RETURN_IF_ERROR(t.Put(table_, key, value));
      sum = t.Add(table_, kCounter, 1);
      return sum.status();
    }));
    journal_.values[key] = value;
    ++journal_.counted;
    if (*sum != journal_.counted) return DEUT_ERROR(kInternal, "add answered ", *sum, ", not ", journal_.counted);
  }
  return Status::Ok();
}

Status StaleWorld::WriteFiller(int mebibytes) {
  // Small records, because the DC takes long to apply them.
  constexpr int kTogether = 512, kValueBytes = 100;
  const std::string value(kValueBytes, 'f');
  for (int at = 0; at < (mebibytes << 20) / kValueBytes; at += kTogether) {
    std::vector<std::string> keys;
    for (int i = 0; i < kTogether; ++i) keys.push_back(Concat("filler", at + i));
    std::vector<Operation> operations;
    for (const std::string& key : keys)
      operations.push_back({.kind = OperationKind::kPut, .table = table_, .key = key, .value = value});
    std::vector<OperationResult> results;
    DEUT_RETURN_IF_ERROR(RunOneShot(cluster_.client(), {}, operations, &results).status());
  }
  return Status::Ok();
}

Status StaleWorld::WriteLarge(int mebibytes) {
  constexpr int kTogether = 32, kValueBytes = 32 << 10;
  const std::string value(kValueBytes, 'l');
  for (int at = 0; at < mebibytes; ++at) {
    std::vector<std::string> keys;
    for (int i = 0; i < kTogether; ++i) keys.push_back(Concat("large", i));
    std::vector<Operation> operations;
    for (const std::string& key : keys)
      operations.push_back({.kind = OperationKind::kPut, .table = table_, .key = key, .value = value});
    std::vector<OperationResult> results;
    DEUT_RETURN_IF_ERROR(RunOneShot(cluster_.client(), {}, operations, &results).status());
  }
  return Status::Ok();
}

Status StaleWorld::BlockShipping() {
  DEUT_ASSIGN_OR_RETURN(held_, cluster_.client().Begin());
  return held_->Put(table_, "held", "");
}

std::string StaleWorld::StartDcUnderReaders() {
  std::atomic<bool> over{false};
  std::string wrong;
  std::thread reader([&] {
    const std::unique_ptr<Client> client = cluster_.NewClient();
    while (!over && wrong.empty()) {
      for (const auto& [key, value] : journal_.values) {
        std::optional<std::string> found;
        int64_t sum = 0;
        const RetryOptions often{
            .timeout = seconds(5), .max_pause = milliseconds(1), .unavailable_pause = milliseconds(1)};
        const Status status = RunTransaction(*client, often, [&](Transaction& t) -> Status {
          DEUT_ASSIGN_OR_RETURN(found, t.Get(table_, key));
          DEUT_ASSIGN_OR_RETURN(sum, t.Add(table_, kCounter, 1));
          return Status::Ok();
        });
        if (status.code() == ErrorCode::kOutcomeUnknown) continue;
        if (!status.ok()) break;
        ++journal_.counted;
        // Commits whose outcome this thread did not learn have counted, too.
        if (found != value)
          wrong = Concat(key, " is \"", found.value_or("(absent)").substr(0, 40), "\" of a committed read");
        if (sum < journal_.counted) wrong = Concat("an acknowledged add answered ", sum, ", not ", journal_.counted);
        journal_.counted = sum;
        if (!wrong.empty() || over) break;
      }
    }
  });
  Start(Component::kDc);
  const Status serving = cluster_.AwaitServing();
  // Reads at the moment when the gate opens are checked as well.
  RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(200));
  over = true;
  reader.join();
  return wrong.empty() && !serving.ok() ? serving.ToString() : wrong;
}

Status StaleWorld::AwaitCheckpoint() {
  const Deadline deadline = RealRuntime().Now() + seconds(60);
  uint64_t goal = 0;
  for (;;) {
    const Result<ServiceStatus> status = cluster_.client().GetStatus({.timeout = seconds(5)});
    if (status.ok()) {
      if (goal == 0) goal = testing::CounterOf(status->tc, "ship.position");
      if (testing::CounterOf(status->dc, "stable_commit_lsn") >= goal) return Status::Ok();
    }
    if (RealRuntime().Now() >= deadline) return DEUT_ERROR(kDeadlineExceeded, "no checkpoint in a minute");
    // An update to apply makes the DC check whether a checkpoint is due. A position is stable only after two
    // checkpoints.
    DEUT_RETURN_IF_ERROR(Write("towards a checkpoint", 1));
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(20));
  }
}

Status StaleWorld::AwaitDurableLsnAtDc() {
  const Deadline deadline = RealRuntime().Now() + seconds(60);
  const std::string path = FolderOf(Component::kDc) + "/dc_state";
  uint64_t goal = 0;
  for (;;) {
    const Result<ServiceStatus> status = cluster_.client().GetStatus({.timeout = seconds(5)});
    if (status.ok() && goal == 0) goal = testing::CounterOf(status->tc, "log.durable");
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const Result<dc::DcState> state = dc::DecodeDcState(bytes, path);
    if (goal != 0 && state.ok() && state->log_durable.value >= goal) return Status::Ok();
    if (RealRuntime().Now() >= deadline) return DEUT_ERROR(kDeadlineExceeded, "dc_state lags by a minute");
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(50));
  }
}

std::string StaleWorld::FolderOf(Component component) const {
  return cluster_.directory().Sub(component == Component::kDc ? "dc" : "tc");
}

std::string StaleWorld::CopyAt(Component component, const std::string& name) const {
  return cluster_.directory().Sub(Concat(component == Component::kDc ? "dc" : "tc", "-copy-", name));
}

void StaleWorld::Copy(Component component, const std::string& name) {
  CopyFolder(FolderOf(component), CopyAt(component, name));
}

void StaleWorld::Replace(Component component, const std::string& name) {
  CopyFolder(CopyAt(component, name), FolderOf(component));
}

void StaleWorld::StartTwin(const std::string& name) {
  twin_port_ = testing::FreePort();
  std::vector<std::string> command = {testing::ProgramAt("DCD"), Concat("--listen=127.0.0.1:", twin_port_),
                                      Concat("--data_dir=", CopyAt(Component::kDc, name))};
  command.insert(command.end(), kDcFlags.begin(), kDcFlags.end());
  twin_ = std::make_unique<testing::Process>(std::move(command), cluster_.directory().Sub("twin.log"));
}

void StaleWorld::RouteToTwin(bool to_twin) {
  cluster_.tc_dc().SetServer(to_twin ? twin_port_ : cluster_.dc_port());
  cluster_.tc_dc().Reset();
}

void StaleWorld::Kill(Component component) { component == Component::kDc ? cluster_.KillDc() : cluster_.KillTc(); }

void StaleWorld::Start(Component component) {
  const std::string log = cluster_.directory().Sub(component == Component::kDc ? "dc.log" : "tc.log");
  said_before_[component] = fs::exists(log) ? fs::file_size(log) : 0;
  component == Component::kDc ? cluster_.StartDc() : cluster_.StartTc();
}

std::string StaleWorld::FindWrong() {
  for (const bool dropped : {false, true}) {
    if (dropped) {
      const Status status = cluster_.client().DropCaches({.timeout = seconds(60)});
      if (!status.ok()) return Concat("the caches could not be dropped: ", status.ToString());
    }
    std::map<std::string, std::string> read;
    std::optional<std::string> counter;
    const Status status = RunTransaction(cluster_.client(), {}, [&](Transaction& t) -> Status {
      read.clear();
      for (const auto& [key, value] : journal_.values) {
        DEUT_ASSIGN_OR_RETURN(const std::optional<std::string> found, t.Get(table_, key));
        read[key] = found.value_or("(absent)");
      }
      DEUT_ASSIGN_OR_RETURN(counter, t.Get(table_, kCounter));
      return Status::Ok();
    });
    if (!status.ok()) return Concat("reads fail: ", status.ToString());
    for (const auto& [key, value] : journal_.values) {
      if (read[key] == value) continue;
      return Concat(key, " is \"", read[key].substr(0, 40), "\", acknowledged was \"", value.substr(0, 40), "\"");
    }
  }
  const Status more = Write("afterwards", 5);
  return more.ok() ? "" : Concat("later transactions fail: ", more.ToString());
}

std::optional<std::string> StaleWorld::Refusal() {
  // A daemon that has ended gives the reason in its last line; a TC that keeps running gives it to its clients.
  for (const Component component : {Component::kDc, Component::kTc}) {
    testing::Process* const process = component == Component::kDc ? cluster_.dc() : cluster_.tc();
    if (process == nullptr || process->Running()) continue;
    std::istringstream output(process->Output().substr(said_before_[component]));
    std::string sentence = "it has ended without a word";
    for (std::string line; std::getline(output, line);) {
      static const std::regex codes("CORRUPTION|VERSION_MISMATCH|WRONG_STATE|FENCED|UNAVAILABLE: .*lock");
      if (std::regex_search(line, codes)) sentence = line;
    }
    return sentence;
  }
  const Status status = cluster_.client().GetStatus({.timeout = seconds(1)}).status();
  const auto answer = cluster_.client().OpenTable("no such table", {.timeout = seconds(1)});
  for (const Status& said : {status, answer.status()}) {
    switch (said.code()) {
      case ErrorCode::kCorruption:
      case ErrorCode::kVersionMismatch:
      case ErrorCode::kWrongState:
      case ErrorCode::kFenced:
        return said.ToString();
      default:
        break;
    }
  }
  return std::nullopt;
}

Verdict StaleWorld::Judge() {
  const Deadline deadline = RealRuntime().Now() + seconds(30);
  Status serving;
  for (;;) {
    serving = cluster_.AwaitServing(milliseconds(500));
    if (serving.ok()) break;
    if (const std::optional<std::string> refusal = Refusal()) {
      // The message must name a file, a data component, a TC or a position, and a reason.
      static const std::regex reason("[0-9].*(refus|not|version|damage|missing|checksum|ends|belongs|lost|replaced)");
      if (std::regex_search(*refusal, reason)) return {Verdict::Kind::kRefused, *refusal};
      return {Verdict::Kind::kWrong, Concat("the refusal says nothing: ", *refusal)};
    }
    if (RealRuntime().Now() >= deadline)
      return {Verdict::Kind::kWrong, Concat("neither serves nor refuses: ", serving.ToString())};
  }
  std::string wrong = FindWrong();
  if (wrong.empty()) return {Verdict::Kind::kRight, ""};
  return {Verdict::Kind::kWrong, std::move(wrong)};
}

Verdict StaleWorld::JudgeAgain() {
  for (const Component component : {Component::kDc, Component::kTc}) {
    Kill(component);
    Start(component);
  }
  return Judge();
}

}  // namespace deut::stale
