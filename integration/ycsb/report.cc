#include "integration/ycsb/report.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/abort_reason.h"
#include "common/base/concat.h"
#include "integration/ycsb/json.h"

namespace deut::ycsb {
namespace {

constexpr double kNsPerUs = 1000;

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
double Microseconds(uint64_t ns) { return static_cast<double>(ns) / kNsPerUs; }

std::string LatencyJson(const Histogram& ns) {
  return JsonObject()
      .Number("mean", ns.mean() / kNsPerUs)
      .Number("p50", Microseconds(ns.Percentile(50)))
      .Number("p95", Microseconds(ns.Percentile(95)))
      .Number("p99", Microseconds(ns.Percentile(99)))
      .Number("p999", Microseconds(ns.Percentile(99.9)))
      .Number("max", Microseconds(ns.max()))
      .Str();
}

uint64_t Aborts(const WorkerResults& workers) {
  uint64_t sum = 0;
  for (const uint64_t count : workers.report.aborts) sum += count;
  return sum;
}

std::string AbortReasonsJson(const WorkerResults& workers) {
  JsonObject reasons;
  for (int reason = 0; reason < kAbortReasonCount; ++reason) {
    if (workers.report.aborts[reason] != 0)
      reasons.Number(AbortReasonName(static_cast<AbortReason>(reason)), workers.report.aborts[reason]);
  }
  return reasons.Str();
}

// total.errors counts the tolerated errors; the error that ended the phase comes on top.
uint64_t Errors(const PhaseResult& phase) { return phase.total.errors + (phase.failure.ok() ? 0 : 1); }

// A phase that failed at once may have no duration, so the divisor has a lower bound.
double Rate(uint64_t count, const PhaseResult& phase) {
  return static_cast<double>(count) / std::max(phase.seconds, 1e-9);
}

std::string LongestJson(const PhaseResult& run) {
  std::vector<std::string> operations;
  for (const TimedOperation& longest : run.longest) {
    operations.push_back(JsonObject()
                             .Text("type", OperationTypeName(longest.type))
                             .Number("began_at_seconds", Seconds(longest.begun - run.begun))
                             .Number("latency_us", Microseconds(static_cast<uint64_t>(longest.took.count())))
                             .Number("attempts", longest.attempts)
                             .Text("outcome", ErrorCodeName(longest.outcome))
                             .Str());
  }
  return "[" + absl::StrJoin(operations, ", ") + "]";
}

void AddRun(const PhaseResult& run, JsonObject* json) {
  json->Number("seconds", run.seconds)
      .Number("transactions", run.total.transactions)
      .Number("writes", run.total.writes)
      .Number("transactions_per_second", Rate(run.total.transactions, run))
      .Number("records_per_second", Rate(run.total.records, run))
      .Number("aborts_per_second", Rate(Aborts(run.workers), run))
      .Raw("abort_reasons", AbortReasonsJson(run.workers))
      .Raw("latency_us", LatencyJson(run.workers.latency_ns));
  if (run.restarted) json->Number("restarts_per_second", Rate(*run.restarted, run));
  JsonObject operations;
  for (int type = 0; type < kOperationTypes; ++type) {
    const Histogram& ns = run.workers.latency_ns_by_type[type];
    if (ns.count() == 0) continue;  // no operation of this type completed, so there is no latency
    operations.Raw(OperationTypeName(static_cast<OperationType>(type)),
                   JsonObject().Number("count", ns.count()).Raw("latency_us", LatencyJson(ns)).Str());
  }
  json->Raw("operations", operations.Str());
  json->Raw("longest_operations", LongestJson(run));
  JsonObject tolerated;
  for (const auto& [code, errors] : run.workers.tolerated) {
    tolerated.Raw(ErrorCodeName(code),
                  JsonObject().Number("count", errors.count).Text("example", errors.example).Str());
  }
  json->Number("errors", Errors(run)).Raw("tolerated", tolerated.Str());
  if (!run.failure.ok()) json->Text("failure", run.failure.ToString());
  json->Number("longest_gap_seconds", run.longest_gap).Number("checksum", run.workers.checksum);
}

}  // namespace

std::string ReportJson(const BenchmarkOptions& options, std::string_view target, const PhaseResult* load,
                       const PhaseResult* run) {
  JsonObject json;
  json.Text("workload", options.workload.name)
      .Text("target", target)
      .Number("threads", uint64_t{options.threads})
      .Number("records", options.records)
      .Number("value_bytes", uint64_t{options.value_bytes})
      .Number("theta", options.theta)
      .Number("scan_max", uint64_t{options.scan_max})
      .Text("isolation", options.read_isolation == Isolation::kSnapshot ? "snapshot" : "serializable")
      .Text("durability", options.durability == Durability::kBuffered ? "buffered" : "durable");
  if (run != nullptr) AddRun(*run, &json);
  if (load != nullptr) {
    JsonObject loaded;
    loaded.Number("seconds", load->seconds)
        .Number("records", load->total.records)
        .Number("records_per_second", Rate(load->total.records, *load))
        .Number("errors", Errors(*load));
    if (!load->failure.ok()) loaded.Text("failure", load->failure.ToString());
    json.Raw("load", loaded.Str());
  }
  return json.Str() + "\n";
}

std::string ReportText(const PhaseResult& run) {
  const Histogram& ns = run.workers.latency_ns;
  std::string text = absl::StrFormat(
      "%.1f s: %d transactions (%.0f/s), %d records (%.0f/s), %d aborts repeated (%.1f/s), %d errors\n"
      "latency: mean %.0f us, p50 %.0f, p95 %.0f, p99 %.0f, p99.9 %.0f, max %.0f; longest time without a completed "
      "transaction %.1f s\n",
      run.seconds, run.total.transactions, Rate(run.total.transactions, run), run.total.records,
      Rate(run.total.records, run), Aborts(run.workers), Rate(Aborts(run.workers), run), Errors(run),
      ns.mean() / kNsPerUs, Microseconds(ns.Percentile(50)), Microseconds(ns.Percentile(95)),
      Microseconds(ns.Percentile(99)), Microseconds(ns.Percentile(99.9)), Microseconds(ns.max()), run.longest_gap);
  if (run.restarted) {
    absl::StrAppendFormat(&text, "repeated by the transaction component: %d (%.1f/s)\n", *run.restarted,
                          Rate(*run.restarted, run));
  }
  if (!run.longest.empty()) {
    const TimedOperation& longest = run.longest.front();
    absl::StrAppendFormat(&text, "the longest operation (%s) took %.3f s in %d %s, began at %.1f s and ended %s\n",
                          OperationTypeName(longest.type), Seconds(longest.took), longest.attempts,
                          longest.attempts == 1 ? "attempt" : "attempts", Seconds(longest.begun - run.begun),
                          ErrorCodeName(longest.outcome));
  }
  for (int reason = 0; reason < kAbortReasonCount; ++reason) {
    if (run.workers.report.aborts[reason] == 0) continue;
    ConcatTo(&text, "aborts, ", AbortReasonName(static_cast<AbortReason>(reason)), ": ",
             run.workers.report.aborts[reason], "\n");
  }
  for (const auto& [code, errors] : run.workers.tolerated) {
    ConcatTo(&text, "tolerated, ", ErrorCodeName(code), ": ", errors.count, ", for example: ", errors.example, "\n");
  }
  return text;
}

}  // namespace deut::ycsb
