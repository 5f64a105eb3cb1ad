// Application: a workload of whole transactions that follow from what they read, over the ordered records of a store (InteractiveTransaction), with
// its own records, which share the store with others: TPC-C (tpcc/), TATP (tatp/).
// Thread-safety: Application from any thread, once made; a terminal by one thread. Ownership: terminals end before their application.
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
  // Makes the next transaction up and runs it. Those that the workload itself makes fail (TPC-C rolls 1 % of its new orders back) are OK.
  virtual Status RunNext(Session& session) = 0;

  // Transactions of the kind by which the workload is told (TPC-C: new orders, without those rolled back; TATP: all).
  uint64_t counted() const { return counted_; }

 protected:
  uint64_t counted_ = 0;
};

class Application {
 public:
  virtual ~Application() = default;
  // The records before the first transaction, in parts that may be loaded at the same time. Which they are follows from the application's size alone.
  virtual uint32_t parts() const = 0;
  virtual Status LoadPart(Session& session, uint32_t part) const = 0;
  // `number` is one that no other terminal has had over these records.
  virtual std::unique_ptr<Terminal> NewTerminal(uint32_t number, uint64_t seed) const = 0;
  // CORRUPTION, with what it found, if what must hold between the records does not. In one transaction, which nothing else should disturb.
  virtual Status Check(Session& session) const = 0;
  // All its records have keys that begin with this.
  virtual std::string_view prefix() const = 0;
};

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_APPLICATION_H_
