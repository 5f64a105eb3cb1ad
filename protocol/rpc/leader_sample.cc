#include "protocol/rpc/leader_sample.h"

#include <ctime>
#include <utility>

#include "common/base/check.h"

namespace deut {

bool LeaderSample::Computes(const RpcThread* leader, Duration passed) {
  if (leader == nullptr) {
    leader_ = nullptr;
    return false;
  }
  timespec now{};
  DEUT_CHECK(clock_gettime(leader->clock, &now) == 0);
  const int64_t cpu_ns = now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
  const bool same_lead = leader_ == leader && lead_count_ == leader->lead_count;
  leader_ = leader;
  lead_count_ = leader->lead_count;
  const int64_t before_ns = std::exchange(cpu_ns_, cpu_ns);
  return same_lead && cpu_ns - before_ns > duration_cast<nanoseconds>(passed).count() / 2;
}

}  // namespace deut
