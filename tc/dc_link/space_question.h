// SpaceQuestion: when the DC is asked for its free space (rule X7), and the log lines about puts that are refused.
//
// Puts are refused while the DC's last report shows a lack of space. While they are refused, there may be nothing to
// send that the DC would answer. So an empty batch makes it report again.
// Thread-safety: one thread. Ownership: the runtime and the options outlive it.
#ifndef TC_DC_LINK_SPACE_QUESTION_H_
#define TC_DC_LINK_SPACE_QUESTION_H_

#include <cstdint>

#include "common/observe/episode_log.h"
#include "common/runtime/runtime.h"
#include "tc/dc_link/dc_link_options.h"

namespace deut::tc {

class SpaceQuestion {
 public:
  // Pause between two questions. Clients of refused puts are told to come back later than that.
  static constexpr Duration kPeriod = milliseconds(100);

  SpaceQuestion(Runtime& runtime, const DcLinkOptions& options) : options_(options), log_(runtime) {}

  // Logs the beginning and the end of a lack of space.
  void Observe(bool put_refused, uint64_t free_bytes);

  bool Due(MonotonicTime now) const { return now >= next_; }
  void Asked(MonotonicTime now) { next_ = now + kPeriod; }
  // When the next question may be asked.
  MonotonicTime next() const { return next_; }

 private:
  const DcLinkOptions& options_;
  MonotonicTime next_{};
  EpisodeLog log_;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_SPACE_QUESTION_H_
