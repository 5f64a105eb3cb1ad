#include "common/observe/metrics.h"

#include <utility>

#include "common/base/check.h"

namespace deut {

size_t Counter::StripeOfThread() {
  static std::atomic<size_t> next{0};
  static thread_local const size_t mine = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
  return mine;
}

uint64_t Counter::value() const {
  uint64_t sum = 0;
  for (const Stripe& stripe : stripes_) sum += stripe.value.load(std::memory_order_relaxed);
  return sum;
}

Counter& Metrics::counter(const std::string& name) {
  MutexLock lock(mutex_);
  Metric& metric = metrics_[name];
  DEUT_CHECK(metric.gauge == nullptr && !metric.read);
  if (metric.counter == nullptr) metric.counter = std::make_unique<Counter>();
  return *metric.counter;
}

Gauge& Metrics::gauge(const std::string& name) {
  MutexLock lock(mutex_);
  Metric& metric = metrics_[name];
  DEUT_CHECK(metric.counter == nullptr && !metric.read);
  if (metric.gauge == nullptr) metric.gauge = std::make_unique<Gauge>();
  return *metric.gauge;
}

void Metrics::AddGauge(const std::string& name, std::function<int64_t()> read) {
  MutexLock lock(mutex_);
  Metric& metric = metrics_[name];
  DEUT_CHECK(metric.counter == nullptr && metric.gauge == nullptr && !metric.read);
  metric.read = std::move(read);
}

void Metrics::Remove(const std::string& name) {
  MutexLock lock(mutex_);
  metrics_.erase(name);
}

std::vector<MetricValue> Metrics::Snapshot() const {
  MutexLock lock(mutex_);
  std::vector<MetricValue> values;
  values.reserve(metrics_.size());
  for (const auto& [name, metric] : metrics_) {
    const int64_t value = metric.counter != nullptr ? static_cast<int64_t>(metric.counter->value())
                          : metric.gauge != nullptr ? metric.gauge->value()
                                                    : metric.read();
    values.push_back({name, value});
  }
  return values;
}

}  // namespace deut
