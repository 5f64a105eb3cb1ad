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

// How many scans of an engine may have something that there is little of.
class ScanPermits {
 public:
  explicit ScanPermits(uint32_t most) : most_(most) {}
  uint32_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  friend class ScanPermit;
  const uint32_t most_;
  std::atomic<uint32_t> used_{0};
};

// One scan's permit.
class ScanPermit {
 public:
  ScanPermit() = default;
  ~ScanPermit() { Release(); }
  ScanPermit(const ScanPermit&) = delete;
  ScanPermit& operator=(const ScanPermit&) = delete;

  // True: it has one now.
  bool Take(ScanPermits& permits) {
    if (permits_ != nullptr) return true;
    if (permits.used_.fetch_add(1, std::memory_order_relaxed) >= permits.most_) {
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
