// The part of Collector that serves requests of other threads: tasks between two rounds, their Access, and marks (collector.h).
#include <algorithm>
#include <functional>
#include <utility>

#include "common/testing/test_points.h"
#include "tc/mvcc/collector.h"

namespace deut::tc {

void Collector::RunBetweenRounds(std::function<void(Access&)> run) {
  Task task;
  task.run = std::move(run);
  task.next = tasks_.load(std::memory_order_relaxed);
  while (!tasks_.compare_exchange_weak(task.next, &task, std::memory_order_seq_cst)) {
  }
  WakeUp();
  DEUT_POINT("collector.asked");
  // The collector's thread has ended: it touches nothing any more, and everything has been collected. So this thread may run the task.
  if (stopped_.load(std::memory_order_seq_cst)) RunTasks();
  task.done.Wait(runtime_, kNoDeadline);
}

void Collector::RunTasks() {
  Task* task = tasks_.exchange(nullptr, std::memory_order_seq_cst);
  if (task == nullptr) return;
  // After Stop several threads may run tasks at once. Nothing is left to collect then, and the tasks only read.
  const bool alone = !stopped_.load(std::memory_order_seq_cst);
  if (alone) {
    // A transaction or an entry may have been handed over after this round emptied the stacks and before the task was queued.
    DrainFinished();
    entries_.TakeArrivals();
    unlinker_.CollectAborted();
    if (NoneUnfolded()) unlinker_.SweepPostings(true);  // also the postings of folded commits
  }
  Access access(*this);
  while (task != nullptr) {
    Task* const next = task->next;
    task->run(access);
    task->done.Signal(runtime_);
    task = next;
  }
  if (alone) unlinker_.CollectAborted();
}

void Collector::Access::Fold() { collector_.folder_.Fold(); }

void Collector::Access::ClearReadCache() {
  ReadCache* const cache = collector_.options_.read_cache;
  // After Stop several threads may be here. The remaining copies are freed with the record table.
  if (cache == nullptr || collector_.stopped_.load(std::memory_order_seq_cst)) return;
  const Timestamp low_water = collector_.options_.low_water();
  cache->Clear([&](RecordEntry* entry) { collector_.entries_.Remove(entry, low_water); });
}

bool Collector::Access::ForgetTable(TableId table, Lsn dropped_at, const RangePartition& ranges) {
  Collector& c = collector_;
  // Commits leave in commit order: once the drop has left, so has every commit in the table. A folded commit has given up its postings.
  const CommitQueue& unfolded = c.commits_.unfolded();
  if (!unfolded.empty() && unfolded.front().commit <= dropped_at) return false;
  if (!c.applied_.empty() && c.applied_.front().commit() <= dropped_at) return false;
  if (c.folder_.HasRuns(table)) return false;
  c.unlinker_.ForgetPostings(ranges);
  return true;
}

Collector::Mark Collector::Access::MarkFinished() const {
  Mark mark;
  mark.commit_ = collector_.commits_.last_taken();
  return mark;
}

bool Collector::Access::Collected(Mark* mark) { return collector_.Collected(mark); }

bool Collector::Collected(Mark* mark) {
  // After Stop several threads may be here, and nothing is left to collect.
  if (stopped_.load(std::memory_order_seq_cst)) return true;
  const auto waits = [&](Lsn first) { return first <= mark->commit_; };
  if (!applied_.empty() && waits(applied_.front().commit())) return false;
  const CommitQueue& unfolded = commits_.unfolded();
  if (!unfolded.empty() && waits(unfolded.front().commit)) return false;
  if (!commits_.folded().empty() && waits(commits_.folded().front().last().commit)) return false;
  if (spiller_.runs() != nullptr && spiller_.runs()->MayHoldUnapplied(mark->commit_, unlinker_.own_collected_through()))
    return false;
  if (entries_.empty()) return true;
  // Set once per mark: entries that are read later must not prolong the wait.
  if (!mark->read_) mark->read_ = entries_.LatestRead();
  const Timestamp low_water = options_.low_water();
  if (low_water < *mark->read_) return false;
  entries_.RetryAll(low_water);
  return !entries_.HoldsReadThrough(*mark->read_);
}

Collector::Mark Collector::MarkFinished() {
  Mark mark;
  RunBetweenRounds([&](Access& access) { mark = access.MarkFinished(); });
  return mark;
}

bool Collector::WaitCollected(Mark* mark, Deadline deadline) {
  for (;;) {
    bool collected = false;
    RunBetweenRounds([&](Access& access) { collected = access.Collected(mark); });
    if (collected) return true;
    const MonotonicTime now = runtime_.Now();
    if (now >= deadline) return false;
    runtime_.SleepUntil(std::min(deadline, now + options_.period));
  }
}

}  // namespace deut::tc
