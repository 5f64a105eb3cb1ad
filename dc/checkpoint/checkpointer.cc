#include "dc/checkpoint/checkpointer.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/testing/flight_board.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/inner_view.h"
#include "dc/page_store/space_use.h"

namespace deut::dc {
namespace {

constexpr Duration kGraceStep = std::chrono::microseconds(50);
// Longest time for which a checkpoint prevents splits while it waits for guards. After that it is retried later.
constexpr Duration kMaxGracePeriod = std::chrono::seconds(2);

// Bound of the bytes of a checkpoint's file, without its pages. The pages take fewer bytes there than in a capture.
constexpr uint64_t kFileBytes = 128 << 10;

}  // namespace

// The content of the registry at one moment, and the position.
struct Checkpointer::Capture {
  struct Table {
    TableId id;
    PageId root;
    std::string name;
    uint32_t dropped_ids_behind = 0;
    Compression compression = Compression::kNone;
  };
  Position position;
  std::vector<Table> tables;
};

// Adds the visited pages to the flusher.
class Checkpointer::Pass final : public PageVisitor {
 public:
  Pass(BwTree& tree, PageFlusher& flusher) : tree_(tree), flusher_(flusher) {}

  void Visit(const VisitedPage& page) override {
    if (page.word.on_storage()) return;  // it was written and evicted since it was marked
    const PageFlusher::Added added = flusher_.full() ? PageFlusher::Added::kBusy : flusher_.Add(tree_, page.id);
    if (added == PageFlusher::Added::kNotLoaded) to_load_.emplace_back(page.high);
    if (added == PageFlusher::Added::kNotLoaded || added == PageFlusher::Added::kBusy) {
      if (!rest_) rest_.emplace(page.high);
    }
  }

  // The upper bound of the first page that must be added but was not.
  const std::optional<std::string>& rest() const { return rest_; }
  // Upper bounds of the pages that must be loaded first.
  const std::vector<std::string>& to_load() const { return to_load_; }

 private:
  BwTree& tree_;
  PageFlusher& flusher_;
  std::optional<std::string> rest_;
  std::vector<std::string> to_load_;
};

Result<std::unique_ptr<Checkpointer>> Checkpointer::Create(const CheckpointEnvironment& environment,
                                                           const RecoveredCheckpoints& found) {
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointSet> set,
                        CheckpointSet::Open(environment.storage, environment.directory, environment.dc, found.opened,
                                            found.lineages.opened));
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<PageFlusher> flusher,
                        PageFlusher::Create(environment.trees, environment.store, environment.tables));
  return std::unique_ptr<Checkpointer>(new Checkpointer(environment, found, std::move(set), std::move(flusher)));
}

Checkpointer::Checkpointer(const CheckpointEnvironment& environment, const RecoveredCheckpoints& found,
                           std::unique_ptr<CheckpointSet> set, std::unique_ptr<PageFlusher> flusher)
    : environment_(environment),
      mutex_(environment.runtime),
      set_(std::move(set)),
      flusher_(std::move(flusher)),
      lineages_(environment.trees.pages, environment.trees.domain, found.lineages, environment.lineages),
      newest_(found.position),
      stable_mutex_(environment.runtime),
      stable_(found.stable) {
  DEUT_CHECK(found.stable <= found.position);
  const MutexLock lock(mutex_);
  environment_.store.ReserveForCheckpoint(kFileBytes + lineages_.CompleteBytes());
}

Position Checkpointer::stable() const {
  const MutexLock lock(stable_mutex_);
  return stable_;
}

Status Checkpointer::Take(const std::function<Position()>& applied, const RecordKept& record_kept) {
  DEUT_CHECK(!environment_.trees.domain.guard_held());  // WaitForGuards would wait for it
  const MutexLock lock(mutex_);
  DEUT_RETURN_IF_ERROR(environment_.store.fatal());
  // Ids that are freed after this point may be named by images of this checkpoint; they wait for the next one.
  const uint32_t freed = environment_.trees.pages.TakeLimboIds();
  Capture capture;
  if (DEUT_STEP("X6.position_first")) capture.position = applied();
  Status status = TakeDirtyPages();
  Status no_room;
  if (status.ok()) {
    status = WriteDirtyPages();
    if (status == ErrorCode::kResourceExhausted && environment_.store.totals().dead_bytes > 0) {
      no_room = std::exchange(status, Status::Ok());
      capture.position = newest_;
    }
  }
  DEUT_POINT("checkpoint.after_pass");
  if (DEUT_OMITTED("X6.position_first")) capture.position = applied();
  DEUT_CHECK(capture.position >= newest_);  // the redo log may be trimmed up to an earlier position
  if (status.ok()) {
    // This precedes the capture: a part that dies after it is kept for this checkpoint (segment_store.h).
    environment_.store.BeginCheckpoint(set_->next());
    DEUT_IN_FLIGHT("dc.checkpoint_capture");
    if (replace_files_.exchange(false) && DEUT_STEP("checkpoint.replace_damaged")) lineages_.ForgetFiles();
    lineages_.Begin(/*complete=*/environment_.store.IsShortOfSpace());
    CountCapture();
    DEUT_POINT("checkpoint.captured");
    status = CaptureStructure(&capture);
  }
  if (status.ok()) {
    // A later checkpoint may have to be complete.
    environment_.store.ReserveForCheckpoint(kFileBytes + lineages_.CompleteBytes());
    status = WriteFile(capture);
  }
  lineages_.Clear();
  CountCapture();
  if (!status.ok()) {
    environment_.trees.pages.ReturnLimboIds(freed);
    return status;
  }
  const Position previous = std::exchange(newest_, capture.position);
  environment_.trees.pages.ReuseLimboIds(freed);
  taken_.fetch_add(1, std::memory_order_relaxed);
  // Files that could not be removed are removed the next time, unless the store has failed.
  (void)environment_.store.RemoveDeadSegments(set_->oldest_kept());
  DEUT_RETURN_IF_ERROR(environment_.store.fatal());
  // S2: this follows the removal, which makes room for it on a full disk, and precedes the announcement of the
  // position. A TC may rely on a checkpoint only after that. If the checkpoint is then lost, a later start is refused
  // rather than empty.
  if (record_kept && DEUT_STEP("S2.record_kept")) DEUT_RETURN_IF_ERROR(record_kept(set_->oldest_kept()));
  {
    const MutexLock stable_lock(stable_mutex_);
    const Position stable = set_->oldest_kept() == set_->newest() ? capture.position : previous;
    DEUT_CHECK(stable >= stable_);  // a TC may have relied on the one before
    stable_ = stable;
  }
  return no_room;
}

void Checkpointer::TakeMarks() {
  environment_.trees.pages.TakeDirty([dirty = &dirty_](uint64_t word, uint64_t marks) { dirty->AddWord(word, marks); });
  CountCapture();
}

Status Checkpointer::TakeDirtyPages() {
  TakeMarks();
  DEUT_POINT("checkpoint.marks_taken");
  // A thread whose mark was taken may not have changed its page yet. If the pass found the page clean, the change would
  // be in no checkpoint, because nothing marks the page again (mapping_table.h).
  return DEUT_STEP("checkpoint.wait_for_marks") ? WaitForGuards() : Status::Ok();
}

Status Checkpointer::WriteDirtyPages() {
  DEUT_IN_FLIGHT("dc.checkpoint_pass");
  DEUT_POINT("checkpoint.before_pass");
  flusher_->SetSpaceUse(SpaceUse::kCheckpoint);
  Status status;
  for (const TableId table : environment_.tables.LiveTables()) {
    if (status.ok()) status = WritePages(table);
  }
  // All of these pages that still exist are written. After an error the next checkpoint visits all of them again:
  // their marks are taken.
  if (status.ok() || DEUT_OMITTED("checkpoint.keep_marks")) dirty_.Clear();
  // Pages that were split meanwhile are written now, so that little is left to do while no page can be split. These
  // marks are kept: a thread may be about to change such a page.
  TakeMarks();
  for (const TableId table : environment_.tables.LiveTables()) {
    if (status.ok()) status = WriteStructure(table);
  }
  flusher_->SetSpaceUse(SpaceUse::kStructure);
  return status;
}

Status Checkpointer::WritePages(TableId table) {
  for (uint8_t level = 0;; ++level) {
    DEUT_RETURN_IF_ERROR(WriteLevel(table, level));
    const ReclamationDomain::Guard guard(environment_.trees.domain);
    BwTree* const tree = environment_.tables.FindTree(table);
    if (tree == nullptr || tree->root_level() <= level) return Status::Ok();
  }
}

Status Checkpointer::WriteStructure(TableId table) {
  uint8_t root_level = 0;
  {
    const ReclamationDomain::Guard guard(environment_.trees.domain);
    BwTree* const tree = environment_.tables.FindTree(table);
    if (tree == nullptr) return Status::Ok();  // the table was dropped
    root_level = tree->root_level();
  }
  for (uint8_t level = std::min<uint8_t>(1, root_level); level <= root_level; ++level) {
    DEUT_RETURN_IF_ERROR(WriteLevel(table, level));
  }
  return Status::Ok();
}

Status Checkpointer::WriteLevel(TableId table, uint8_t level) {
  BwTree::Walk walk;
  while (!walk.complete) {
    bool write = false;
    std::vector<std::string> to_load;
    {
      const ReclamationDomain::Guard guard(environment_.trees.domain);
      BwTree* const tree = environment_.tables.FindTree(table);
      if (tree == nullptr) break;
      Pass pass(*tree, *flusher_);
      tree->VisitPages(level, &walk, &pass, &dirty_);
      // A page that other threads kept changing is retried: the checkpoint must contain it with all its updates.
      if (pass.rest()) walk = BwTree::Walk{*pass.rest(), /*complete=*/false};
      write = pass.rest().has_value() || flusher_->full();
      to_load = pass.to_load();
    }
    if (write) DEUT_RETURN_IF_ERROR(flusher_->Write());
    if (!to_load.empty()) DEUT_RETURN_IF_ERROR(LoadSome(table, to_load));
  }
  return flusher_->Write();
}

// The walk returns to the first page that was not written, so it meets the others again.
Status Checkpointer::LoadSome(TableId table, std::span<const std::string> upper_bounds) {
  environment_.wait_for_memory();
  const Status loaded = environment_.loader.LoadAll(
      table, upper_bounds.first(std::min(kMaxLoadedPerBatch, upper_bounds.size())), Side::kBelow, PageStay::kTransient);
  if (loaded.ok()) return loaded;
  return DEUT_ERROR(kUnavailable, "the checkpoint is postponed: a page cannot be loaded: ", loaded.ToString());
}

Status Checkpointer::WaitForGuards() {
  using Flag = std::shared_ptr<std::atomic<bool>>;
  const auto passed = std::make_shared<std::atomic<bool>>(false);
  {
    // The flag is freed once every guard held now has ended; perhaps after this call, so it is shared.
    const ReclamationDomain::Guard guard(environment_.trees.domain);
    environment_.trees.domain.Retire(
        new Flag(passed),
        [](void* object) {
          const std::unique_ptr<Flag> flag(static_cast<Flag*>(object));
          (*flag)->store(true, std::memory_order_release);
        },
        sizeof(Flag));
  }
  const MonotonicTime limit = environment_.runtime.Now() + kMaxGracePeriod;
  for (;;) {
    environment_.trees.domain.Collect();
    if (passed->load(std::memory_order_acquire)) return Status::Ok();
    DEUT_POINT("checkpoint.waits_for_guards");
    if (environment_.runtime.Now() >= limit) {
      return DEUT_ERROR(kResourceExhausted, "the checkpoint is postponed: a thread has held a guard on pages for ",
                        std::chrono::duration_cast<std::chrono::seconds>(kMaxGracePeriod).count(), " s");
    }
    environment_.runtime.SleepUntil(environment_.runtime.Now() + kGraceStep);
  }
}

Status Checkpointer::CaptureStructure(Capture* capture) {
  DEUT_IN_FLIGHT("dc.checkpoint_structure");
  environment_.gate.Close();
  // A thread that read the open gate inside an earlier guard may still be in the middle of a split or merge, or of an
  // exchange of an image.
  Status status = WaitForGuards();
  // Now the marks of all splits and merges are there. Those of leaves that were updated since the pass are kept for the
  // next checkpoint.
  if (DEUT_STEP("checkpoint.take_structure")) TakeMarks();
  {
    const TableRegistry::Pause pause(environment_.tables);
    for (const TableId table : environment_.tables.LiveTables()) {
      if (status.ok()) status = WriteStructure(table);
    }
    DEUT_POINT("checkpoint.before_snapshot");
    if (status.ok()) {
      CaptureTables(capture);
      lineages_.End();
      CountCapture();
    }
  }
  environment_.gate.Open();
  if (DEUT_OMITTED("checkpoint.keep_marks")) dirty_.Clear();
  return status;
}

void Checkpointer::CaptureTables(Capture* capture) {
  const ReclamationDomain::Guard guard(environment_.trees.domain);
  const TableRegistry::Snapshot& tables = environment_.tables.snapshot();
  for (const Table* table : tables.live) {
    DEUT_CHECK(environment_.trees.pages.HasImage(table->tree->root()));
    capture->tables.push_back(
        Capture::Table{table->id, table->tree->root(), table->name, 0, table->tree->compression()});
  }
  for (const DroppedIds::Run run : tables.dropped.runs()) {
    capture->tables.push_back(
        Capture::Table{TableId(run.first), kNoPage, {}, run.last - run.first, Compression::kNone});
  }
  std::sort(capture->tables.begin(), capture->tables.end(),
            [](const Capture::Table& a, const Capture::Table& b) { return a.id < b.id; });
}

Status Checkpointer::WriteFile(const Capture& capture) {
  DEUT_IN_FLIGHT("dc.checkpoint_file");
  CheckpointHead head;
  head.number = set_->next();
  head.dc = environment_.dc;
  head.incarnation = environment_.incarnation;
  head.position = capture.position;
  // The previous checkpoint is kept, too. If there is none, this one alone determines the stable position.
  head.stable = set_->newest().value != 0 ? newest_ : capture.position;
  DEUT_CHECK(head.stable <= head.position);
  head.has_table_options =
      std::ranges::any_of(capture.tables, [](const auto& table) { return table.compression != Compression::kNone; });
  lineages_.FillHead(&head);
  DEUT_ASSIGN_OR_RETURN(const std::vector<SegmentExtent> segments, environment_.store.SyncAll(head.number));
  head.next_segment = environment_.store.next_segment();
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointWriter> writer,
                        CheckpointWriter::Create(environment_.storage, environment_.directory, head));
  for (const Capture::Table& table : capture.tables) {
    DEUT_RETURN_IF_ERROR(writer->AddTable(
        CheckpointTable{table.id, table.root, table.name, table.dropped_ids_behind, table.compression}));
  }
  for (const SegmentExtent& segment : segments) DEUT_RETURN_IF_ERROR(writer->AddSegment(segment));
  DEUT_RETURN_IF_ERROR(lineages_.AddPages(writer.get()));
  CheckpointAncestor file;
  const Status completed = set_->Complete(std::move(writer), &file);
  // An error may come after the file was completed, from the removal of files that were passed over. The next
  // checkpoint then takes this one for the previous one, and removes the files of the one before. So the lineages have
  // to know the file, or a later checkpoint would name files that are gone.
  const bool has_file = file.number == head.number && DEUT_STEP("checkpoint.count_completed");
  if (completed.ok() || has_file) lineages_.Completed(file);
  return completed;
}

}  // namespace deut::dc
