#include "dc/page_cache/load_thread.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/io/shortage.h"
#include "common/testing/flight_board.h"
#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

// Number of ended reads whose buffers are kept for the next ones.
constexpr size_t kKeptReads = 16;

// The waiters that this thread calls, if it is a load thread.
thread_local ReadyWaiters* ready_of_this_thread = nullptr;

}  // namespace

bool LoadThread::IsCurrent() { return ready_of_this_thread != nullptr; }

void LoadThread::CallAgain(LoadWaiter* waiter) {
  DEUT_CHECK(IsCurrent());
  LoadWaiterList alone;
  alone.Push(waiter);
  ready_of_this_thread->Add(std::move(alone), Status::Ok());
}

Result<std::unique_ptr<LoadThread>> LoadThread::Create(Runtime& runtime, SegmentStore& store, LoadHost& host,
                                                       FileOpener& opener, size_t reads_in_flight) {
  const size_t places = std::max<size_t>(reads_in_flight, 1);
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<IoQueue> queue, store.NewQueue(std::max(places, ImageParts::kMax)));
  std::unique_ptr<LoadThread> thread(new LoadThread(runtime, store, host, opener, places, std::move(queue)));
  thread->thread_ = runtime.StartThread("dc-load", [thread = thread.get()] { thread->Run(); });
  return thread;
}

LoadThread::LoadThread(Runtime& runtime, SegmentStore& store, LoadHost& host, FileOpener& opener,
                       size_t reads_in_flight, std::unique_ptr<IoQueue> queue)
    : runtime_(runtime),
      store_(store),
      host_(host),
      opener_(opener),
      reads_in_flight_(reads_in_flight),
      queue_(std::move(queue)),
      inbox_(runtime, *queue_) {}

LoadThread::~LoadThread() {
  inbox_.Stop();
  DEUT_POINT("page_cache.load.stopping");
  thread_.reset();
  DEUT_CHECK(loads_.empty() && ready_.empty() && places_taken_ == 0);
}

void LoadThread::Add(PageId id, TableId table, const Target& target, LoadUrgency urgency, PageStay stay,
                     LoadWaiter* waiter) {
  inbox_.Add({.id = id,
              .table = table,
              .key = std::string(target.key),
              .side = target.side,
              .urgency = urgency,
              .stay = stay,
              .waiter = waiter});
}

void LoadThread::OnMemoryFreed() {
  if (starved_.load(std::memory_order_seq_cst)) inbox_.NoteMemoryFreed();
}

void LoadThread::Run() {
  ready_of_this_thread = &ready_;
  while (TakeArrivals()) {
    DEUT_IN_FLIGHT_IF(!loads_.empty(), "dc.page_load");
    BeginReads();
    if (read_.empty()) {
      // Loads that have arrived meanwhile are taken before any page is finished, so that they can join its load.
      Reap();
    } else {
      LeafLoad* const load = read_.front();
      read_.pop_front();
      Finish(load);
    }
    if (!ready_.empty()) ready_.CallNext();
  }
}

bool LoadThread::TakeArrivals() {
  LoadInbox::Wait wait = LoadInbox::Wait::kNot;
  // Without a transfer in flight, Reap would return at once.
  if (read_.empty() && ready_.empty() && queue_->in_flight() == 0) {
    wait = loads_.empty() ? LoadInbox::Wait::kForArrival : LoadInbox::Wait::kForMemory;
  }
  if (!inbox_.Take(wait, &taken_)) return false;
  opening_.opened.insert(opening_.opened.end(), taken_.opened.begin(), taken_.opened.end());
  for (LoadArrival& arrival : taken_.arrived) Accept(std::move(arrival));
  return true;
}

void LoadThread::Accept(LoadArrival arrival) {
  DEUT_POINT("page_cache.load.accept");
  const auto [at, is_new] = loads_.try_emplace(arrival.id);
  if (is_new) {
    at->second = std::make_unique<LeafLoad>();
    LeafLoad* const load = at->second.get();
    load->id = arrival.id;
    load->table = arrival.table;
    load->key = std::move(arrival.key);
    load->side = arrival.side;
    load->urgency = arrival.urgency;
    load->stay = arrival.stay;
    if (arrival.waiter != nullptr) load->waiters.Push(arrival.waiter);
    waiting_.Push(load);
    return;
  }
  LeafLoad* const joined = at->second.get();
  const LoadQueue::Lane lane = LoadQueue::LaneOf(*joined);
  if (arrival.waiter != nullptr) joined->waiters.Push(arrival.waiter);
  joined->stay = std::min(joined->stay, arrival.stay);
  if (arrival.urgency == LoadUrgency::kNow && joined->urgency == LoadUrgency::kWhenMemory &&
      DEUT_STEP("load.take_along")) {
    joined->urgency = LoadUrgency::kNow;
  }
  if (joined->waiting) waiting_.Move(joined, lane);
}

bool LoadThread::HasMemory(LoadAdmission admission) {
  if (admission == LoadAdmission::kSpeculative) return host_.HasMemory(admission);  // it is not waited for
  if (host_.HasMemory(admission)) {
    starved_.store(false, std::memory_order_relaxed);
    return true;
  }
  // The flag is set before memory is measured again. A thread that frees memory after that measurement finds the flag
  // and wakes this thread.
  if (starved_.exchange(true, std::memory_order_seq_cst)) return false;
  return host_.HasMemory(admission);
}

bool LoadThread::HasPlaceFor(const LeafLoad& load) const {
  return places_taken_ == 0 || places_taken_ + load.read->parts() <= reads_in_flight_;
}

// Memory may have become short while the file was opened.
LeafLoad* LoadThread::NextOpened(HasMemoryFor has_memory) {
  while (!opening_.opened.empty()) {
    LeafLoad* const load = opening_.opened.front();
    if (!HasPlaceFor(*load)) return nullptr;
    opening_.opened.pop_front();
    --opening_.count;
    const LoadQueue::Lane lane = LoadQueue::LaneOf(*load);
    if (lane == LoadQueue::Lane::kUrgent) return load;
    if (has_memory(lane == LoadQueue::Lane::kAhead ? LoadAdmission::kSpeculative : LoadAdmission::kOrdinary)) {
      return load;
    }
    Recycle(std::move(load->read));
    waiting_.PutBack(load);
  }
  return nullptr;
}

LeafLoad* LoadThread::NextToRead(HasMemoryFor has_memory) {
  while (places_taken_ < reads_in_flight_) {
    if (LeafLoad* const opened = NextOpened(has_memory)) return opened;
    if (!opening_.opened.empty()) return nullptr;  // the first of them waits for more places
    LeafLoad* const load = waiting_.Next(has_memory);
    if (load == nullptr) return nullptr;
    if (!FindImage(load)) continue;
    if (!HasPlaceFor(*load)) {
      Recycle(std::move(load->read));
      waiting_.PutBack(load);
      return nullptr;
    }
    if (load->read->Prepare(store_)) return load;
    SetAside(load);
  }
  return nullptr;
}

bool LoadThread::FindImage(LeafLoad* load) {
  PageLoad begun;
  // The target may be in another page by now, which has loads of its own.
  if (!host_.BeginLoad(load->table, Target(load->key, load->side), &begun) || begun.id != load->id) {
    read_.push_back(load);
    return false;
  }
  if (spare_.empty()) {
    load->read = std::make_unique<ImageRead>();
  } else {
    load->read = std::move(spare_.back());
    spare_.pop_back();
  }
  load->read->Begin(begun.id, begun.parts);
  return true;
}

void LoadThread::SetAside(LeafLoad* load) {
  if (load->open_until == MonotonicTime()) load->open_until = runtime_.Now() + kShortagePatience;
  if (opening_.count < kMaxOpening) {
    ++opening_.count;
    opener_.Open(load, this);
    return;
  }
  // Its files and buffers would not be bounded.
  Recycle(std::move(load->read));
  opening_.unopened.push_back(load);
}

// The opener finds it out if another thread has opened the files meanwhile.
void LoadThread::SendToOpener() {
  while (opening_.count < kMaxOpening && !opening_.unopened.empty()) {
    LeafLoad* const load = opening_.unopened.front();
    opening_.unopened.pop_front();
    if (FindImage(load)) SetAside(load);
  }
}

void LoadThread::DropLoadsAhead() {
  while (LeafLoad* const load = waiting_.TakeAhead()) {
    DEUT_DCHECK(load->waiters.empty());
    End(load, Status::Ok());
  }
}

void LoadThread::BeginReads() {
  bool memory_is_short = false;
  const auto has_memory = [&](LoadAdmission admission) {
    const bool has = HasMemory(admission);
    memory_is_short = memory_is_short || !has;
    return has;
  };
  if (taken_.stop) DropLoadsAhead();
  // Each transfer is submitted when the next one is known, so that only the last one costs a system call.
  IoRequest* last = nullptr;
  while (LeafLoad* const load = NextToRead(has_memory)) SubmitLater(load, &last);
  if (last != nullptr) EndIfRefused(last, queue_->Submit(last));
  if (memory_is_short) DropLoadsAhead();
  SendToOpener();
}

void LoadThread::SubmitLater(LeafLoad* load, IoRequest** last) {
  loads_begun_.fetch_add(1, std::memory_order_relaxed);
  ImageRead& read = *load->read;
  host_.AddLoading(static_cast<int64_t>(read.bytes()));
  places_taken_ += read.parts();
  // All of them count before the first one is handed over, so that the load is pushed to `read_` once.
  const size_t transfers = read.transfers();
  load->transfers_left = transfers;
  if (transfers == 0) read_.push_back(load);
  for (size_t i = 0; i < transfers; ++i) {
    IoRequest& request = read.request(i);
    request.context = load;
    if (*last != nullptr) EndIfRefused(*last, queue_->SubmitLater(*last));
    *last = &request;
  }
}

void LoadThread::EndIfRefused(IoRequest* request, Status submitted) {
  if (submitted.ok()) return;
  request->status = std::move(submitted);
  EndTransfer(*request);
}

void LoadThread::EndTransfer(const IoRequest& request) {
  auto* const load = static_cast<LeafLoad*>(request.context);
  DEUT_CHECK(load->transfers_left != 0);
  if (--load->transfers_left == 0) read_.push_back(load);
}

void LoadThread::Reap() {
  completed_.clear();
  // While waiters are ready, the thread only looks.
  queue_->Reap(&completed_, ready_.empty() ? kNoDeadline : MonotonicTime());
  for (const IoRequest* request : completed_) EndTransfer(*request);
}

void LoadThread::Finish(LeafLoad* load) {
  Status status;
  // A load without a read was found to need none.
  if (load->read != nullptr) {
    PageLoad page;
    page.stay = load->stay;
    const Status read = load->read->Build(store_, &page);
    status = host_.FinishLoad(load->table, Target(load->key, load->side), &page, read);
    places_taken_ -= load->read->parts();
    host_.AddLoading(-static_cast<int64_t>(load->read->bytes()));
    Recycle(std::move(load->read));
  }
  End(load, std::move(status));
}

// A load leaves the table before its waiters are called.
void LoadThread::End(LeafLoad* load, Status status) {
  const auto at = loads_.find(load->id);
  DEUT_CHECK(at != loads_.end() && at->second.get() == load);
  const std::unique_ptr<LeafLoad> ended = std::move(at->second);
  loads_.erase(at);
  ready_.Add(std::move(ended->waiters), std::move(status));
}

void LoadThread::Recycle(std::unique_ptr<ImageRead> read) {
  read->Reset();
  if (spare_.size() < kKeptReads && read->IsSmall()) spare_.push_back(std::move(read));
}

}  // namespace deut::dc
