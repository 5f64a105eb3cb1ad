#include "dc/checkpoint/inner_pages.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/observe/log.h"
#include "common/sync/parallel.h"
#include "dc/bwtree/page_load.h"

namespace deut::dc {
namespace {

constexpr size_t kSampledLeaves = 32;
// A level with few pages has windows for all threads.
constexpr size_t kMinWindowPages = 16;
// The windows of all threads are in memory beside the pages that they become: with 16 threads 8 MiB of pages, and at
// most as much between them. The reading of the checkpoint had as much, and a process with a small budget (--memory)
// has to hold it.
constexpr size_t kMaxWindowPages = 64;
// Parts that a thread reads at once, unless one page has more.
constexpr uint64_t kMaxWindowBytes = 1 << 20;
// A checkpoint writes the changed inner pages of a level one after the other. Others have leaves between them: a gap that
// is much longer than an inner page would cost the device more than another read.
constexpr RunReaderOptions kReads{.runs_in_flight = 4, .max_gap_bytes = 8 << 10};

}  // namespace

std::vector<size_t> SampledLeaves(size_t leaves) {
  std::vector<size_t> places(std::min(leaves, kSampledLeaves));
  for (size_t i = 0; i < places.size(); ++i) places[i] = i * leaves / places.size();
  return places;
}

InnerPages::InnerPages(Runtime& runtime, const BwTreeEnvironment& environment, int threads, RecoveryProgress* progress)
    : runtime_(runtime),
      environment_(environment),
      store_(*environment.images),
      threads_(std::max(threads, 1)),
      progress_(progress),
      mutex_(runtime),
      readers_(static_cast<size_t>(threads_)) {}

InnerPages::~InnerPages() = default;

void InnerPages::Add(BwTree* tree) {
  trees_.push_back(Tree{.tree = tree});
  level_.push_back(Page{trees_.size() - 1, NamedRoot(tree->root())});
  if (progress_ != nullptr) ++progress_->inner_pages;
}

Status InnerPages::Load() {
  while (!level_.empty()) {
    std::vector<BwTree::NamedPages> below(level_.size());
    DEUT_RETURN_IF_ERROR(LoadLevel(&below));
    DEUT_RETURN_IF_ERROR(CheckSiblings());
    GoDown(&below);
  }
  return EstimateRecords();
}

Status InnerPages::LoadLevel(std::vector<BwTree::NamedPages>* below) {
  const size_t pages = std::clamp(level_.size() / static_cast<size_t>(threads_), kMinWindowPages, kMaxWindowPages);
  const size_t windows = (level_.size() + pages - 1) / pages;
  return ForEachByThread(runtime_, threads_, windows, [&](size_t i, size_t thread) {
    std::unique_ptr<RunReader>& reader = readers_[thread];
    if (reader == nullptr) {
      DEUT_ASSIGN_OR_RETURN(reader, RunReader::Create(store_, kReads));
    }
    return LoadWindow({.begin = i * pages, .end = std::min((i + 1) * pages, level_.size())}, *reader, below);
  });
}

Status InnerPages::LoadWindow(const Window& window, RunReader& reader, std::vector<BwTree::NamedPages>* below) {
  for (size_t begin = window.begin; begin < window.end;) {
    size_t end = window.end;
    reader.Read(PartsOf(begin, &end), [this] { return progress_ != nullptr && progress_->given_up; });
    for (; begin < end; ++begin) DEUT_RETURN_IF_ERROR(LoadOne(level_[begin], reader, &(*below)[begin]));
    reader.Forget();
  }
  return Status::Ok();
}

// A page without an image is refused when it is loaded. An inner page has one part, a root that is a leaf may have more,
// and is read alone.
std::vector<PageAddress> InnerPages::PartsOf(size_t begin, size_t* end) const {
  const ReclamationDomain::Guard guard(environment_.domain);  // the mapping table requires it
  std::vector<PageAddress> parts;
  uint64_t bytes = 0;
  for (size_t i = begin; i < *end; ++i) {
    const ImageParts image = environment_.pages.Image(level_[i].named.id);
    if (image.count() != 1) continue;
    bytes += image.newest().length_bound();
    if (bytes > kMaxWindowBytes && !parts.empty()) {
      *end = i;
      break;
    }
    parts.push_back(image.newest());
  }
  return parts;
}

Status InnerPages::LoadOne(const Page& page, const RunReader& reader, BwTree::NamedPages* below) {
  const auto read = [&](PageLoad* load) {
    // Bytes of other pages, or a shortage, may be the reason why a run was not read.
    if (load->parts.count() != 1 || !reader.WasRead(load->parts.newest())) return load->ReadImage(store_);
    return load->BuildImage([&](size_t /*part*/) { return reader.Part(load->parts.newest(), load->id); });
  };
  DEUT_RETURN_IF_ERROR(InTable(page, trees_[page.tree].tree->RestorePage(page.named, read, below)));
  if (progress_ == nullptr) return Status::Ok();
  progress_->inner_pages += below->inner.size();
  ++progress_->inner_pages_loaded;
  return progress_->Check();
}

// The pages of one tree in level_ are all pages of one level. Each has the bounds that its parent states, so together
// they cover all keys: the right sibling of each is the one that follows it. This holds for every intact checkpoint,
// also for one that was taken during splits and merges (checkpointer.h, step 5).
Status InnerPages::CheckSiblings() const {
  for (size_t i = 0; i < level_.size(); ++i) {
    const bool last = i + 1 == level_.size() || level_[i + 1].tree != level_[i].tree;
    const PageId next = last ? kNoPage : level_[i + 1].named.id;
    DEUT_RETURN_IF_ERROR(InTable(level_[i], trees_[level_[i].tree].tree->CheckSibling(level_[i].named.id, next)));
  }
  return Status::Ok();
}

// Replaces level_ by the inner pages that its pages name. The order by tree and key is kept.
void InnerPages::GoDown(std::vector<BwTree::NamedPages>* below) {
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

Status InnerPages::InTable(const Page& page, const Status& status) const {
  if (status.ok()) return status;
  return Status(status.code(), Concat("table ", trees_[page.tree].tree->table().value, ": ", status.message()));
}

std::vector<std::pair<size_t, PageId>> InnerPages::Samples() const {
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
Status InnerPages::EstimateRecords() {
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

}  // namespace deut::dc
