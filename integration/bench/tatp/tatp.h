// TATP (Telecom Application Transaction Processing, version 1.0) over an ordered key-value store. It is a register of
// subscribers, with their access rights, facilities and call forwardings; 80 % of its seven short transactions read.
// Thread-safety: as Application.
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

  // Each part has a few thousand subscribers.
  uint32_t parts() const override;
  Status LoadPart(Session& session, uint32_t part) const override;
  std::unique_ptr<Terminal> NewTerminal(uint32_t number, uint64_t seed) const override;
  // Checks that every subscriber is there, can be found by its number, and has access rights and facilities, and that
  // no row lacks its parent.
  Status Check(Session& session) const override;
  std::string_view prefix() const override { return "T"; }

 private:
  const uint32_t subscribers_;
};

}  // namespace deut::bench::tatp

#endif  // INTEGRATION_BENCH_TATP_TATP_H_
