#include "tc/spill/spilled_runs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/io/folder_owner.h"
#include "tc/spill/spill_block.h"
#include "tc/spill/spill_levels.h"

namespace deut::tc {
namespace {

constexpr std::string_view kFileName = "spill-";
constexpr std::string_view kLockName = "LOCK";

// True for names that NewRun makes, and no others.
bool IsRunName(std::string_view name) {
  if (!name.starts_with(kFileName) || name.size() == kFileName.size()) return false;
  return std::ranges::all_of(name.substr(kFileName.size()), [](char c) { return c >= '0' && c <= '9'; });
}

constexpr FolderOwner kSpillFolder = {FolderKind::kSpill,
                                      [](std::string_view name) { return name == kLockName || IsRunName(name); }};

}  // namespace

Status SpilledRuns::CheckFolder(Storage& storage, const std::string& directory) {
  return deut::CheckFolder(storage, directory, kSpillFolder);
}

SpilledRuns::~SpilledRuns() { delete list_.load(std::memory_order_relaxed); }

Result<std::unique_ptr<FileLock>> SpilledRuns::LockFolder(Storage& storage, const std::string& directory) {
  DEUT_RETURN_IF_ERROR(CheckFolder(storage, directory));
  DEUT_ASSIGN_OR_RETURN(const bool there, storage.Exists(directory));
  if (!there) return std::unique_ptr<FileLock>();
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock, storage.Lock(Concat(directory, "/", kLockName)));
  lock->RemoveWhenReleased(true);  // until LockAndEmpty
  // Checked again under the lock, because another component may have claimed the directory meanwhile.
  DEUT_RETURN_IF_ERROR(CheckFolder(storage, directory));
  DEUT_ASSIGN_OR_RETURN(const std::vector<std::string> names, storage.List(directory));
  // All files are checked before the first one is removed, so that a refusal leaves everything.
  for (const std::string& name : names) {
    if (!IsRunName(name)) continue;
    const std::string path = Concat(directory, "/", name);
    Result<std::unique_ptr<File>> file = storage.Open(path, {});
    if (file.status() == ErrorCode::kNotFound) continue;
    DEUT_RETURN_IF_ERROR(file.status());
    std::array<char, kFormatCheckBytes> first;
    DEUT_ASSIGN_OR_RETURN(const size_t read, (*file)->Read(0, first.data(), first.size()));
    if (DEUT_STEP("S9.understand_spilled"))
      DEUT_RETURN_IF_ERROR(CheckSpillFileFormat(std::string_view(first.data(), read), path));
  }
  return lock;
}

Status SpilledRuns::LockAndEmpty() {
  if (lock_ == nullptr) {
    DEUT_RETURN_IF_ERROR(CheckFolder(storage_, directory_));
    DEUT_RETURN_IF_ERROR(storage_.CreateDirectory(directory_));
    DEUT_ASSIGN_OR_RETURN(lock_, LockFolder(storage_, directory_));
  }
  DEUT_RETURN_IF_ERROR(ClaimFolder(storage_, directory_, kSpillFolder));
  lock_->RemoveWhenReleased(false);
  DEUT_ASSIGN_OR_RETURN(const std::vector<std::string> names, storage_.List(directory_));
  for (const std::string& name : names) {
    if (!IsRunName(name)) continue;
    // A file that was removed meanwhile is no error.
    const Status removed = storage_.Remove(Concat(directory_, "/", name));
    if (!removed.ok() && removed != ErrorCode::kNotFound) return removed;
  }
  return Status::Ok();
}

SpilledRuns::View SpilledRuns::PublishedRuns() const {
  const List* const list = list_.load(std::memory_order_seq_cst);
  return list == nullptr ? View() : list->runs;
}

const SpilledRuns::View& SpilledRuns::runs_now() const {
  const List* const list = list_.load(std::memory_order_relaxed);
  return list == nullptr ? none_ : list->runs;
}

Result<SpilledRun::Builder> SpilledRuns::NewRun(uint64_t versions, uint32_t level,
                                                std::atomic<uint64_t>* written_bytes) {
  DEUT_CHECK(lock_ != nullptr);  // another process could have a file of this name
  uint64_t filter_bytes = SpillFilter::BytesFor(versions);
  for (const RunPointer& run : runs_now()) filter_bytes += run->filter_bytes();
  for (const auto& merge : merges_) filter_bytes += merge->filter_bytes();
  const bool filtered = filter_budget_ == nullptr || filter_bytes <= filter_budget_();
  return SpilledRun::Builder::Create(
      storage_, Concat(directory_, "/", kFileName, next_file_++),
      {.filter_keys = filtered ? versions : 0, .level = level, .written_bytes = written_bytes});
}

void SpilledRuns::Publish(RunPointer run) {
  if (run != nullptr) {
    DEUT_CHECK(run->versions() > 0);
    through_ = std::max(through_, run->span().last.commit);
    View runs = runs_now();
    runs.push_back(std::move(run));
    Replace(std::move(runs));
  }
  // Counted after the run is published, and before any version leaves its chain (S7).
  spills_.fetch_add(1, std::memory_order_seq_cst);
}

void SpilledRuns::CountMemory() {
  uint64_t bytes = 0;
  for (const auto& merge : merges_) bytes += merge->filter_bytes();
  for (const RunPointer& run : runs_now()) bytes += run->memory_bytes();
  memory_bytes_.store(bytes, std::memory_order_relaxed);
}

void SpilledRuns::Replace(View runs) {
  uint64_t versions = 0, file_bytes = 0;
  for (const RunPointer& run : runs) {
    versions += run->versions();
    file_bytes += run->file_bytes();
  }
  runs_.store(runs.size(), std::memory_order_relaxed);
  versions_.store(versions, std::memory_order_relaxed);
  file_bytes_.store(file_bytes, std::memory_order_relaxed);
  const List* const next = runs.empty() ? nullptr : new List{.runs = std::move(runs)};
  DEUT_POINT("spilled_runs.before_replace");
  ReclamationDomain::Guard guard(domain_);
  const List* const old = list_.exchange(next, std::memory_order_seq_cst);
  if (old != nullptr) domain_.RetireObject(const_cast<List*>(old));
  CountMemory();
}

Timestamp SpilledRuns::first(Lsn applied) const {
  if (runs_now().empty()) return Timestamp{0};
  const SpilledRun::CommitSpan& span = runs_now().front()->span();
  return span.first_commit < applied ? Timestamp{0} : span.first;
}

bool SpilledRuns::MayHoldUnapplied(Lsn commit, Lsn applied) const {
  if (runs_now().empty()) return false;
  // No other run has commits as early. A merge may combine this run with later ones for ever, so its end alone cannot decide.
  const SpilledRun::CommitSpan& span = runs_now().front()->span();
  return span.first_commit <= commit && (applied <= commit || span.last.commit <= commit);
}

void SpilledRuns::Drop() {
  merges_.clear();
  if (!runs_now().empty()) Replace({});
  DEUT_CHECK(empty());
}

void SpilledRuns::DropAppliedAndMerge(Position applied, size_t versions,
                                      const std::function<SpillMerge::AnyReader()>& reader_predicate) {
  if (runs_now().empty()) return;
  View runs = runs_now();
  const auto gone = [&](const RunPointer& run) { return run->span().last <= applied; };
  if (std::erase_if(runs, gone) != 0) {
    // Runs go in commit order, so the first of a merge goes first.
    std::erase_if(merges_, [&](const auto& merge) { return gone(merge->runs().front()); });
    Replace(std::move(runs));
  }
  if (runtime_.Now() < merge_retry_at_) return;
  while (versions > 0) {
    Status merged = BeginMerge(applied.commit, reader_predicate);
    if (merged.ok() && merges_.empty()) return;
    if (merged.ok()) merged = AdvanceMerge(&versions);
    if (merged.ok()) continue;
    // The other merges are given up, too. Their files may be the reason that the disk is full, and none of them goes on
    // as long as the lowest level fails.
    merges_.clear();
    CountMemory();
    figures_.failed_merges.fetch_add(1, std::memory_order_relaxed);
    merge_retry_at_ = runtime_.Now() + kMergeRetryPause;
    return;
  }
}

Status SpilledRuns::BeginMerge(Lsn applied, const std::function<SpillMerge::AnyReader()>& reader_predicate) {
  std::vector<LeveledRun> levels;
  for (const RunPointer& run : runs_now()) {
    const auto has_run = [&](const auto& merge) { return merge->Merges(run); };
    // A merge of a damaged run would fail again and again, and lower levels go first.
    levels.push_back({.level = run->level(), .busy = run->damaged() || std::ranges::any_of(merges_, has_run)});
  }
  const uint32_t below = merges_.empty() ? UINT32_MAX : merges_.back()->runs().front()->level();
  const std::optional<size_t> first = FindSpillMerge(levels, below);
  if (!first) return Status::Ok();
  const auto begin = runs_now().begin() + static_cast<ptrdiff_t>(*first);
  View runs(begin, begin + static_cast<ptrdiff_t>(kMergedRuns));
  uint64_t versions = 0;
  for (const RunPointer& run : runs) versions += run->versions();
  DEUT_ASSIGN_OR_RETURN(SpilledRun::Builder merged,
                        NewRun(versions, runs.front()->level() + 1, &figures_.merged_bytes));
  merges_.push_back(std::make_unique<SpillMerge>(std::move(runs), applied,
                                                 reader_predicate ? reader_predicate() : nullptr, std::move(merged)));
  CountMemory();
  return Status::Ok();
}

Status SpilledRuns::AdvanceMerge(size_t* versions) {
  const Result<bool> finished = merges_.back()->Advance(versions);
  if (finished.ok() && !*finished) return Status::Ok();
  // Finished or given up, it is no longer in progress.
  const std::unique_ptr<SpillMerge> merge = std::move(merges_.back());
  merges_.pop_back();
  CountMemory();
  DEUT_RETURN_IF_ERROR(finished.status());
  DEUT_ASSIGN_OR_RETURN(RunPointer merged, merge->Finish());
  View runs = runs_now();
  const auto at = std::ranges::find(runs, merge->runs().front());
  const auto count = static_cast<ptrdiff_t>(merge->runs().size());
  // Runs stay in commit order: nothing came between those of the merge, and none was dropped, since it began.
  DEUT_CHECK(runs.end() - at >= count && std::equal(at, at + count, merge->runs().begin()));
  const auto behind = runs.erase(at, at + count);
  if (merged != nullptr) runs.insert(behind, std::move(merged));
  figures_.merges.fetch_add(1, std::memory_order_relaxed);
  Replace(std::move(runs));
  return Status::Ok();
}

}  // namespace deut::tc
