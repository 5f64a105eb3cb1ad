// ReportedSpace: the DC's free bytes, as it reported them last, and whether a put was refused because of them (rule
// X7). The DC reports with each acknowledgement. When nothing is sent any more it has to be asked, but only if a put
// was refused.
// Thread-safety: all methods from any thread, latch-free.
#ifndef TC_DC_LINK_REPORTED_SPACE_H_
#define TC_DC_LINK_REPORTED_SPACE_H_

#include <atomic>
#include <cstdint>

namespace deut::tc {

class ReportedSpace {
 public:
  uint64_t free_bytes() const { return free_bytes_.load(std::memory_order_seq_cst); }
  void Report(uint64_t free_bytes) { free_bytes_.store(free_bytes, std::memory_order_seq_cst); }

  // Notes that a put was refused for lack of space. Returns true for the first one since the note was cleared.
  bool NotePutRefused() const { return !put_refused_.exchange(true, std::memory_order_seq_cst); }
  bool put_refused() const { return put_refused_.load(std::memory_order_seq_cst); }
  // Clears the note: puts that are refused from now on set it again.
  void ClearPutRefused() { put_refused_.store(false, std::memory_order_seq_cst); }

 private:
  std::atomic<uint64_t> free_bytes_{0};
  mutable std::atomic<bool> put_refused_{false};
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_REPORTED_SPACE_H_
