// TATP (Telecom Application Transaction Processing, version 1.0) over an ordered key-value store: a register of subscribers, with their access
// rights, facilities and call forwardings; seven short transactions, 80 % of which read.
#ifndef INTEGRATION_BENCH_TATP_TATP_H_
#define INTEGRATION_BENCH_TATP_TATP_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "integration/bench/application.h"

namespace deut::bench::tatp {

class Tatp final : public Application {
 public:
  explicit Tatp(uint32_t subscribers) : subscribers_(subscribers) {}

  // A few thousand subscribers each.
  uint32_t parts() const override;
  Status LoadPart(Session& session, uint32_t part) const override;
  std::unique_ptr<Terminal> NewTerminal(uint32_t number, uint64_t seed) const override;
  // Every subscriber is there, found by its number, and has access rights and facilities; no row hangs in the air.
  Status Check(Session& session) const override;
  std::string_view prefix() const override { return "T"; }

 private:
  const uint32_t subscribers_;
};

}  // namespace deut::bench::tatp

#endif  // INTEGRATION_BENCH_TATP_TATP_H_
