// SpaceClaim: room in the redo log that is reserved for one commit alone (rule D5, log_space.h). The append that it
// was made for uses it up. A claim that is destroyed unused gives the room back.
// Thread-safety: a value; it may move between threads. Ownership: it ends before the log.
#ifndef TC_REDO_LOG_SPACE_CLAIM_H_
#define TC_REDO_LOG_SPACE_CLAIM_H_

#include <cstdint>
#include <utility>

#include "common/base/ids.h"

namespace deut::tc {

class LogSpace;

class SpaceClaim {
 public:
  SpaceClaim() = default;
  SpaceClaim(SpaceClaim&& other) noexcept { *this = std::move(other); }
  SpaceClaim& operator=(SpaceClaim&& other) noexcept {
    if (this == &other) return *this;
    if (space_ != nullptr) GiveBack();
    space_ = std::exchange(other.space_, nullptr);
    log_bytes_ = other.log_bytes_;
    extra_bytes_ = other.extra_bytes_;
    return *this;
  }
  ~SpaceClaim() {
    if (space_ != nullptr) GiveBack();
  }

  uint64_t log_bytes() const { return log_bytes_; }
  // The records have been appended, all of them below `end`.
  void MarkUsed(Lsn end) {
    if (extra_bytes_ != 0) KeepExtraUntil(end);
    space_ = nullptr;
  }

 private:
  friend class LogSpace;
  SpaceClaim(LogSpace* space, uint64_t log_bytes, uint64_t extra_bytes)
      : space_(space), log_bytes_(log_bytes), extra_bytes_(extra_bytes) {}
  void GiveBack();
  void KeepExtraUntil(Lsn end);

  LogSpace* space_ = nullptr;
  uint64_t log_bytes_ = 0;
  uint64_t extra_bytes_ = 0;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_SPACE_CLAIM_H_
