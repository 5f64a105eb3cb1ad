#include "dc/tables/table_reaper.h"

#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::dc {

TableReaper::TableReaper(Runtime& runtime)
    : runtime_(runtime), thread_(runtime.StartThread("dc-reaper", [this] { Run(); })) {}

TableReaper::~TableReaper() { Stop(); }

void TableReaper::Add(Table* table) {
  tables_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(table->tree->statistics().bytes, std::memory_order_relaxed);
  table->next_doomed = added_.load(std::memory_order_relaxed);
  while (!added_.compare_exchange_weak(table->next_doomed, table, std::memory_order_seq_cst)) {
  }
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(wakes_);
  // The order (exchange above, then this load) mirrors Stop (store of `stop_`, then FreeAdded). Either this load sees
  // that the reaper stops, or the reaper's last FreeAdded sees the table.
  if (stop_.load(std::memory_order_seq_cst)) FreeAdded();
}

void TableReaper::Stop() {
  if (thread_ == nullptr) return;
  stop_.store(true, std::memory_order_seq_cst);
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(wakes_);
  thread_->Join();
  thread_.reset();
  FreeAdded();
}

void TableReaper::Run() {
  while (!stop_.load(std::memory_order_seq_cst)) {
    const uint32_t seen = wakes_.load(std::memory_order_seq_cst);
    FreeAdded();
    if (!stop_.load(std::memory_order_seq_cst)) runtime_.Wait(wakes_, seen, kNoDeadline);
  }
}

void TableReaper::FreeAdded() {
  Table* table = added_.exchange(nullptr, std::memory_order_seq_cst);
  while (table != nullptr) Free(std::exchange(table, table->next_doomed));
}

void TableReaper::Free(Table* table) {
  BwTree& tree = *table->tree;
  for (bool done = false; !done;) {
    const uint64_t before = tree.statistics().bytes;
    const size_t most = stop_.load(std::memory_order_relaxed) ? SIZE_MAX : kPagesPerStep;
    const MonotonicTime begin = runtime_.Now();
    DEUT_POINT("table_reaper.step");
    size_t freed = 0;
    done = tree.FreePages(most, &freed);
    pages_freed_.fetch_add(freed, std::memory_order_relaxed);
    const uint64_t left = tree.statistics().bytes;
    DEUT_CHECK(left <= before);  // nobody else changes a doomed tree
    bytes_.fetch_sub(before - left, std::memory_order_relaxed);
    if (!done) Pause(runtime_.Now() - begin);
  }
  bytes_.fetch_sub(tree.statistics().bytes, std::memory_order_relaxed);
  delete table;
  const uint64_t doomed = tables_.fetch_sub(1, std::memory_order_relaxed);
  DEUT_CHECK(doomed > 0);
}

void TableReaper::Pause(Duration time) {
  // The word is read first: if Stop comes in between, the wait finds it changed. Add changes it, too, and then the
  // pause is shorter.
  const uint32_t seen = wakes_.load(std::memory_order_seq_cst);
  if (!stop_.load(std::memory_order_seq_cst)) runtime_.Wait(wakes_, seen, runtime_.Now() + time);
}

}  // namespace deut::dc
