// Application: a workload of whole transactions whose operations depend on what they read, over the ordered records
// of a store (InteractiveTransaction). An application has records of its own, which share the store with others:
// TPC-C (tpcc/), TATP (tatp/).
// Thread-safety: any thread may use an Application once it is made; one thread uses a terminal. Ownership: terminals
// end before their application.
#ifndef INTEGRATION_BENCH_APPLICATION_H_
#define INTEGRATION_BENCH_APPLICATION_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "common/base/status.h"
#include "integration/bench/backend.h"

namespace deut::bench {

// One simulated user.
class Terminal {
 public:
  virtual ~Terminal() = default;
  // Chooses the next transaction and runs it. A transaction that the workload itself makes fail is OK (TPC-C rolls
  // back 1 % of its new orders).
  virtual Status RunNext(Session& session) = 0;

  // Number of transactions of the kind that the workload reports (TPC-C: new orders, without those rolled back; TATP:
  // all).
  uint64_t counted() const { return counted_; }

 protected:
  uint64_t counted_ = 0;
};

class Application {
 public:
  virtual ~Application() = default;
  // The records before the first transaction consist of parts, which several threads may load at once. They follow
  // from the application's size alone.
  virtual uint32_t parts() const = 0;
  virtual Status LoadPart(Session& session, uint32_t part) const = 0;
  // REQUIRES: no other terminal over these records has had this number.
  virtual std::unique_ptr<Terminal> NewTerminal(uint32_t number, uint64_t seed) const = 0;
  // Checks the invariants between the records in one transaction, which nothing else should disturb. CORRUPTION names
  // the violation.
  virtual Status Check(Session& session) const = 0;
  // Prefix of the keys of all its records.
  virtual std::string_view prefix() const = 0;
};

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_APPLICATION_H_
