#include "dc/page_cache/page_loader.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/page_load.h"

namespace deut::dc {

// The blocked caller of several loads. Each load has a waiter of its own, on the caller's stack or heap.
class PageLoader::Countdown {
 public:
  class Waiter final : public LoadWaiter {
   public:
    explicit Waiter(Countdown& countdown) : countdown_(countdown) {}
    void OnLoaded(const Status& status) override {
      status_ = status;
      countdown_.Subtract();
    }
    // Valid after the countdown's Wait.
    const Status& status() const { return status_; }

   private:
    Countdown& countdown_;
    Status status_;
  };

  Countdown(Runtime& runtime, size_t loads) : runtime_(runtime), left_(loads) {}
  // The last one ends the caller's wait, and with it the life of this object and of the waiters. The others touch
  // neither after the subtraction.
  void Subtract() {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_.Signal(runtime_);
  }
  void Wait() { done_.Wait(runtime_, kNoDeadline); }

 private:
  Runtime& runtime_;
  std::atomic<size_t> left_;
  Event done_;
};

Result<std::unique_ptr<PageLoader>> PageLoader::Create(Runtime& runtime, TreeSource& trees, ReclamationDomain& domain,
                                                       SegmentStore& store, DamagedPages* damaged,
                                                       const PageLoaderOptions& options) {
  std::unique_ptr<PageLoader> loader(new PageLoader(runtime, trees, domain, store, damaged));
  const uint32_t processors = std::clamp(std::thread::hardware_concurrency(), 1U, PageLoaderOptions::kMaxThreads);
  const uint32_t reads = std::max(options.reads_in_flight, 1U);
  uint32_t threads = std::min(options.threads == 0 ? processors : options.threads, reads);
  for (;;) {
    const Status started = loader->StartThreads(threads, reads);
    if (started.ok()) return loader;
    // A kernel that limits the memory of rings may grant some only. Fewer threads then share the same reads.
    threads = static_cast<uint32_t>(loader->threads_.size());
    loader->threads_.clear();
    if (threads == 0) return started;
  }
}

Status PageLoader::StartThreads(uint32_t threads, uint32_t reads_in_flight) {
  for (uint32_t i = 0; i < threads; ++i) {
    const uint32_t share = reads_in_flight / threads + (i < reads_in_flight % threads ? 1 : 0);
    // A store without any queue does not open, so a test may not refuse the first one.
    if (i > 0 && DEUT_CAS_FAILS("page_cache.load.queue")) return DEUT_ERROR(kIoError, "no queue, for a test");
    DEUT_ASSIGN_OR_RETURN(std::unique_ptr<LoadThread> thread,
                          LoadThread::Create(runtime_, store_, *this, opener_, share));
    threads_.push_back(std::move(thread));
  }
  return Status::Ok();
}

PageLoader::PageLoader(Runtime& runtime, TreeSource& trees, ReclamationDomain& domain, SegmentStore& store,
                       DamagedPages* damaged)
    : runtime_(runtime),
      trees_(trees),
      domain_(domain),
      store_(store),
      damaged_(damaged),
      gate_mutex_(runtime),
      transient_(runtime),
      opener_(runtime, store) {}

PageLoader::~PageLoader() = default;

Result<bool> PageLoader::Start(TableId table, const Target& target, LoadUrgency urgency, LoadWaiter* waiter,
                               PageStay stay) {
  DEUT_DCHECK(!domain_.guard_held());
  PageLoad load;
  if (!BeginLoad(table, target, &load)) return false;
  if (damaged_ != nullptr) DEUT_RETURN_IF_ERROR(damaged_->RecentFailure(load.id, table));
  threads_[load.id.value % threads_.size()]->Add(load.id, table, target, urgency, stay, waiter);
  return true;
}

void PageLoader::ReadAhead(TableId table, std::span<const std::string> keys, Side side) {
  for (const std::string& key : keys) {
    (void)Start(table, Target(key, side), LoadUrgency::kWhenMemory, /*waiter=*/nullptr, PageStay::kTransient);
  }
}

Status PageLoader::Load(TableId table, const Target& target, PageStay stay) {
  DEUT_CHECK(!LoadThread::IsCurrent());
  Countdown countdown(runtime_, 1);
  Countdown::Waiter waiter(countdown);
  DEUT_ASSIGN_OR_RETURN(const bool started, Start(table, target, LoadUrgency::kNow, &waiter, stay));
  if (!started) return Status::Ok();
  countdown.Wait();
  return waiter.status();
}

Status PageLoader::LoadAll(TableId table, std::span<const std::string> keys, Side side, PageStay stay) {
  DEUT_CHECK(!LoadThread::IsCurrent());
  if (keys.empty()) return Status::Ok();
  Countdown countdown(runtime_, keys.size());
  std::vector<Countdown::Waiter> waiters(keys.size(), Countdown::Waiter(countdown));
  for (size_t i = 0; i < keys.size(); ++i) {
    const Result<bool> started = Start(table, Target(keys[i], side), LoadUrgency::kNow, &waiters[i], stay);
    if (!started.ok() || !*started) waiters[i].OnLoaded(started.status());
  }
  countdown.Wait();
  for (const Countdown::Waiter& waiter : waiters) DEUT_RETURN_IF_ERROR(waiter.status());
  return Status::Ok();
}

bool PageLoader::BeginLoad(TableId table, const Target& target, PageLoad* load) {
  const ReclamationDomain::Guard guard(domain_);
  BwTree* const tree = trees_.FindTree(table);
  return tree != nullptr && tree->BeginLoad(target, load);
}

// The tree and the page's word may have changed while the image was read.
Status PageLoader::FinishLoad(TableId table, const Target& target, PageLoad* load, const Status& read) {
  const ReclamationDomain::Guard guard(domain_);
  BwTree* const tree = trees_.FindTree(table);
  if (tree == nullptr) return Status::Ok();
  // The image that was read may have been replaced meanwhile, and its segment removed. Then its outcome does not count,
  // and the page is not damaged.
  if (!tree->StillImage(*load) && DEUT_STEP("load.outcome_counts")) return Status::Ok();
  // The image still names a file that does not exist. The caller must not take NOT_FOUND for a missing table or
  // record.
  Status status = read == ErrorCode::kNotFound ? DEUT_ERROR(kCorruption, read.message()) : read;
  if (status.ok()) status = tree->FinishLoad(target, load);
  if (load->parent != kNoPage) transient_.Add({.table = table, .parent = load->parent, .high = load->parent_high});
  return damaged_ == nullptr ? status : damaged_->RecordRead(load->id, table, status);
}

void PageLoader::SetMemoryGate(MemoryGate has_memory) {
  {
    const MutexLock lock(gate_mutex_);
    has_memory_ = std::move(has_memory);
  }
  OnMemoryFreed();
}

bool PageLoader::HasMemory(LoadAdmission admission) {
  const MutexLock lock(gate_mutex_);
  return has_memory_ == nullptr || has_memory_(loading_bytes_.load(), admission);
}

void PageLoader::OnMemoryFreed() {
  for (const std::unique_ptr<LoadThread>& thread : threads_) thread->OnMemoryFreed();
}

uint64_t PageLoader::loads() const {
  uint64_t loads = 0;
  for (const std::unique_ptr<LoadThread>& thread : threads_) loads += thread->loads();
  return loads;
}

}  // namespace deut::dc
