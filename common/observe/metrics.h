// Metrics: the named numbers that a process publishes about itself. Counters only go up; gauges are set, or computed
// when read.
// Names are lower_case with dots, and end in a unit where there is one: "tc.commit.durable", "dc.cache_bytes".
// None of the given libraries (Abseil, protobuf, gRPC) offers metrics.
// Thread-safety: Counter and Gauge from any thread, see counter.h.
//   Metrics: all methods from any thread. Registering and snapshots take a mutex, so get the references once, at
//   start.
// Ownership: a Metrics object owns the metrics registered in it; references live as long as it does. Each component
// gets one object passed in.
#ifndef COMMON_OBSERVE_METRICS_H_
#define COMMON_OBSERVE_METRICS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/observe/counter.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut {

class Gauge {
 public:
  void Set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void Add(int64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

struct MetricValue {
  std::string name;
  int64_t value = 0;
  friend bool operator==(const MetricValue&, const MetricValue&) = default;
};

class Metrics {
 public:
  explicit Metrics(Runtime& runtime) : mutex_(runtime) {}

  // Returns the metric of that name, made at the first call. REQUIRES: the name is of no other kind.
  Counter& counter(const std::string& name);
  Gauge& gauge(const std::string& name);
  // Adds a gauge that is computed: Snapshot calls `read`, which must be quick, from any thread, until Remove or the
  // end of this object.
  void AddGauge(const std::string& name, std::function<int64_t()> read);
  void Remove(const std::string& name);

  // Returns all metrics, ordered by name.
  std::vector<MetricValue> Snapshot() const;

 private:
  struct Metric {
    std::unique_ptr<Counter> counter;
    std::unique_ptr<Gauge> gauge;
    std::function<int64_t()> read;
  };
  mutable Mutex mutex_;
  std::map<std::string, Metric> metrics_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut

#endif  // COMMON_OBSERVE_METRICS_H_
