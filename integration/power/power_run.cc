#include "integration/power/power_run.h"

#include <algorithm>
#include <utility>

#include "common/base/concat.h"
#include "dc/verify/verify.h"
#include "tc/verify/verify.h"

namespace deut::power {
namespace {

constexpr Duration kFailureComes = seconds(20);

// Checks with the offline verifier that the DC's directory is whole, at whatever moment power was lost. Returns "",
// or the damage.
std::string CheckPages(Storage& storage) {
  const Result<dc::VerifyReport> report = dc::VerifyDirectory(storage, RealRuntime(), kDcDirectory, {});
  if (report.ok()) return report->clean() ? "" : Concat("the DC's directory is damaged:\n", dc::ReportText(*report));
  // The directory does not exist yet.
  if (report.status() == ErrorCode::kNotFound || report.status() == ErrorCode::kInvalidArgument) return "";
  return Concat("the DC's directory cannot be checked: ", report.status().ToString());
}

// Checks the TC's log: no damage, and records that agree with each other.
std::string CheckLog(Storage& storage) {
  const Result<tc::LogReport> report = tc::VerifyLog(storage, kTcDirectory, {});
  if (report.ok()) return report->clean() ? "" : Concat("the TC's log is damaged:\n", tc::ReportText(*report));
  // The log does not exist yet.
  if (report.status() == ErrorCode::kNotFound || report.status() == ErrorCode::kInvalidArgument) return "";
  return Concat("the TC's log cannot be checked: ", report.status().ToString());
}

}  // namespace

PowerRun::PowerRun(const RunOptions& options)
    : PowerRun(options, std::make_unique<FaultyDisk>(RealRuntime(), options.seed), std::make_unique<Oracle>()) {}

PowerRun::PowerRun(const RunOptions& options, std::unique_ptr<FaultyDisk> disk, std::unique_ptr<Oracle> oracle)
    : options_(options),
      disk_(std::move(disk)),
      pages_(RealRuntime()),
      random_(options.seed),
      oracle_(std::move(oracle)) {}

std::string PowerRun::RunLife(const Life& life) {
  was_read_ = crashed_ = false;
  failure_ = Status::Ok();
  oracle_->BeginLife();
  ++lives_;
  const std::unique_ptr<Storage> storage = disk_->Mount();
  const uint64_t crashes = disk_->crashes();
  if (!life.faulty) {
    if (std::string wrong = CheckLog(*storage); !wrong.empty()) return wrong;
  }
  if (!options_.keeps_pages && !life.faulty) {
    if (std::string wrong = CheckPages(*storage); !wrong.empty()) return wrong;
  }
  if (life.before_open) life.before_open(*disk_);
  disk_->CrashAfter(life.crash_after);
  std::string wrong;
  {
    StoreSizes sizes = options_.sizes;
    sizes.little_background = life.little_background;
    Result<std::unique_ptr<PoweredStore>> store = PoweredStore::Open(
        *storage, options_.keeps_pages ? &pages_ : nullptr, [&] { return disk_->crashes() != crashes; }, sizes);
    if (store.ok()) {
      wrong = Work(**store, life, crashes);
      if (life.expect_failure && life.expect_failure(*disk_) &&
          !(*store)->WaitFailed(RealRuntime().Now() + kFailureComes) && wrong.empty())
        wrong = "the store goes on as if nothing had failed";
      failure_ = (*store)->failure();
      if (life.orderly_stop) store->reset();
    } else {
      failure_ = store.status();
      if (disk_->crashes() == crashes && !life.faulty) wrong = Concat("refused: ", failure_.ToString());
    }
    crashed_ = disk_->crashes() != crashes;
    disk_->HoldCompletions(false);
    if (!crashed_ && !life.keeps_power) disk_->Crash(random_.Next());
  }
  disk_->CrashAfter(0);
  if (crashed_ || !life.keeps_power) pages_.LosePower(random_.Next());
  return wrong;
}

std::string PowerRun::ReadAndJudge(PoweredStore& store, const Life& life, uint64_t crashes) {
  Result<Found> found = ReadAll(store, *oracle_);
  if (found.ok()) {
    was_read_ = true;
    ++reads_;
    return oracle_->Judge(*std::move(found));
  }
  const bool excused = life.faulty || disk_->crashes() != crashes;
  return excused ? "" : Concat("cannot be read: ", found.status().ToString());
}

std::string PowerRun::Work(PoweredStore& store, const Life& life, uint64_t crashes) {
  if (life.judge_first) {
    if (std::string wrong = ReadAndJudge(store, life, crashes); !wrong.empty()) return wrong;
  }
  NoteFirstLsn(store);
  if (life.steps == 0) return "";
  if (life.before_work) life.before_work(*disk_);
  LoadOptions load{.threads = options_.threads, .steps = life.steps, .seed = options_.seed * 10 + oracle_->life()};
  std::string wrong = RunLoad(store, *oracle_, load);
  while (wrong.empty() && store.failure().ok() && life.continue_steps && life.continue_steps()) {
    load.seed += 1'000'000;
    wrong = RunLoad(store, *oracle_, load);
  }
  NoteFirstLsn(store);
  dc_work_.Add({.splits = store.dc_counter("splits"),
                .merges = store.dc_counter("merges"),
                .checkpoints = store.dc_counter("checkpoints"),
                .cleaned = store.dc_counter("segments_cleaned"),
                .loaded = store.dc_counter("pages_loaded")});
  return wrong;
}

void PowerRun::NoteFirstLsn(PoweredStore& store) {
  const uint64_t first = store.first_lsn();
  if (first_lsn_ != 0 && first > first_lsn_) trimmed_ = true;
  first_lsn_ = std::max(first_lsn_, first);
}

}  // namespace deut::power
