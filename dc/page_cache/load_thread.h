// LoadThread: reads pages from storage into memory, many at once, on one thread with one queue. Internal to PageLoader.
//
// States of a load. Only the thread changes them, except the first:
//   arrived   Add has put it into `arrived_`, under the mutex
//   waiting   it is in `loads_`, and waits for a place in the queue; one that is not urgent also waits for memory
//   reading   the transfers of all its parts are in the queue
//   read      all its transfers were reaped
//   (ended)   it has left `loads_`; then its waiters are called
// Joining. At most one load of a page is in `loads_`. A load that arrives for a page that has one only adds its waiter
//   to it. If the page has a newer image meanwhile, the older load installs nothing, and the waiter looks again. A load
//   leaves `loads_` before its waiters are called, and arrivals are taken by the same thread. So a waiter that starts
//   another load never joins the one that has just ended.
// Images. The thread asks for the page's image when it begins to read, not when the load arrives. Meanwhile the page
//   may have been loaded (then it is not read again), or written anew.
// Urgency. A load that makes room (the evictor's), or whose caller has waited for memory itself, waits only for a
//   place. If it joins a load that waits for memory, that load becomes urgent (load.take_along). Otherwise the evictor
//   would wait for a load that waits for the evictor.
// Waiting. The thread waits at one place at a time:
//   - for an arrival, if it has no load
//   - for memory, if all its loads wait for memory; at most kMemoryCheckInterval
//   - else in Reap, for a transfer, an arrival (Wake) or memory (Wake)
//   Add and OnMemoryFreed change their state under the mutex before they call Wake, and the thread takes arrivals
//   after every Reap. So no wake is lost (IoQueue::Wake).
// The thread never waits for memory inside a load, for another load, or for a waiter. It may wait for the opening of
//   a file (open_files.h).
// Order. After each load that has ended, the thread first submits the reads that have arrived meanwhile. So the device
//   stays busy while pages are built.
// Thread-safety: Add and OnMemoryFreed from any thread. Ownership: owns its thread, its queue and its loads; borrows
// the rest. The waiters belong to their callers.
#ifndef DC_PAGE_CACHE_LOAD_THREAD_H_
#define DC_PAGE_CACHE_LOAD_THREAD_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/inner_view.h"
#include "dc/bwtree/page_load.h"
#include "dc/page_cache/load_waiter.h"
#include "dc/page_store/page_id.h"
#include "dc/page_store/part_buffer.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

// The part of the loader that knows trees and memory. The thread calls it; no method blocks.
class LoadHost {
 public:
  // As BwTree::BeginLoad. False also if the table is gone.
  virtual bool BeginLoad(TableId table, const Target& target, PageLoad* load) = 0;
  // `read` is the outcome of the read; if it is OK, `load` has the page. Installs the page. Returns the status that the
  // waiters get.
  virtual Status FinishLoad(TableId table, const Target& target, PageLoad* load, const Status& read) = 0;
  // True: a page may be read into memory. `loading_bytes`: size of the pages that this thread is reading already.
  virtual bool HasMemory(uint64_t loading_bytes) = 0;

 protected:
  ~LoadHost() = default;
};

class LoadThread {
 public:
  // `reads_in_flight`: a load begins to read while fewer transfers than this are in flight; at least 1. The parts of one
  // image are read together, so there may be a few more. Returns the error of making the queue.
  static Result<std::unique_ptr<LoadThread>> Create(Runtime& runtime, SegmentStore& store, LoadHost& host,
                                                    size_t reads_in_flight);
  // Waits for the loads in flight. REQUIRES: no thread adds loads any more.
  ~LoadThread();
  LoadThread(const LoadThread&) = delete;
  LoadThread& operator=(const LoadThread&) = delete;

  // `id`: the page that the target names, and that is not in memory. `waiter` may be null.
  void Add(PageId id, TableId table, const Target& target, LoadUrgency urgency, LoadWaiter* waiter);
  // Some memory was freed, or is no longer limited.
  void OnMemoryFreed();

  // Number of loads whose reads were begun.
  uint64_t loads() const { return loads_begun_.load(std::memory_order_relaxed); }
  // True on the thread of any LoadThread. A load that blocks there would never end.
  static bool IsCurrent();

 private:
  struct Load {
    PageId id;
    TableId table;
    std::string key;
    Side side = Side::kAt;
    LoadUrgency urgency = LoadUrgency::kNow;
    LoadWaiter* waiters = nullptr;  // a list
    bool reading = false;
    bool needless = false;  // there was nothing to read when the load began to read
    ImageParts parts;       // of a load that is reading
    size_t transfers_left = 0;
    uint64_t bytes = 0;
    std::array<Status, ImageParts::kMax> begun;  // the outcome of BeginRead for each part
    std::array<PartBuffer, ImageParts::kMax> buffers;
  };

  LoadThread(Runtime& runtime, SegmentStore& store, LoadHost& host, size_t reads_in_flight,
             std::unique_ptr<IoQueue> queue);

  void Run();
  // Waits if there is nothing to do, and takes the loads that have arrived. False: the thread ends.
  bool TakeArrivals();
  void Accept(std::unique_ptr<Load> load);
  void BeginReads();
  // False: the page needs no read any more.
  bool FindImage(Load* load);
  // Removes the next load from the waiting ones. Null: there is none, or it has to wait. `in_flight`: transfers.
  Load* NextToRead(size_t in_flight);
  bool HasMemory();
  // The transfer has ended, or could not be submitted.
  void EndTransfer(const IoRequest& request);
  void Reap();
  void Finish(Load* load);
  std::unique_ptr<Load> NewLoadLocked() DEUT_REQUIRES(mutex_);
  void Recycle(std::unique_ptr<Load> load);

  Runtime& runtime_;
  SegmentStore& store_;
  LoadHost& host_;
  const size_t reads_in_flight_;
  const std::unique_ptr<IoQueue> queue_;
  std::atomic<uint64_t> loads_begun_{0};
  std::atomic<bool> starved_{false};  // a load waits for memory

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::unique_ptr<Load>> arrived_ DEUT_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Load>> free_ DEUT_GUARDED_BY(mutex_);
  bool memory_freed_ DEUT_GUARDED_BY(mutex_) = false;
  bool stop_ DEUT_GUARDED_BY(mutex_) = false;

  // Only the thread uses these.
  std::vector<std::unique_ptr<Load>> taken_;
  absl::flat_hash_map<PageId, std::unique_ptr<Load>> loads_;
  std::deque<Load*> urgent_;   // waiting
  std::deque<Load*> patient_;  // waiting, also for memory
  std::deque<Load*> read_;
  std::vector<IoRequest*> completed_;
  uint64_t loading_bytes_ = 0;  // size of the loads that are reading or read

  std::unique_ptr<Thread> thread_;  // the last member: it uses the others
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_LOAD_THREAD_H_
