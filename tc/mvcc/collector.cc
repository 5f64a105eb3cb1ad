#include "tc/mvcc/collector.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/range_partition.h"
#include "tc/mvcc/version_chain.h"

namespace deut::tc {
namespace {

// Postings of collected transactions that a range may keep before they are unlinked.
constexpr uint32_t kSweepPostings = 16;

bool LaterCommit(const TransactionRecord* a, const TransactionRecord* b) { return a->commit_lsn() > b->commit_lsn(); }

// The place of the transaction's last logged update.
Position LastPosition(const TransactionRecord& record) {
  uint32_t last = 0;
  record.write_set().ForEach([&](const WriteItem& item) {
    if (item.version != nullptr) last = std::max(last, item.version->sequence);
  });
  return Position{record.commit_lsn(), last};
}

}  // namespace

Collector::Collector(Options options, Runtime& runtime, ReclamationDomain& domain, RecordTable& records)
    : options_(std::move(options)), runtime_(runtime), domain_(domain), records_(records) {}

Collector::~Collector() { Stop(); }

void Collector::Start() {
  thread_ = runtime_.StartThread("tc-collector", [this] { Run(); });
}

void Collector::Stop() {
  if (!thread_) return;
  stop_.store(true, std::memory_order_seq_cst);
  WakeUp();
  thread_->Join();
  thread_.reset();
  RunTasks();
  TakeFinished();
  std::vector<TransactionRecord*> rest = std::exchange(aborted_, {});
  std::sort_heap(committed_.begin(), committed_.end(), LaterCommit);
  std::reverse(committed_.begin(), committed_.end());
  rest.insert(rest.end(), applied_.begin(), applied_.end());
  rest.insert(rest.end(), committed_.begin(), committed_.end());
  applied_.clear();
  committed_.clear();
  Collect(rest);
  SweepPostings(true);
  {
    ReclamationDomain::Guard guard(domain_);
    RetryDeferred(kMaxTimestamp);
  }
  // From here on whoever brings a task runs it: each either is seen by this last look, or sees `stopped_`.
  stopped_.store(true, std::memory_order_seq_cst);
  RunTasks();
}

void Collector::WakeUp() {
  work_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) != 0) runtime_.WakeAll(work_);
}

void Collector::Finish(TransactionRecord* record) {
  uncollected_.fetch_add(1, std::memory_order_relaxed);
  TransactionRecord* head = finished_.load(std::memory_order_relaxed);
  do {
    record->next_finished = head;
    DEUT_POINT("collector.finish.before_cas");
  } while (!finished_.compare_exchange_weak(head, record, std::memory_order_seq_cst));
  // The thread looks by itself every period while it has work; it is woken only from the long sleep.
  if (sleeping_.load(std::memory_order_seq_cst) == 2) WakeUp();
}

void Collector::RunExclusive(std::function<void(Access&)> run) {
  Task task;
  task.run = std::move(run);
  task.next = tasks_.load(std::memory_order_relaxed);
  while (!tasks_.compare_exchange_weak(task.next, &task, std::memory_order_seq_cst)) {
  }
  WakeUp();
  DEUT_POINT("collector.asked");
  // Nobody touches what the thread had any more, and all of it has been collected.
  if (stopped_.load(std::memory_order_seq_cst)) RunTasks();
  task.done.Wait(runtime_, kNoDeadline);
}

void Collector::RunTasks() {
  Task* task = tasks_.exchange(nullptr, std::memory_order_seq_cst);
  if (task == nullptr) return;
  // After the end several threads may be here at once; then nothing is left to be collected, and they only look.
  const bool alone = !stopped_.load(std::memory_order_seq_cst);
  if (alone) {
    TakeFinished();
    CollectAborted();
    if (committed_.empty() && applied_.empty()) SweepPostings(true);
  }
  Access access(*this);
  while (task != nullptr) {
    Task* const next = task->next;
    task->run(access);
    task->done.Signal(runtime_);
    task = next;
  }
  if (alone) CollectAborted();
}

bool Collector::Access::Idle() const {
  return collector_.applied_.empty() && collector_.committed_.empty() && collector_.deferred_.empty();
}

bool Collector::WaitIdle(Deadline deadline) {
  for (;;) {
    bool idle = false;
    RunExclusive([&](Access& access) { idle = access.Idle(); });
    if (idle) return true;
    const MonotonicTime now = runtime_.Now();
    if (now >= deadline) return false;
    runtime_.SleepUntil(std::min(deadline, now + options_.period));
  }
}

void Collector::Run() {
  for (;;) {
    const uint32_t seen = work_.load(std::memory_order_seq_cst);
    Round();
    if (stop_.load(std::memory_order_seq_cst)) return;
    const bool waiting = !committed_.empty() || !applied_.empty() || !deferred_.empty();
    // Sleep lightly (1) while there is something to look at again soon, deeply (2) otherwise.
    sleeping_.store(waiting ? 1 : 2, std::memory_order_seq_cst);
    const bool arrived = finished_.load(std::memory_order_seq_cst) != nullptr && !waiting;
    if (!arrived && !stop_.load(std::memory_order_seq_cst)) {
      runtime_.Wait(work_, seen, waiting ? runtime_.Now() + options_.period : kNoDeadline);
    }
    sleeping_.store(0, std::memory_order_seq_cst);
  }
}

void Collector::Round() {
  // What the previous round found applied has been kept for one round (S5).
  Collect(std::exchange(applied_, {}));
  // The applied position first, the finished transactions second: a commit at or below the position was below low-water, so every
  // earlier writer of its keys had cleared its slot, hence was handed over. Else an earlier commit could arrive after a later one of
  // the same key was collected, and with it the version it points to.
  Position applied = options_.applied();
  TakeFinished();
  DEUT_POINT("collector.taken");
  if (DEUT_OMITTED("S6.applied_first")) applied = options_.applied();
  CollectAborted();
  if (applied.commit.value > collected_through_.load(std::memory_order_relaxed)) {
    collected_through_.store(applied.commit.value,
                             std::memory_order_seq_cst);  // before anything is collected because of it
  }
  while (!committed_.empty()) {
    TransactionRecord* const first = committed_.front();
    if (LastPosition(*first) > applied && !DEUT_OMITTED("S6.applied")) break;
    std::pop_heap(committed_.begin(), committed_.end(), LaterCommit);
    committed_.pop_back();
    applied_.push_back(first);
  }
  if (!deferred_.empty()) {
    const Timestamp low_water = options_.low_water();
    ReclamationDomain::Guard guard(domain_);
    RetryDeferred(low_water);
  }
  if (committed_.empty() && applied_.empty()) SweepPostings(true);
  RunTasks();
}

void Collector::TakeFinished() {
  TransactionRecord* record = finished_.exchange(nullptr, std::memory_order_seq_cst);
  while (record != nullptr) {
    TransactionRecord* const next = record->next_finished;
    if (record->status() == TransactionStatus::kCommitted && record->commit_lsn().value != 0) {
      committed_.push_back(record);
      std::push_heap(committed_.begin(), committed_.end(), LaterCommit);
    } else {
      aborted_.push_back(record);
    }
    record = next;
  }
}

void Collector::CollectAborted() { Collect(std::exchange(aborted_, {})); }

void Collector::Collect(const std::vector<TransactionRecord*>& gone) {
  if (gone.empty()) return;
  uint64_t bytes = 0;
  const Timestamp low_water = options_.low_water();
  for (TransactionRecord* record : gone) {
    bytes += record->version_bytes;
    if (record->status() == TransactionStatus::kCommitted && record->commit_lsn().value != 0) {
      DEUT_CHECK(record->commit_lsn() > last_collected_);  // else its versions may be gone already
      last_collected_ = record->commit_lsn();
    }
    CollectItems(*record, low_water);
    record->set_collected();
    ReclamationDomain::Guard guard(domain_);
    for (Range* range : record->posted) {
      const auto [entry, added] = gone_postings_.try_emplace(range, 0);
      if (!added) range->DropReference(domain_);  // the entry has one
      ++entry->second;
    }
    record->DropReference(domain_);
  }
  if (bytes != 0 && options_.released) options_.released(bytes);
  SweepPostings(false);
  uncollected_.fetch_sub(gone.size(), std::memory_order_relaxed);
  collected_.fetch_add(gone.size(), std::memory_order_relaxed);
}

void Collector::SweepPostings(bool all) {
  std::vector<std::pair<Range*, uint32_t>> replaced;
  for (auto it = gone_postings_.begin(); it != gone_postings_.end();) {
    const auto [range, gone] = *it;
    ReclamationDomain::Guard guard(domain_);
    if (range->sealed() && !range->partition()->Holds(*range)) {
      replaced.emplace_back(range, gone);
      gone_postings_.erase(it++);
      continue;
    }
    if (!all && gone < std::max<uint64_t>(kSweepPostings, range->posting_count() / 2)) {
      ++it;
      continue;
    }
    range->RemovePostings(domain_, [](const TransactionRecord& record) {
      return record.collected() || DEUT_OMITTED("S6.posting_collected");
    });
    if (range->sealed() && !DEUT_OMITTED("P.sealed_after")) {  // its copies may have what has just been unlinked here
      ++it;
      continue;
    }
    range->DropReference(domain_);
    gone_postings_.erase(it++);
  }
  if (replaced.empty()) return;
  for (const auto& [range, gone] : replaced) CountInSuccessors(range, gone);
  if (all) SweepPostings(true);
}

void Collector::CountInSuccessors(Range* range, uint32_t gone) {
  ReclamationDomain::Guard guard(domain_);
  const RangeMap& map = range->partition()->map();
  const size_t last = map.IndexBelow(range->high());
  for (size_t i = map.IndexOf(range->low()); i <= last && !DEUT_OMITTED("P.count_copies"); ++i) {
    const auto [entry, added] = gone_postings_.try_emplace(&map.at(i), 0);
    if (added) map.at(i).AddReference();
    entry->second += gone;
  }
  range->DropReference(domain_);
}

void Collector::CollectItems(TransactionRecord& record, Timestamp low_water) {
  const bool committed = record.status() == TransactionStatus::kCommitted;
  ReclamationDomain::Guard guard(domain_);
  record.write_set().ForEachMutable([&](WriteItem& item) {
    RecordEntry* const entry = records_.Find(item.hash, item.table, item.key);
    if (entry == nullptr) return;
    if (committed && item.version != nullptr) {
      CollectApplied(*entry, item.version, domain_);
    } else {
      RemoveDeadAndApplied(*entry, domain_);
    }
    if (entry->word.Load().head == nullptr) RemoveEntry(entry, low_water);
  });
}

void Collector::RemoveEntry(RecordEntry* entry, Timestamp low_water) {
  if (entry->deferred || records_.Remove(entry, low_water)) return;
  if (entry->word.Load().head != nullptr) return;  // somebody installed; its collection will come here again
  entry->deferred = true;
  deferred_.push_back(entry);
  deferred_count_.store(deferred_.size(), std::memory_order_relaxed);
}

void Collector::RetryDeferred(Timestamp low_water) {
  for (size_t n = deferred_.size(); n > 0; --n) {
    RecordEntry* const entry = deferred_.front();
    deferred_.pop_front();
    entry->deferred = false;
    const HeadWord::Value word = entry->word.Load();
    if (word.head != nullptr) continue;
    if (deferred_.size() >= options_.max_deferred_entries && !DEUT_OMITTED("R6.over_budget"))
      records_.RaiseFloor(entry->hash, word.last_read());  // R6: floor first
    if (records_.Remove(entry, low_water) || entry->word.Load().head != nullptr) continue;
    entry->deferred = true;
    deferred_.push_back(entry);
  }
  deferred_count_.store(deferred_.size(), std::memory_order_relaxed);
}

}  // namespace deut::tc
