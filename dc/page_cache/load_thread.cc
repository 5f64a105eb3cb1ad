#include "dc/page_cache/load_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/check.h"
#include "common/testing/flight_board.h"
#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

// The memory budget is checked by itself after this time: garbage may have been freed, of which nobody tells.
constexpr Duration kMemoryCheckInterval = std::chrono::milliseconds(50);
// Number of ended loads whose buffers are kept for the next ones. A load with larger buffers is not kept.
constexpr size_t kKeptLoads = 16;
constexpr size_t kLargestKeptBuffer = 64 << 10;

thread_local bool is_load_thread = false;

}  // namespace

bool LoadThread::IsCurrent() { return is_load_thread; }

Result<std::unique_ptr<LoadThread>> LoadThread::Create(Runtime& runtime, SegmentStore& store, LoadHost& host,
                                                       size_t reads_in_flight) {
  const size_t at_most = std::max<size_t>(reads_in_flight, 1);
  // The load that begins last may have an image of many parts.
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<IoQueue> queue, store.NewQueue(at_most + ImageParts::kMax - 1));
  std::unique_ptr<LoadThread> thread(new LoadThread(runtime, store, host, at_most, std::move(queue)));
  thread->thread_ = runtime.StartThread("dc-load", [thread = thread.get()] { thread->Run(); });
  return thread;
}

LoadThread::LoadThread(Runtime& runtime, SegmentStore& store, LoadHost& host, size_t reads_in_flight,
                       std::unique_ptr<IoQueue> queue)
    : runtime_(runtime),
      store_(store),
      host_(host),
      reads_in_flight_(reads_in_flight),
      queue_(std::move(queue)),
      mutex_(runtime) {}

LoadThread::~LoadThread() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    changed_.NotifyAll(runtime_);
  }
  thread_.reset();
  DEUT_CHECK(loads_.empty());
}

std::unique_ptr<LoadThread::Load> LoadThread::NewLoadLocked() {
  if (free_.empty()) return std::make_unique<Load>();
  std::unique_ptr<Load> load = std::move(free_.back());
  free_.pop_back();
  return load;
}

void LoadThread::Recycle(std::unique_ptr<Load> load) {
  DEUT_DCHECK(load->transfers_left == 0);
  load->waiters = nullptr;
  load->reading = false;
  load->needless = false;
  for (size_t i = 0; i < load->parts.count(); ++i) {
    if (load->buffers[i].bytes() > kLargestKeptBuffer) return;
    load->buffers[i].ForgetRead();
  }
  load->parts = ImageParts();
  const MutexLock lock(mutex_);
  if (free_.size() < kKeptLoads) free_.push_back(std::move(load));
}

void LoadThread::Add(PageId id, TableId table, const Target& target, LoadUrgency urgency, LoadWaiter* waiter) {
  bool first = false;
  {
    const MutexLock lock(mutex_);
    DEUT_CHECK(!stop_);  // no thread would load it
    std::unique_ptr<Load> load = NewLoadLocked();
    load->id = id;
    load->table = table;
    load->key = target.key;
    load->side = target.side;
    load->urgency = urgency;
    load->waiters = waiter;
    if (waiter != nullptr) waiter->next_ = nullptr;
    first = arrived_.empty();
    arrived_.push_back(std::move(load));
    if (first) changed_.NotifyOne(runtime_);
  }
  // The first arrival wakes the thread; it takes the others along.
  if (first) queue_->Wake();
}

void LoadThread::OnMemoryFreed() {
  if (!starved_.load(std::memory_order_seq_cst)) return;
  {
    const MutexLock lock(mutex_);
    memory_freed_ = true;
    changed_.NotifyOne(runtime_);
  }
  queue_->Wake();
}

void LoadThread::Run() {
  is_load_thread = true;
  while (TakeArrivals()) {
    DEUT_IN_FLIGHT_IF(!loads_.empty(), "dc.page_load");
    BeginReads();
    if (read_.empty()) {
      // Loads that have arrived meanwhile are taken before any page is finished, so that they can join its load.
      Reap();
      continue;
    }
    Load* const load = read_.front();
    read_.pop_front();
    Finish(load);
  }
}

bool LoadThread::TakeArrivals() {
  {
    const MutexLock lock(mutex_);
    const MonotonicTime next_check = runtime_.Now() + kMemoryCheckInterval;
    // Without a transfer in flight, Reap would return at once.
    while (arrived_.empty() && read_.empty() && queue_->in_flight() == 0) {
      if (loads_.empty()) {
        if (stop_) return false;
        changed_.Wait(mutex_);
      } else if (memory_freed_ || !changed_.WaitUntil(mutex_, next_check)) {
        break;
      }
    }
    memory_freed_ = false;
    taken_.swap(arrived_);
  }
  for (std::unique_ptr<Load>& load : taken_) Accept(std::move(load));
  taken_.clear();
  return true;
}

void LoadThread::Accept(std::unique_ptr<Load> load) {
  DEUT_POINT("page_cache.load.accept");
  const auto [at, is_new] = loads_.try_emplace(load->id);
  if (is_new) {
    (load->urgency == LoadUrgency::kNow ? urgent_ : patient_).push_back(load.get());
    at->second = std::move(load);
    return;
  }
  Load* const joined = at->second.get();
  if (load->waiters != nullptr) {
    load->waiters->next_ = joined->waiters;
    joined->waiters = load->waiters;
  }
  if (load->urgency == LoadUrgency::kNow && joined->urgency == LoadUrgency::kWhenMemory &&
      DEUT_STEP("load.take_along")) {
    joined->urgency = LoadUrgency::kNow;
    if (!joined->reading) {
      std::erase(patient_, joined);
      urgent_.push_back(joined);
    }
  }
  Recycle(std::move(load));
}

bool LoadThread::HasMemory() {
  if (host_.HasMemory(loading_bytes_)) {
    starved_.store(false, std::memory_order_relaxed);
    return true;
  }
  // The flag is set before memory is measured again. A thread that frees memory after that measurement finds the flag
  // and wakes this thread.
  if (starved_.exchange(true, std::memory_order_seq_cst)) return false;
  return host_.HasMemory(loading_bytes_);
}

LoadThread::Load* LoadThread::NextToRead(size_t in_flight) {
  const bool is_urgent = !urgent_.empty();
  std::deque<Load*>& waiting = is_urgent ? urgent_ : patient_;
  if (waiting.empty()) return nullptr;
  Load* const load = waiting.front();
  if (in_flight >= reads_in_flight_) return nullptr;
  if (!is_urgent && !HasMemory()) return nullptr;
  waiting.pop_front();
  return load;
}

void LoadThread::BeginReads() {
  // Each transfer is submitted when the next one is known, so that only the last one costs a system call.
  IoRequest* last = nullptr;
  // A request that was submitted belongs to the queue, which may have completed it already.
  const auto end_if_refused = [this](IoRequest* request, Status submitted) {
    if (submitted.ok()) return;
    request->status = std::move(submitted);
    EndTransfer(*request);
  };
  while (Load* const load = NextToRead(queue_->in_flight() + (last == nullptr ? 0 : 1))) {
    load->reading = true;
    load->bytes = 0;
    load->needless = !FindImage(load);
    if (load->needless) {
      read_.push_back(load);
      continue;
    }
    loads_begun_.fetch_add(1, std::memory_order_relaxed);
    for (const PageAddress part : load->parts.all()) load->bytes += part.length_bound();
    loading_bytes_ += load->bytes;
    for (size_t i = 0; i < load->parts.count(); ++i) {
      load->begun[i] = store_.BeginRead(load->parts[i], load->id, &load->buffers[i]);
      if (!load->begun[i].ok()) continue;
      ++load->transfers_left;
      IoRequest& request = load->buffers[i].request();
      request.context = load;
      if (last != nullptr) end_if_refused(last, queue_->SubmitLater(last));
      last = &request;
    }
    if (load->transfers_left == 0) read_.push_back(load);
  }
  if (last != nullptr) end_if_refused(last, queue_->Submit(last));
}

bool LoadThread::FindImage(Load* load) {
  PageLoad begun;
  if (!host_.BeginLoad(load->table, Target(load->key, load->side), &begun)) return false;
  // The target may be in another page by now, which has loads of its own.
  if (begun.id != load->id) return false;
  load->parts = begun.parts;
  return true;
}

void LoadThread::EndTransfer(const IoRequest& request) {
  auto* const load = static_cast<Load*>(request.context);
  DEUT_CHECK(load->transfers_left != 0);
  if (--load->transfers_left == 0) read_.push_back(load);
}

void LoadThread::Reap() {
  completed_.clear();
  queue_->Reap(&completed_, kNoDeadline);
  for (const IoRequest* request : completed_) EndTransfer(*request);
}

void LoadThread::Finish(Load* load) {
  Status status;
  if (!load->needless) {
    PageLoad page;
    page.id = load->id;
    page.parts = load->parts;
    const Status read = page.BuildImage([&](size_t i) -> Result<PartView> {
      DEUT_RETURN_IF_ERROR(load->begun[i]);
      DEUT_RETURN_IF_ERROR(store_.EndRead(&load->buffers[i]));
      return load->buffers[i].part();
    });
    status = host_.FinishLoad(load->table, Target(load->key, load->side), &page, read);
  }
  loading_bytes_ -= load->bytes;
  const auto at = loads_.find(load->id);
  DEUT_CHECK(at != loads_.end() && at->second.get() == load);
  LoadWaiter* waiter = load->waiters;
  std::unique_ptr<Load> ended = std::move(at->second);
  loads_.erase(at);
  Recycle(std::move(ended));
  while (waiter != nullptr) {
    // From OnLoaded on, the waiter belongs to its owner.
    LoadWaiter* const next = waiter->next_;
    waiter->OnLoaded(status);
    waiter = next;
  }
}

}  // namespace deut::dc
