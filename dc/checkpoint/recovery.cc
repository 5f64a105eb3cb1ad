#include "dc/checkpoint/recovery.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/observe/log.h"
#include "common/sync/mutex.h"
#include "common/sync/parallel.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/named_page.h"
#include "dc/bwtree/page_load.h"
#include "dc/page_store/checkpoint_file.h"

namespace deut::dc {
namespace {

constexpr size_t kGenerations = 2;
constexpr size_t kSampledLeaves = 32;
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
    out_.pages->Restore(page, parts);
    return Status::Ok();
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

// Loads the inner pages of all trees, level by level from the roots, with several threads for each level.
class InnerPages {
 public:
  InnerPages(Runtime& runtime, SegmentStore& store, const RecoveryOptions& options)
      : runtime_(runtime), store_(store), threads_(options.threads), progress_(options.progress), mutex_(runtime) {}

  // Adds a tree. REQUIRES: Load was not called yet.
  void Add(BwTree* tree) {
    trees_.push_back(Tree{.tree = tree});
    level_.push_back(Page{trees_.size() - 1, NamedRoot(tree->root())});
    if (progress_ != nullptr) ++progress_->inner_pages;
  }

  Status Load() {
    while (!level_.empty()) {
      std::vector<BwTree::NamedPages> below(level_.size());
      DEUT_RETURN_IF_ERROR(ForEachInParallel(runtime_, threads_, level_.size(),
                                             [&](size_t i) { return LoadOne(level_[i], &below[i]); }));
      DEUT_RETURN_IF_ERROR(CheckSiblings());
      GoDown(&below);
    }
    return EstimateRecords();
  }

 private:
  struct Tree {
    BwTree* tree;
    size_t leaves = 0;
    uint64_t records = 0;  // records of the sampled leaves
    uint64_t sampled = 0;
  };
  // The leaves that one inner page names.
  struct Leaves {
    size_t tree;  // index in trees_
    std::vector<PageId> ids;
  };
  struct Page {
    size_t tree;  // index in trees_
    NamedPage named;
  };

  Status LoadOne(const Page& page, BwTree::NamedPages* below) {
    DEUT_RETURN_IF_ERROR(InTable(page, trees_[page.tree].tree->RestorePage(page.named, store_, below)));
    if (progress_ == nullptr) return Status::Ok();
    progress_->inner_pages += below->inner.size();
    ++progress_->inner_pages_loaded;
    return progress_->Check();
  }

  // The pages of one tree in level_ are all pages of one level. Each has the bounds that its parent states, so together
  // they cover all keys: the right sibling of each is the one that follows it. This holds for every intact checkpoint,
  // also for one that was taken during splits and merges (checkpointer.h, step 5).
  Status CheckSiblings() const {
    for (size_t i = 0; i < level_.size(); ++i) {
      const bool last = i + 1 == level_.size() || level_[i + 1].tree != level_[i].tree;
      const PageId next = last ? kNoPage : level_[i + 1].named.id;
      DEUT_RETURN_IF_ERROR(InTable(level_[i], trees_[level_[i].tree].tree->CheckSibling(level_[i].named.id, next)));
    }
    return Status::Ok();
  }

  // Replaces level_ by the inner pages that its pages name. The order by tree and key is kept.
  void GoDown(std::vector<BwTree::NamedPages>* below) {
    std::vector<Page> level;
    for (size_t i = 0; i < level_.size(); ++i) {
      const size_t tree = level_[i].tree;
      BwTree::NamedPages named = std::exchange((*below)[i], {});  // freed piece by piece
      for (NamedPage& child : named.inner) level.push_back(Page{tree, std::move(child)});
      if (named.leaves.empty()) continue;
      trees_[tree].leaves += named.leaves.size();
      leaves_.push_back(Leaves{tree, std::move(named.leaves)});
    }
    level_ = std::move(level);
  }

  // Returns `status`, with the page's table in its message if it is an error.
  Status InTable(const Page& page, const Status& status) const {
    if (status.ok()) return status;
    return Status(status.code(), Concat("table ", trees_[page.tree].tree->table().value, ": ", status.message()));
  }

  // Returns the leaves of each tree that are read for the estimate, with the index of the tree.
  std::vector<std::pair<size_t, PageId>> Samples() const {
    std::vector<std::pair<size_t, PageId>> samples;
    for (size_t i = 0; i < leaves_.size();) {
      const size_t tree = leaves_[i].tree;
      size_t before = 0;  // leaves of the tree in earlier lists
      for (const size_t place : SampledLeaves(trees_[tree].leaves)) {
        while (place - before >= leaves_[i].ids.size()) before += leaves_[i++].ids.size();
        samples.emplace_back(tree, leaves_[i].ids[place - before]);
      }
      while (i < leaves_.size() && leaves_[i].tree == tree) ++i;
    }
    return samples;
  }

  // The number of records is unknown before all leaves were read. So a sample of leaves is read, and their mean is
  // used for the others. Each later load of a leaf corrects its number.
  Status EstimateRecords() {
    const std::vector<std::pair<size_t, PageId>> samples = Samples();
    DEUT_RETURN_IF_ERROR(ForEachInParallel(runtime_, threads_, samples.size(), [&](size_t i) {
      Tree& of = trees_[samples[i].first];
      const Result<uint32_t> records = of.tree->RecordsOfStored(samples[i].second, store_);
      if (!records.ok()) LogError("table ", of.tree->table().value, ": ", records.status().message());
      const MutexLock lock(mutex_);
      of.records += records.ok() ? *records : 0;
      of.sampled += records.ok() ? 1 : 0;
      return progress_ == nullptr ? Status::Ok() : progress_->Check();
    }));
    return ForEachInParallel(runtime_, threads_, leaves_.size(), [&](size_t i) {
      const Tree& of = trees_[leaves_[i].tree];
      if (of.sampled != 0) {
        of.tree->CountStoredRecords(leaves_[i].ids, static_cast<uint32_t>(of.records / of.sampled));
      }
      return Status::Ok();
    });
  }

  Runtime& runtime_;
  SegmentStore& store_;
  const int threads_;
  RecoveryProgress* const progress_;
  std::vector<Tree> trees_;
  // Those of one tree lie together, in the order of their keys: all leaves of a tree are of one level.
  std::vector<Leaves> leaves_;
  Mutex mutex_;  // guards, while leaves are sampled, the trees' counts
  // The pages that are loaded next: those of one tree lie together, in the order of their keys.
  std::vector<Page> level_;
};

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

std::vector<size_t> SampledLeaves(size_t leaves) {
  std::vector<size_t> places(std::min(leaves, kSampledLeaves));
  for (size_t i = 0; i < places.size(); ++i) places[i] = i * leaves / places.size();
  return places;
}

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
  SegmentStore& store = *environment.images;
  // The roots are named first, so that no other page can name them.
  for (const RecoveredTable& table : recovered) {
    if (table.root != kNoPage && !pages.MarkNamed(table.root)) {
      return DEUT_ERROR(kCorruption, "page ", table.root.value, " is the root of two tables");
    }
  }
  InnerPages inner(runtime, store, options);
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
