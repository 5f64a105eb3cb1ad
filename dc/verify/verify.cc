#include "dc/verify/verify.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "common/base/check.h"
#include "common/base/concat.h"
#include "dc/page_store/hot_page_list.h"
#include "dc/page_store/segment_store.h"
#include "dc/verify/checkpoint_contents.h"
#include "dc/verify/data_directory.h"
#include "dc/verify/tree_walk.h"

namespace deut::dc {
namespace {

// The checkpoints that a start may open; a crash leaves older ones.
constexpr size_t kGenerations = 2;
constexpr size_t kShownKeyBytes = 24;
constexpr std::string_view kFromBackup = "restore the directory from a backup";

std::string Key(std::string_view key) {
  return key.size() <= kShownKeyBytes ? Quoted(key) : Concat(Quoted(key.substr(0, kShownKeyBytes)), "...");
}

std::string KeysOf(const NamedPage& named) {
  return Concat("keys from ", named.low.empty() ? "the first" : Key(named.low), " to ",
                named.bounded ? Key(named.high) : "the last");
}

class Verification {
 public:
  Verification(DataDirectory& directory, Runtime& runtime, const VerifyOptions& options)
      : directory_(directory), runtime_(runtime), options_(options) {}

  Status Run() {
    DEUT_RETURN_IF_ERROR(CheckState());
    DEUT_RETURN_IF_ERROR(ReadCheckpoints());
    DEUT_RETURN_IF_ERROR(CheckSegments());
    for (size_t i = 0; i < contents_.size(); ++i) {
      if (report_.checkpoints[i].readable) DEUT_RETURN_IF_ERROR(CheckTrees(i));
    }
    AdviseOnPages();
    CheckHotPages();
    AddNotes();
    return Status::Ok();
  }
  VerifyReport& report() { return report_; }

 private:
  class Pages;

  void Find(Damaged what, std::string text, std::string_view remedy) {
    ++report_.damages;
    if (report_.findings.size() < options_.max_findings) {
      report_.findings.push_back(Finding{what, std::move(text), std::string(remedy)});
    }
    DEUT_CHECK(report_.findings.size() <= report_.damages);
  }

  Status CheckState() {
    if (directory_.state().ok()) {
      report_.state = *directory_.state();
      return Status::Ok();
    }
    const Status& status = directory_.state().status();
    if (status == ErrorCode::kVersionMismatch) return status;
    Find(Damaged::kState, std::string(status.message()), kFromBackup);
    return Status::Ok();
  }

  Status ReadCheckpoints();
  void CheckGenerations();
  Status CheckSegments();
  Status CheckTrees(size_t generation);
  void CheckTables(const CheckpointContents& contents, SegmentStore& store, CheckpointReport* report);
  void AdviseOnPages();
  void CheckHotPages();
  void AddNotes();
  // A readable checkpoint needs this older file.
  bool IsAncestor(CheckpointNumber number) const {
    return std::ranges::any_of(contents_, [number](const CheckpointContents& contents) {
      return std::ranges::any_of(contents.head.ancestors,
                                 [number](const CheckpointAncestor& file) { return file.number == number; });
    });
  }

  DataDirectory& directory_;
  Runtime& runtime_;
  const VerifyOptions& options_;
  VerifyReport report_;
  std::vector<CheckpointContents> contents_;  // without images; parallel to report_.checkpoints
  std::map<uint64_t, uint64_t> usable_;       // readable bytes of each existing segment
  absl::flat_hash_set<size_t> reported_;      // hashes of the messages about damaged pages of the newest checkpoint
};

Status Verification::ReadCheckpoints() {
  const std::vector<CheckpointNumber>& numbers = directory_.checkpoints();
  for (size_t i = 0; i < std::min(numbers.size(), kGenerations); ++i) {
    CheckpointReport& report = report_.checkpoints.emplace_back();
    report.head.number = numbers[i];
    contents_.emplace_back();
    if (!directory_.dc().has_value()) {
      ++report.damages;
      Find(Damaged::kCheckpoint,
           Concat(directory_.pages(), "/", CheckpointName(numbers[i]), ": cannot be checked: its owner is unknown"),
           kFromBackup);
      continue;
    }
    auto contents =
        ReadContents(directory_.storage(), directory_.pages(), numbers[i], *directory_.dc(), WithImages::kNo);
    if (contents.status() == ErrorCode::kVersionMismatch) return contents.status();
    if (!contents.ok()) {
      ++report.damages;
      Find(
          Damaged::kCheckpoint, std::string(contents.status().message()),
          i == 0
              ? "a start falls back to the checkpoint before it, if that one is whole, and the redo log brings the rest"
              : "nothing is lost while the newer checkpoint is whole; the data component finds the damage when it "
                "scrubs, and its next two checkpoints need no older file");
      continue;
    }
    report.readable = true;
    report.head = contents->head;
    report.pages = contents->pages;
    report.segments = contents->segments.size();
    contents_.back() = std::move(*contents);
  }
  DEUT_CHECK(contents_.size() == report_.checkpoints.size());
  CheckGenerations();
  return Status::Ok();
}

void Verification::CheckGenerations() {
  const CheckpointNumber newest = report_.checkpoints.empty() ? CheckpointNumber() : report_.checkpoints[0].head.number;
  if (report_.state.has_value() && newest < report_.state->oldest_kept) {
    Find(Damaged::kCheckpoint,
         Concat(directory_.pages(), "/", CheckpointName(report_.state->oldest_kept),
                " or a later checkpoint is missing: dc_state says that it was completed"),
         kFromBackup);
  }
  for (CheckpointReport& checkpoint : report_.checkpoints) {
    if (!checkpoint.readable || !report_.state.has_value()) continue;
    if (checkpoint.head.incarnation.value <= report_.state->number.value) continue;
    ++checkpoint.damages;
    Find(Damaged::kState,
         Concat("dc_state is of incarnation ", report_.state->number.value, ", checkpoint ",
                checkpoint.head.number.value, " of ", checkpoint.head.incarnation.value),
         "dc_state is older than the pages: restore both from one backup");
  }
  if (report_.checkpoints.size() < kGenerations) return;
  CheckpointReport& newer = report_.checkpoints[0];
  const CheckpointReport& older = report_.checkpoints[1];
  DEUT_CHECK(newer.head.number > older.head.number);
  if (!newer.readable || !older.readable || newer.head.stable <= older.head.position) return;
  ++newer.damages;
  Find(Damaged::kCheckpoint,
       Concat("checkpoint ", newer.head.number.value, " calls more stable than checkpoint ", older.head.number.value,
              " before it holds"),
       kFromBackup);
}

Status Verification::CheckSegments() {
  std::map<std::pair<uint64_t, SegmentKind>, uint64_t> named;
  for (const CheckpointContents& contents : contents_) {
    for (const SegmentExtent& extent : contents.segments) {
      uint64_t& bytes = named[{extent.number, extent.kind}];
      bytes = std::max(bytes, extent.written_bytes);
    }
  }
  for (const SegmentFile& file : directory_.segments()) {
    const auto entry = named.find({file.number, file.kind});
    const uint64_t named_bytes = entry == named.end() ? 0 : entry->second;
    DEUT_ASSIGN_OR_RETURN(
        const SegmentReport segment,
        CheckSegment(directory_.storage(), file, named_bytes, directory_.dc(), [this](const Status& damage) {
          Find(Damaged::kSegment, std::string(damage.message()),
               "if a page needs it, that page is named below; otherwise it is unused space");
        }));
    report_.segments.push_back(segment);
    DEUT_CHECK(segment.usable_bytes() <= named_bytes);
    if (entry == named.end()) continue;
    usable_[file.number] = segment.usable_bytes();
    named.erase(entry);
  }
  for (const auto& [segment, bytes] : named) {
    Find(Damaged::kSegment,
         Concat(directory_.pages(), "/", SegmentName(segment.second, segment.first),
                ": is not there, a checkpoint names ", bytes, " bytes of it"),
         "put the file back, or restore the directory from a backup");
  }
  return Status::Ok();
}

// Counts the pages of one checkpoint.
class Verification::Pages final : public TreeWalkVisitor {
 public:
  Pages(Verification& verification, CheckpointReport* report)
      : verification_(verification),
        report_(*report),
        is_newest_(report == &verification.report_.checkpoints.front()) {}

  void OnPage(TableId of, const PageLoad& load) override {
    const BasePage& page = *load.page;
    TableReport& table = report_.tables.back();
    DEUT_CHECK(table.id == of);
    ++pages_;
    if (table.levels.size() <= page.level) table.levels.resize(page.level + 1);
    LevelReport& level = table.levels[page.level];
    ++level.pages;
    level.entries += page.count();
    const uint64_t base = load.parts[load.parts.count() - 1].length_bound();
    level.bytes += base;
    level.largest = std::max(level.largest, base);
    table.delta_parts += load.parts.count() - 1;
    if (page.is_leaf()) {
      table.records += page.live_records();
      table.tombstones += page.tombstones();
    }
    for (const PageAddress part : load.parts.all()) report_.live_bytes += part.length_bound();
  }

  void OnDamage(TableId table, const NamedPage& named, const Status& damage) override {
    ++report_.damages;
    // A damaged part is reported once, even if both checkpoints name it.
    const size_t message_hash = absl::HashOf(damage.message());
    if (is_newest_) {
      verification_.reported_.insert(message_hash);
    } else if (verification_.reported_.contains(message_hash)) {
      return;
    }
    const std::string text = Concat("checkpoint ", report_.head.number.value, ", table ", table.value, ", ",
                                    KeysOf(named), ": ", damage.message());
    verification_.Find(is_newest_ ? Damaged::kPage : Damaged::kOlderPage, text, "");
  }

  // Number of intact pages.
  uint64_t pages() const { return pages_; }

 private:
  Verification& verification_;
  CheckpointReport& report_;
  const bool is_newest_;
  uint64_t pages_ = 0;
};

Status Verification::CheckTrees(size_t generation) {
  CheckpointReport& report = report_.checkpoints[generation];
  DEUT_CHECK(report.readable && directory_.dc().has_value());
  DEUT_ASSIGN_OR_RETURN(
      const CheckpointContents contents,
      ReadContents(directory_.storage(), directory_.pages(), report.head.number, *directory_.dc(), WithImages::kYes));
  // The readable bytes of the segments; a page in the rest is damaged.
  std::vector<SegmentExtent> readable;
  for (SegmentExtent extent : contents.segments) {
    const auto usable = usable_.find(extent.number);
    if (usable == usable_.end()) continue;
    extent.written_bytes = std::min(extent.written_bytes, usable->second);
    if (extent.written_bytes > kSegmentHeaderBytes) readable.push_back(extent);
  }
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<SegmentStore> store,
                        SegmentStore::Open(directory_.storage(), runtime_, directory_.pages(), *directory_.dc(), {},
                                           report.head.number, readable, contents.head.next_segment));
  CheckTables(contents, *store, &report);
  return Status::Ok();
}

void Verification::CheckTables(const CheckpointContents& contents, SegmentStore& store, CheckpointReport* report) {
  Pages pages(*this, report);
  TreeWalk walk(contents.images, store, pages);
  for (const CheckpointContents::Table& table : contents.tables) {
    report->tables.push_back(TableReport{.id = table.id,
                                         .name = table.name,
                                         .root = table.root,
                                         .last = table.last,
                                         .compression = table.compression,
                                         .levels = {}});
    if (!table.dropped()) walk.Walk(table);
  }
  for (size_t place = 0; place < contents.images.size(); ++place) {
    if (walk.reached(place)) continue;
    ++report->unreached_pages;
    for (const PageAddress part : contents.images.parts(place)) report->unreached_bytes += part.length_bound();
  }
  // Each page is counted once, whatever the pages say of one another. The others are reached and damaged.
  DEUT_CHECK(pages.pages() + report->unreached_pages <= contents.images.size());
}

// The remedy for a page depends on the state of the other checkpoint.
void Verification::AdviseOnPages() {
  const std::vector<CheckpointReport>& checkpoints = report_.checkpoints;
  const bool newest_whole = !checkpoints.empty() && checkpoints[0].whole();
  const bool older_whole = checkpoints.size() > 1 && checkpoints[1].whole();
  for (Finding& finding : report_.findings) {
    if (finding.what == Damaged::kPage) {
      finding.remedy = older_whole ? "fall back to the checkpoint before (see below)" : kFromBackup;
    } else if (finding.what == Damaged::kOlderPage) {
      finding.remedy = newest_whole ? "nothing, the newest checkpoint is whole" : kFromBackup;
    }
    DEUT_CHECK(!finding.remedy.empty());
  }
}

// A start without the list is slower, and misses nothing. But the disk has changed bytes that were synced.
void Verification::CheckHotPages() {
  if (!directory_.has_hot_pages()) return;
  const Result<HotPageList> list = ReadHotPages(directory_.storage(), directory_.pages());
  if (list.ok()) {
    report_.hot_pages = list->size();
  } else if (list.status() == ErrorCode::kVersionMismatch) {
    report_.notes.push_back(Concat(list.status().message(), "; a start does not use it"));
  } else {
    Find(Damaged::kHotPages, std::string(list.status().message()),
         "no page needs it: a start reads pages when they are needed, and the next checkpoint replaces it");
  }
}

void Verification::AddNotes() {
  for (const std::string& path : directory_.left_over()) {
    report_.notes.push_back(Concat(path, ": left over from a crash; the next checkpoint removes it"));
  }
  for (const std::string& path : directory_.foreign_files()) {
    report_.notes.push_back(Concat(path, ": does not belong to the data component"));
  }
  for (size_t i = kGenerations; i < directory_.checkpoints().size(); ++i) {
    const CheckpointNumber number = directory_.checkpoints()[i];
    if (IsAncestor(number)) continue;
    report_.notes.push_back(Concat(directory_.pages(), "/", CheckpointName(number),
                                   ": an older checkpoint, left over from a crash; the next one removes it"));
  }
  if (report_.checkpoints.empty()) {
    report_.notes.push_back(
        "there is no checkpoint: the data component has not completed one, or they were taken away");
  }
}

}  // namespace

Result<VerifyReport> VerifyDirectory(Storage& storage, Runtime& runtime, const std::string& directory,
                                     const VerifyOptions& options) {
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<DataDirectory> opened, DataDirectory::Open(storage, directory));
  Verification verification(*opened, runtime, options);
  DEUT_RETURN_IF_ERROR(verification.Run());
  return std::move(verification.report());
}

}  // namespace deut::dc
