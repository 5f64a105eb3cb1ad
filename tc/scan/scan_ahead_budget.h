// ScanAheadBudget: bounds the bytes that all scans of an engine together have granted to the DC ahead of need
// (resumable_scan.h). ScanPermits bounds how many scans hold a scarce resource. ScanAheadShare and ScanPermit are one
// scan's parts of them.
// Thread-safety: budget and permits from any thread; a share or permit as its scan. Ownership: the budget outlives
// the shares.
#ifndef TC_SCAN_SCAN_AHEAD_BUDGET_H_
#define TC_SCAN_SCAN_AHEAD_BUDGET_H_

#include <atomic>
#include <cstdint>

namespace deut::tc {

// Bytes that all scans of an engine have granted beyond the batch that each may always have.
class ScanAheadBudget {
 public:
  explicit ScanAheadBudget(uint64_t bytes) : bytes_(bytes) {}
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  friend class ScanAheadShare;
  const uint64_t bytes_;
  std::atomic<uint64_t> used_{0};
};

// Bounds the number of scans of an engine that hold something scarce.
class ScanPermits {
 public:
  explicit ScanPermits(uint32_t max) : max_(max) {}
  uint32_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  friend class ScanPermit;
  const uint32_t max_;
  std::atomic<uint32_t> used_{0};
};

// One scan's permit, or none.
class ScanPermit {
 public:
  ScanPermit() = default;
  ~ScanPermit() { Release(); }
  ScanPermit(const ScanPermit&) = delete;
  ScanPermit& operator=(const ScanPermit&) = delete;

  // Returns whether it holds a permit now.
  bool TryAcquire(ScanPermits& permits) {
    if (permits_ != nullptr) return true;
    if (permits.used_.fetch_add(1, std::memory_order_relaxed) >= permits.max_) {
      permits.used_.fetch_sub(1, std::memory_order_relaxed);
      return false;
    }
    permits_ = &permits;
    return true;
  }
  void Release() {
    if (permits_ != nullptr) permits_->used_.fetch_sub(1, std::memory_order_relaxed);
    permits_ = nullptr;
  }

 private:
  ScanPermits* permits_ = nullptr;
};

// One scan's share of a budget.
class ScanAheadShare {
 public:
  ScanAheadShare() = default;
  ~ScanAheadShare() { Release(); }
  ScanAheadShare(const ScanAheadShare&) = delete;
  ScanAheadShare& operator=(const ScanAheadShare&) = delete;

  // Asks for `bytes` in all. Returns what the share has then: `bytes`, or what it had before if the budget has no
  // room.
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

#endif  // TC_SCAN_SCAN_AHEAD_BUDGET_H_
