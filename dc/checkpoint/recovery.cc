#include "dc/checkpoint/recovery.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "common/observe/log.h"
#include "common/sync/mutex.h"
#include "dc/bwtree/named_page.h"
#include "dc/bwtree/page_load.h"
#include "dc/page_store/checkpoint_file.h"

namespace deut::dc {
namespace {

constexpr size_t kGenerations = 2;
constexpr size_t kSampledLeaves = 32;

// Fills the mapping table and the store from a checkpoint that is being read.
class Reading final : public CheckpointVisitor {
 public:
  Reading(Storage& storage, Runtime& runtime, const std::string& directory, DcId dc, const RecoveryOptions& options,
          RecoveredPages* out)
      : storage_(storage), runtime_(runtime), directory_(directory), dc_(dc), options_(options), out_(*out) {}

  Status OnHead(const CheckpointHead& head) override {
    head_ = head;
    out_.found = CheckpointsFound{head.number, head.position, head.stable};
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
    out_.tables.push_back(RecoveredTable{table.id, table.root, std::string(table.name)});
    return Status::Ok();
  }
  Status OnSegment(const SegmentExtent& segment) override {
    segments_.push_back(segment);
    return Status::Ok();
  }
  Status OnPage(PageId page, std::span<const PageAddress> newest_first) override {
    DEUT_RETURN_IF_ERROR(OpenStore());
    ImageParts parts;
    for (const PageAddress part : newest_first) {
      DEUT_RETURN_IF_ERROR(out_.store->MarkLive(part));
      parts.Append(part);
    }
    out_.pages->Restore(page, parts);
    return Status::Ok();
  }
  Status OpenStore() {
    if (out_.store != nullptr) return Status::Ok();
    DEUT_ASSIGN_OR_RETURN(out_.store, SegmentStore::Open(storage_, runtime_, directory_, dc_, options_.store,
                                                         head_.number, segments_, head_.next_segment));
    return Status::Ok();
  }
  const CheckpointHead& head() const { return head_; }

 private:
  Storage& storage_;
  Runtime& runtime_;
  const std::string& directory_;
  const DcId dc_;
  const RecoveryOptions& options_;
  RecoveredPages& out_;
  CheckpointHead head_;
  std::vector<SegmentExtent> segments_;
};

Result<RecoveredPages> ReadOne(Storage& storage, Runtime& runtime, const std::string& directory, DcId dc,
                               const RecoveryOptions& options, CheckpointNumber number) {
  RecoveredPages recovered;
  Reading reading(storage, runtime, directory, dc, options, &recovered);
  DEUT_RETURN_IF_ERROR(ReadCheckpoint(storage, directory, number, dc, &reading).status());
  DEUT_RETURN_IF_ERROR(reading.OpenStore());
  return recovered;
}

// Loads the inner pages of one tree, level by level, each level by several threads.
class InnerPages {
 public:
  InnerPages(Runtime& runtime, BwTree& tree, SegmentStore& store, int threads)
      : runtime_(runtime), tree_(tree), store_(store), threads_(threads), mutex_(runtime) {}

  Status Load() {
    BwTree::NamedPages level;
    level.inner.push_back(NamedRoot(tree_.root()));
    while (!level.inner.empty()) {
      DEUT_ASSIGN_OR_RETURN(level, LoadLevel(level.inner));
      leaves_.insert(leaves_.end(), level.leaves.begin(), level.leaves.end());
    }
    EstimateRecords();
    return Status::Ok();
  }

 private:
  // How many records there are nobody knows before all leaves were read; a few of them are, and speak for the others. Whoever loads a leaf later
  // puts its number right.
  void EstimateRecords() {
    uint64_t records = 0;
    uint64_t read = 0;
    for (size_t i = 0; i < std::min(leaves_.size(), kSampledLeaves); ++i) {
      const Result<uint32_t> one =
          tree_.RecordsOfStored(leaves_[i * leaves_.size() / std::min(leaves_.size(), kSampledLeaves)], store_);
      if (!one.ok()) LogError("table ", tree_.table().value, ": ", one.status().message());
      if (!one.ok()) continue;
      records += *one;
      ++read;
    }
    if (read == 0) return;
    for (const PageId leaf : leaves_) tree_.CountRecords(leaf, static_cast<uint32_t>(records / read));
  }

  // Answers the pages below.
  Result<BwTree::NamedPages> LoadLevel(const std::vector<NamedPage>& level) {
    std::atomic<size_t> next{0};
    BwTree::NamedPages below;
    Status status;
    const auto work = [&] {
      for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < level.size();) {
        BwTree::NamedPages children;
        const Status loaded = tree_.RestorePage(level[i], store_, &children);
        const MutexLock lock(mutex_);
        if (!loaded.ok()) {
          if (status.ok()) status = loaded;
          return;
        }
        below.inner.insert(below.inner.end(), std::make_move_iterator(children.inner.begin()),
                           std::make_move_iterator(children.inner.end()));
        below.leaves.insert(below.leaves.end(), children.leaves.begin(), children.leaves.end());
      }
    };
    std::vector<std::unique_ptr<Thread>> threads;
    for (int i = 1; i < threads_ && static_cast<size_t>(i) < level.size(); ++i) {
      threads.push_back(runtime_.StartThread("dc-recover", work));
    }
    work();
    threads.clear();
    if (!status.ok()) return status;
    return below;
  }

  Runtime& runtime_;
  BwTree& tree_;
  SegmentStore& store_;
  const int threads_;
  std::vector<PageId> leaves_;
  Mutex mutex_;
};

}  // namespace

Result<RecoveredPages> RecoverPages(Storage& storage, Runtime& runtime, const std::string& directory, DcId dc,
                                    const RecoveryOptions& options) {
  DEUT_RETURN_IF_ERROR(storage.CreateDirectory(directory));
  DEUT_ASSIGN_OR_RETURN(const std::vector<CheckpointNumber> numbers, FindCheckpoints(storage, directory));
  Status damage;
  // The one before the newest is as far back as the stable positions that were reported allow for. Older files are left of a crash
  // between completing a checkpoint and removing the one before the previous one.
  const size_t candidates = std::min(numbers.size(), kGenerations);
  for (size_t i = 0; i < candidates; ++i) {
    const CheckpointNumber number = numbers[i];
    auto recovered = ReadOne(storage, runtime, directory, dc, options, number);
    if (recovered.ok()) {
      // None is left to fall back to.
      if (i + 1 == candidates) recovered->found.stable = recovered->found.position;
      LogInfo("checkpoint ", number.value, ": ", recovered->tables.size(), " tables, page ids to ",
              recovered->last_page.value, ", position ", recovered->found.position.commit.value, "/",
              recovered->found.position.sequence, ", stable ", recovered->found.stable.commit.value, "/",
              recovered->found.stable.sequence);
      return recovered;
    }
    // Only damage makes an older checkpoint the better one.
    if (recovered.status().code() != ErrorCode::kCorruption) return recovered.status();
    LogError("checkpoint ", number.value, " cannot be read: ", recovered.status().message());
    if (damage.ok()) damage = recovered.status();
  }
  if (!damage.ok()) return damage;
  RecoveredPages empty;
  DEUT_ASSIGN_OR_RETURN(empty.pages, MappingTable::Create(options.max_pages));
  DEUT_ASSIGN_OR_RETURN(empty.store, SegmentStore::Create(storage, runtime, directory, dc, options.store));
  return empty;
}

Status RecoverTables(Runtime& runtime, const std::vector<RecoveredTable>& recovered, PageId last_page,
                     const RecoveryOptions& options, const BwTreeEnvironment& environment,
                     const BwTreeOptions& tree_options, TableRegistry* tables) {
  MappingTable& pages = environment.pages;
  SegmentStore& store = *environment.images;
  // First, so that no other page can name them.
  for (const RecoveredTable& table : recovered) {
    if (table.root != kNoPage && !pages.Name(table.root)) {
      return DEUT_ERROR(kCorruption, "page ", table.root.value, " is the root of two tables");
    }
  }
  for (const RecoveredTable& table : recovered) {
    if (table.root == kNoPage) {
      tables->RestoreDropped(table.id);
      continue;
    }
    std::unique_ptr<BwTree> tree = BwTree::Restore(environment, tree_options, table.id, table.root);
    const Status loaded = InnerPages(runtime, *tree, store, options.threads).Load();
    // Also if it failed: the registry frees what was made.
    tables->Restore(table.id, table.name, std::move(tree));
    if (!loaded.ok()) return loaded;
  }
  for (uint32_t number = 1; number <= last_page.value; ++number) {
    const PageId id(number);
    if (pages.TakeName(id) || !pages.HasImage(id)) continue;
    const ImageParts unnamed = pages.RestoreUnnamed(id, environment.domain);
    for (const PageAddress part : unnamed.all()) store.MarkDead(part);
  }
  pages.RestoreFree(last_page.value);
  return Status::Ok();
}

}  // namespace deut::dc
