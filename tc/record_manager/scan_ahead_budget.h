// ScanAheadBudget: what all scans of an engine may have granted to the DC ahead of need, together (standing_scan.h).
// Thread-safety: the budget any thread; a share as its scan. Ownership: the budget outlives the shares.
#ifndef TC_RECORD_MANAGER_SCAN_AHEAD_BUDGET_H_
#define TC_RECORD_MANAGER_SCAN_AHEAD_BUDGET_H_

#include <atomic>
#include <cstdint>

namespace deut::tc {

// What all scans of an engine have granted beyond the batch that each may always have.
class ScanAheadBudget {
 public:
  explicit ScanAheadBudget(uint64_t bytes) : bytes_(bytes) {}
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  friend class ScanAheadShare;
  const uint64_t bytes_;
  std::atomic<uint64_t> used_{0};
};

// How many scans of an engine may have a stream of the DC open: each holds a thread there, and a place on the connection. The others ask batch by
// batch.
class ScanStreams {
 public:
  explicit ScanStreams(uint32_t most) : most_(most) {}
  uint32_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  friend class ScanStreamPermit;
  const uint32_t most_;
  std::atomic<uint32_t> used_{0};
};

// One scan's permit.
class ScanStreamPermit {
 public:
  ScanStreamPermit() = default;
  ~ScanStreamPermit() { Release(); }
  ScanStreamPermit(const ScanStreamPermit&) = delete;
  ScanStreamPermit& operator=(const ScanStreamPermit&) = delete;

  // True: it has one now.
  bool Take(ScanStreams& streams) {
    if (streams_ != nullptr) return true;
    if (streams.used_.fetch_add(1, std::memory_order_relaxed) >= streams.most_) {
      streams.used_.fetch_sub(1, std::memory_order_relaxed);
      return false;
    }
    streams_ = &streams;
    return true;
  }
  void Release() {
    if (streams_ != nullptr) streams_->used_.fetch_sub(1, std::memory_order_relaxed);
    streams_ = nullptr;
  }

 private:
  ScanStreams* streams_ = nullptr;
};

// One scan's part of it.
class ScanAheadShare {
 public:
  ScanAheadShare() = default;
  ~ScanAheadShare() { Release(); }
  ScanAheadShare(const ScanAheadShare&) = delete;
  ScanAheadShare& operator=(const ScanAheadShare&) = delete;

  // Asks for `bytes` in all; answers what it has then: so many, or what it had if there is no more.
  uint64_t Resize(ScanAheadBudget& budget, uint64_t bytes) {
    budget_ = &budget;
    if (bytes <= held_) {
      budget.used_.fetch_sub(held_ - bytes, std::memory_order_relaxed);
      held_ = bytes;
    } else if (budget.used_.fetch_add(bytes - held_, std::memory_order_relaxed) + bytes - held_ <= budget.bytes_) {
      held_ = bytes;
    } else {
      budget.used_.fetch_sub(bytes - held_, std::memory_order_relaxed);
    }
    return held_;
  }
  void Release() {
    if (budget_ != nullptr) Resize(*budget_, 0);
  }

 private:
  ScanAheadBudget* budget_ = nullptr;
  uint64_t held_ = 0;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_SCAN_AHEAD_BUDGET_H_
