// LoadThread: reads pages from storage into memory, many at once, on one thread with one queue. Internal to PageLoader.
//
// States of a load. Only the thread changes them, except the first:
//   arrived   Add has put it into the inbox (load_inbox.h)
//   waiting   it is in `loads_`, and waits for a place, perhaps also for memory (load_queue.h)
//   opening   a file of its image is not open. It is set aside, and takes no place. When the FileOpener has opened its
//             files, it needs a place and memory again.
//   reading   it has a place; the transfers of all its parts are in the queue
//   read      all its transfers were reaped, or a part cannot be read
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
// Loads ahead. A load without a waiter never waits for memory: it is given up when memory is short, or when the loader
//   ends. If a waiter joins it before, it waits like others.
// Places. A load has as many places as its image has parts, from the submission of its transfers until its page is
//   installed or given up. There are `reads_in_flight`; only a load that has more parts alone takes more. So this
//   bounds the transfers in flight, the buffers and the pages that are not installed yet. Besides, at most kMaxOpening
//   loads have open files without a place.
// Waiting. The thread waits at one place at a time:
//   - in the inbox, for an arrival, if it has no load
//   - in the inbox, if its loads wait for memory or for files; at most LoadInbox::kMemoryCheckInterval
//   - else in Reap, for a transfer or for the inbox
// The thread never waits for memory inside a load, for another load, for a file that is opened, or for a waiter.
// Turns. One turn of the thread takes the new arrivals, begins the reads for which there is a place, finishes at most
//   one page and calls at most one waiter. So the device stays busy while pages are built and requests are answered,
//   and no waiter is passed for long. A waiter has to do a bounded piece of work for that (CallAgain).
// Thread-safety: Add and OnMemoryFreed from any thread. Ownership: owns its thread, its queue and its loads; borrows
// the rest. The waiters belong to their callers.
#ifndef DC_PAGE_CACHE_LOAD_THREAD_H_
#define DC_PAGE_CACHE_LOAD_THREAD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/bwtree/inner_view.h"
#include "dc/bwtree/page_load.h"
#include "dc/page_cache/file_opener.h"
#include "dc/page_cache/image_read.h"
#include "dc/page_cache/leaf_load.h"
#include "dc/page_cache/load_inbox.h"
#include "dc/page_cache/load_queue.h"
#include "dc/page_cache/load_waiter.h"
#include "dc/page_cache/ready_waiters.h"
#include "dc/page_store/page_id.h"
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
  // True: a page may be read into memory.
  virtual bool HasMemory(LoadAdmission admission) = 0;
  // Adds to the size of the pages that are being read. The sum of all calls for one page is 0 when it is installed.
  virtual void AddLoading(int64_t bytes) = 0;

 protected:
  ~LoadHost() = default;
};

class LoadThread final : private FileOpener::Client {
 public:
  // Largest number of loads that have files opened for them and have no place yet.
  static constexpr size_t kMaxOpening = 4;

  // `reads_in_flight`: number of places, at least 1. Returns the error of making the queue.
  static Result<std::unique_ptr<LoadThread>> Create(Runtime& runtime, SegmentStore& store, LoadHost& host,
                                                    FileOpener& opener, size_t reads_in_flight);
  // Waits for the loads in flight, and for those that have waiters. REQUIRES: no thread adds loads any more.
  ~LoadThread();
  LoadThread(const LoadThread&) = delete;
  LoadThread& operator=(const LoadThread&) = delete;

  // `id`: the page that the target names, and that is not in memory. `waiter` may be null.
  void Add(PageId id, TableId table, const Target& target, LoadUrgency urgency, PageStay stay, LoadWaiter* waiter);
  // Some memory was freed, or is no longer limited.
  void OnMemoryFreed();

  // Number of loads whose reads were begun.
  uint64_t loads() const { return loads_begun_.load(std::memory_order_relaxed); }
  // True on the thread of any LoadThread. A load that blocks there would never end.
  static bool IsCurrent();
  // Calls waiter->OnLoaded again, with OK, after the other waiters that are ready. REQUIRES: the caller is in OnLoaded.
  static void CallAgain(LoadWaiter* waiter);

 private:
  using HasMemoryFor = absl::FunctionRef<bool(LoadAdmission)>;

  // The loads that wait for a file.
  struct Opening {
    std::deque<LeafLoad*> unopened;  // set aside until the opener has room
    std::deque<LeafLoad*> opened;    // they wait for a place
    size_t count = 0;                // loads that the opener has, and `opened`
  };

  LoadThread(Runtime& runtime, SegmentStore& store, LoadHost& host, FileOpener& opener, size_t reads_in_flight,
             std::unique_ptr<IoQueue> queue);

  void OnOpened(LeafLoad* load) override { inbox_.AddOpened(load); }

  void Run();
  // Waits if there is nothing to do, and takes the loads that have arrived. False: the thread ends.
  bool TakeArrivals();
  void Accept(LoadArrival arrival);
  void BeginReads();
  // Returns the load that may begin now; it is prepared. Null: there is none, or it has to wait.
  LeafLoad* NextToRead(HasMemoryFor has_memory);
  LeafLoad* NextOpened(HasMemoryFor has_memory);
  bool HasMemory(LoadAdmission admission);
  bool HasPlaceFor(const LeafLoad& load) const;
  // Looks for the page's image. False: the page needs no read any more, and the load is on its way to its end.
  bool FindImage(LeafLoad* load);
  void SetAside(LeafLoad* load);
  void SendToOpener();
  // Gives up the loads that nobody waits for.
  void DropLoadsAhead();
  // Submits the transfers of the load, except the last one, which becomes *last. The former *last is submitted, too.
  void SubmitLater(LeafLoad* load, IoRequest** last);
  // The queue's answer to a request that was handed to it. An accepted request belongs to the queue, which may have
  // completed it already.
  void EndIfRefused(IoRequest* request, Status submitted);
  // The transfer has ended, or could not be submitted.
  void EndTransfer(const IoRequest& request);
  void Reap();
  void Finish(LeafLoad* load);
  void End(LeafLoad* load, Status status);
  void Recycle(std::unique_ptr<ImageRead> read);

  Runtime& runtime_;
  SegmentStore& store_;
  LoadHost& host_;
  FileOpener& opener_;
  const size_t reads_in_flight_;
  const std::unique_ptr<IoQueue> queue_;
  LoadInbox inbox_;
  std::atomic<uint64_t> loads_begun_{0};
  std::atomic<bool> starved_{false};  // a load waits for memory

  // Only the thread uses these.
  LoadInbox::Taken taken_;
  absl::flat_hash_map<PageId, std::unique_ptr<LeafLoad>> loads_;
  LoadQueue waiting_;
  Opening opening_;
  size_t places_taken_ = 0;
  std::deque<LeafLoad*> read_;
  ReadyWaiters ready_;
  std::vector<IoRequest*> completed_;
  std::vector<std::unique_ptr<ImageRead>> spare_;  // idle

  std::unique_ptr<Thread> thread_;  // the last member: it uses the others
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_LOAD_THREAD_H_
