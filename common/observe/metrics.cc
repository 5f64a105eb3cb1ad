#include "common/observe/metrics.h"

#include <utility>

#include "common/base/check.h"

namespace deut {

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
