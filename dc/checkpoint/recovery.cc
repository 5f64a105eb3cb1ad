#include "dc/checkpoint/recovery.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/observe/log.h"
#include "common/sync/parallel.h"
#include "common/testing/test_points.h"
#include "dc/checkpoint/inner_pages.h"
#include "dc/page_store/checkpoint_file.h"

namespace deut::dc {
namespace {

constexpr size_t kGenerations = 2;
// Page ids that a thread of a recovery takes at once.
constexpr uint64_t kIdsAtOnce = 1 << 16;

// Fills the mapping table and the store while a checkpoint is being read. Pages come from several threads.
class Reading final : public CheckpointVisitor {
 public:
  Reading(Storage& storage, Runtime& runtime, const std::string& directory, DcId dc, const RecoveryOptions& options,
          RecoveredPages* out)
      : storage_(storage),
        runtime_(runtime),
        directory_(directory),
        dc_(dc),
        options_(options),
        progress_(options.progress),
        out_(*out) {}

  Status OnHead(const CheckpointHead& head) override {
    head_ = head;
    if (progress_ != nullptr) {
      progress_->segments = 0;
      progress_->segments_checked = 0;
      progress_->checkpoint = head.number.value;
    }
    out_.found = RecoveredCheckpoints{.opened = head.number, .position = head.position, .stable = head.stable};
    out_.found.lineages = {.opened = head.ancestors, .previous = head.previous};
    DEUT_ASSIGN_OR_RETURN(out_.pages, MappingTable::Create(options_.max_pages));
    if (head.next_page.value > uint64_t{options_.max_pages} + 1) {
      return DEUT_ERROR(kResourceExhausted, "the checkpoint has ", head.next_page.value - 1, " page ids, the limit is ",
                        options_.max_pages);
    }
    if (head.next_page.value == 0) return DEUT_ERROR(kCorruption, "the checkpoint's next page id is 0");
    out_.last_page = PageId(head.next_page.value - 1);
    return Status::Ok();
  }
  Status OnTable(const CheckpointTable& table) override {
    out_.tables.push_back(
        RecoveredTable{table.id, table.root, std::string(table.name), table.last(), table.compression});
    return Status::Ok();
  }
  Status OnSegment(const SegmentExtent& segment) override {
    segments_.push_back(segment);
    if (progress_ != nullptr) ++progress_->segments;
    return Status::Ok();
  }
  Status OnPage(PageId page, std::span<const PageAddress> newest_first) override {
    ImageParts parts;
    for (const PageAddress part : newest_first) parts.Append(part);
    if (out_.pages->Restore(page, parts)) return Status::Ok();
    // The reader compares the order of the parts of a file, which threads read side by side, when it has read them all.
    return DEUT_ERROR(kCorruption, directory_, "/", CheckpointName(head_.number), ": page ", page.value,
                      " comes twice");
  }
  Status OnLiveBytes(uint64_t segment, uint64_t bytes) override { return out_.store->AddLive(segment, bytes); }
  // The other lineage has to learn of these changes. This one has them, and writes them again.
  void OnRecentChange(PageId page) override {
    if (DEUT_STEP("checkpoint.recent_changes")) out_.pages->MarkChanged(page);
  }
  void OnFile(const CheckpointAncestor& file) override { out_.found.lineages.opened.push_back(file); }
  Status BeforePages() override {
    out_.pages->RestoreUpTo(out_.last_page);  // at once, so that the threads do not all raise it
    const auto on_checked = [this] {
      if (progress_ == nullptr) return Status::Ok();
      ++progress_->segments_checked;
      return progress_->Check();
    };
    DEUT_ASSIGN_OR_RETURN(
        out_.store, SegmentStore::Open(storage_, runtime_, directory_, dc_, options_.store, head_.number, segments_,
                                       head_.next_segment, {options_.threads, on_checked}));
    return Status::Ok();
  }

 private:
  Storage& storage_;
  Runtime& runtime_;
  const std::string& directory_;
  const DcId dc_;
  const RecoveryOptions& options_;
  RecoveryProgress* const progress_;
  RecoveredPages& out_;
  CheckpointHead head_;
  std::vector<SegmentExtent> segments_;
};

Result<RecoveredPages> ReadOne(Storage& storage, Runtime& runtime, const std::string& directory, DcId dc,
                               const RecoveryOptions& options, CheckpointNumber number) {
  RecoveredPages recovered;
  Reading reading(storage, runtime, directory, dc, options, &recovered);
  DEUT_RETURN_IF_ERROR(
      ReadCheckpoint(storage, directory, number, dc, &reading, {.runtime = &runtime, .threads = options.threads})
          .status());
  return recovered;
}

// Frees the ids up to `last_page` that no page names, and gives up their images.
Status FreeUnnamed(Runtime& runtime, const RecoveryOptions& options, PageId last_page,
                   const BwTreeEnvironment& environment) {
  MappingTable& pages = environment.pages;
  std::vector<MappingTable::FreeIds> ranges((last_page.value + kIdsAtOnce - 1) / kIdsAtOnce);
  DEUT_RETURN_IF_ERROR(ForEachInParallel(runtime, options.threads, ranges.size(), [&](size_t i) {
    const uint64_t first = 1 + i * kIdsAtOnce,
                   end = std::min<uint64_t>(first + kIdsAtOnce, uint64_t{last_page.value} + 1);
    for (uint64_t number = first; number < end; ++number) {
      const PageId id(static_cast<uint32_t>(number));
      if (pages.TestAndClearNamed(id) || !pages.HasImage(id)) continue;
      const ImageParts unnamed = pages.RestoreUnnamed(id, environment.domain);
      for (const PageAddress part : unnamed.all()) environment.images->MarkDead(part);
    }
    ranges[i] = pages.LinkUnused(first, end);
    return Status::Ok();
  }));
  pages.RestoreFree(last_page.value, ranges);
  return Status::Ok();
}

// The next checkpoint belongs to the lineage of the one before the opened one. If a checkpoint was passed over, the
// lineage of that one is damaged, and a checkpoint that continued it could not be opened either. The same holds for
// files that are missing. Then the next checkpoint is complete.
void ForgetUnusable(Storage& storage, const std::string& directory, DcId dc, bool passed_over,
                    RecoveredLineages* lineages) {
  if (passed_over && DEUT_STEP("checkpoint.fresh_lineage")) lineages->previous.clear();
  const Status there = CheckLineageIsThere(storage, directory, dc, lineages->previous);
  if (there.ok()) return;
  LogWarning("the next checkpoint is a complete one: ", there.message());
  lineages->previous.clear();
}

// Returns the refusal for the reason `why`, with what the operator can do.
Status Refusal(const std::string& directory, std::string_view why) {
  return DEUT_ERROR(kCorruption, why, ". Nothing was deleted or changed. Restore the missing files, or a copy of ",
                    directory, " with its redo log; `deut dc verify` lists all that is damaged there");
}

// Returns the checkpoints from number `oldest_required` on, newest first. Without this check, a folder that has lost
// them would be taken for a new one, and the content of its segments would be removed as left over.
Result<std::vector<CheckpointNumber>> FindFrom(Storage& storage, const std::string& directory,
                                               CheckpointNumber oldest_required) {
  DEUT_ASSIGN_OR_RETURN(const bool exists, storage.Exists(directory));
  std::vector<CheckpointNumber> numbers;
  if (exists) {
    DEUT_ASSIGN_OR_RETURN(numbers, FindCheckpoints(storage, directory));
  }
  std::string older;
  for (const CheckpointNumber number : numbers) {
    if (number < oldest_required) ConcatTo(&older, older.empty() ? ", only the older " : ", ", CheckpointName(number));
  }
  std::erase_if(numbers, [&](CheckpointNumber number) { return number < oldest_required; });
  if (!numbers.empty() || oldest_required.value == 0) return numbers;
  return Refusal(directory, Concat(directory, "/", CheckpointName(oldest_required),
                                   " or a later checkpoint is missing: dc_state says that it was completed",
                                   exists ? "" : ", and the folder itself is not there", older));
}

}  // namespace

Result<RecoveredPages> RecoverPages(Storage& storage, Runtime& runtime, const std::string& directory, DcId dc,
                                    const RecoveryOptions& options) {
  DEUT_ASSIGN_OR_RETURN(
      const std::vector<CheckpointNumber> numbers,
      FindFrom(storage, directory, DEUT_OMITTED("S2.kept_checkpoint") ? CheckpointNumber() : options.oldest_required));
  DEUT_RETURN_IF_ERROR(storage.CreateDirectory(directory));
  std::string damage;
  // The stable positions that were reported allow a fallback to the one before the newest, and no further. A crash
  // between completing a checkpoint and removing an older one leaves older files.
  const size_t candidates = std::min(numbers.size(), kGenerations);
  for (size_t i = 0; i < candidates; ++i) {
    const CheckpointNumber number = numbers[i];
    auto recovered = ReadOne(storage, runtime, directory, dc, options, number);
    if (recovered.ok()) {
      DEUT_RETURN_IF_ERROR(recovered->store->CheckLeftOverFiles());
      // There is no older checkpoint left to fall back to.
      if (i + 1 == candidates) recovered->found.stable = recovered->found.position;
      recovered->found.oldest_kept = numbers[candidates - 1];
      ForgetUnusable(storage, directory, dc, /*passed_over=*/i > 0, &recovered->found.lineages);
      LogInfo("checkpoint ", number.value, ": ", recovered->tables.size(), " tables, page ids to ",
              recovered->last_page.value, ", position ", recovered->found.position.commit.value, "/",
              recovered->found.position.sequence, ", stable ", recovered->found.stable.commit.value, "/",
              recovered->found.stable.sequence);
      return recovered;
    }
    // Only damage justifies a fallback to an older checkpoint.
    if (recovered.status().code() != ErrorCode::kCorruption) return recovered.status();
    LogError("checkpoint ", number.value, " cannot be read: ", recovered.status().message());
    ConcatTo(&damage, damage.empty() ? "" : "; ", "checkpoint ", number.value, ": ", recovered.status().message());
  }
  if (!damage.empty()) return Refusal(directory, damage);
  RecoveredPages empty;
  DEUT_ASSIGN_OR_RETURN(empty.pages, MappingTable::Create(options.max_pages));
  DEUT_ASSIGN_OR_RETURN(empty.store, SegmentStore::Create(storage, runtime, directory, dc, options.store));
  DEUT_RETURN_IF_ERROR(empty.store->CheckLeftOverFiles());
  return empty;
}

Status RecoverTables(Runtime& runtime, const std::string& directory, const std::vector<RecoveredTable>& recovered,
                     PageId last_page, const RecoveryOptions& options, const BwTreeEnvironment& environment,
                     const BwTreeOptions& tree_options, TableRegistry* tables) {
  DEUT_CHECK(environment.images != nullptr);
  MappingTable& pages = environment.pages;
  // The roots are named first, so that no other page can name them.
  for (const RecoveredTable& table : recovered) {
    if (table.root != kNoPage && !pages.MarkNamed(table.root)) {
      return DEUT_ERROR(kCorruption, "page ", table.root.value, " is the root of two tables");
    }
  }
  InnerPages inner(runtime, environment, options.threads, options.progress);
  for (const RecoveredTable& table : recovered) {
    if (table.root == kNoPage) {
      tables->RestoreDropped(table.id, table.last_dropped);
      continue;
    }
    BwTreeOptions of_tree = tree_options;
    of_tree.compression = table.compression;
    std::unique_ptr<BwTree> tree = BwTree::Restore(environment, of_tree, table.id, table.root);
    inner.Add(tree.get());
    // The registry gets the tree before it is loaded: if loading fails, the registry frees the tree.
    tables->Restore(table.id, table.name, std::move(tree));
  }
  if (const Status loaded = inner.Load(); !loaded.ok()) {
    return loaded == ErrorCode::kCorruption ? Refusal(directory, loaded.message()) : loaded;
  }
  return FreeUnnamed(runtime, options, last_page, environment);
}

}  // namespace deut::dc
