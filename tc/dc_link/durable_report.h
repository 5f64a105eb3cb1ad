// DurableReport: the durable LSN that the DC was told (rule X4), and when it is told a newer one although there is
// nothing to send.
//
// While one open transaction holds all commits back (S1), acknowledged commits pile up that the DC does not have. The
// DC learns that they exist, so that it will refuse an older copy of the log.
// Thread-safety: one thread.
#ifndef TC_DC_LINK_DURABLE_REPORT_H_
#define TC_DC_LINK_DURABLE_REPORT_H_

#include "common/base/ids.h"
#include "common/runtime/time.h"

namespace deut::tc {

class DurableReport {
 public:
  // `period`: pause between two batches that only tell the LSN.
  explicit DurableReport(Duration period) : period_(period) {}

  // A new stream begins. The DC has said that it was told this.
  void Restart(Lsn told) { told_ = told; }
  // A batch carries this LSN.
  void Told(Lsn durable, MonotonicTime now) {
    told_ = durable;
    next_ = now + period_;
  }

  // True if the DC was not told that the log is durable up to here.
  bool IsNews(Lsn durable) const { return durable > told_; }
  bool Due(Lsn durable, MonotonicTime now) const { return now >= next_ && IsNews(durable); }
  // When a newer LSN is told at the earliest.
  MonotonicTime next() const { return next_; }

 private:
  const Duration period_;
  Lsn told_;
  MonotonicTime next_{};
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_DURABLE_REPORT_H_
