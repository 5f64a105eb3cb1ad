#include "integration/bench/runner.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/runtime/random.h"
#include "integration/bench/worker_threads.h"
#include "integration/ycsb/insert_sequence.h"
#include "integration/ycsb/record.h"

namespace deut::bench {
namespace {

// Writers' identities in values (integration/ycsb/record.h): the load's, and above it one for each thread of each
// run.
constexpr uint64_t kLoader = 1;
constexpr uint64_t kThreadsOfARun = 4096;

struct Shared {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> next{0};  // load: number of the next record
};

// One thread of a load or a run.
class Worker {
 public:
  Worker(std::unique_ptr<Session> session, Shared& shared, Runtime& runtime, uint32_t value_bytes,
         bool check_every_value)
      : session_(std::move(session)),
        shared_(shared),
        runtime_(runtime),
        value_bytes_(value_bytes),
        check_(check_every_value) {}

  Status Load(uint64_t records, uint32_t batch);
  Status Run(const RunOptions& options, uint64_t seed, uint64_t writer, ycsb::InsertSequence& inserts);

  void AddTo(RunResult* result) const;

 private:
  // Makes room for this many keys and values, at addresses that stay.
  void Reserve(size_t steps);
  void MakeWrite(size_t at, uint64_t number, ycsb::WriteId id);
  Status Commit(absl::Span<const Step> steps);

  const std::unique_ptr<Session> session_;
  Shared& shared_;
  Runtime& runtime_;
  const uint32_t value_bytes_;
  ReadCheck check_;

  std::vector<std::string> keys_, values_;
  std::vector<Step> steps_;
  uint64_t transactions_ = 0;
  uint64_t written_ = 0;
  Histogram latency_ns_;
};

void Worker::Reserve(size_t steps) {
  keys_.resize(steps);
  values_.resize(steps);
  steps_.resize(steps);
}

void Worker::MakeWrite(size_t at, uint64_t number, ycsb::WriteId id) {
  ycsb::MakeValue(number, id, keys_[at], value_bytes_, &values_[at]);
  steps_[at].value = values_[at];
  ++written_;
}

Status Worker::Commit(absl::Span<const Step> steps) {
  DEUT_RETURN_IF_ERROR(session_->Run(steps, &check_));
  ++transactions_;
  return check_.Commit();
}

Status Worker::Load(uint64_t records, uint32_t batch) {
  Reserve(batch);
  MonotonicTime before = runtime_.Now();
  while (!shared_.stop.load(std::memory_order_relaxed)) {
    const uint64_t first = shared_.next.fetch_add(batch);
    if (first >= records) return Status();
    const auto count = static_cast<size_t>(std::min<uint64_t>(batch, records - first));
    for (size_t i = 0; i < count; ++i) {
      const uint64_t number = first + i;
      ycsb::MakeKey(number, &keys_[i]);
      steps_[i] = {.kind = StepKind::kInsert, .key = keys_[i]};
      MakeWrite(i, number, {.writer = kLoader, .sequence = static_cast<uint32_t>(number)});
    }
    DEUT_RETURN_IF_ERROR(Commit(absl::MakeConstSpan(steps_.data(), count)));
    const MonotonicTime now = runtime_.Now();
    latency_ns_.Record(static_cast<uint64_t>((now - before).count()));
    before = now;
  }
  return Status();
}

Status Worker::Run(const RunOptions& options, uint64_t seed, uint64_t writer, ycsb::InsertSequence& inserts) {
  const Mix& mix = options.mix;
  Random random(seed);
  ycsb::KeyChooser chooser(mix.distribution, inserts.visible(), mix.theta);
  const size_t together = std::max(1U, options.pipeline);
  Reserve(mix.steps * together);
  std::vector<uint64_t> inserted;
  uint32_t sequence = 0;
  MonotonicTime before = runtime_.Now();
  while (!shared_.stop.load(std::memory_order_relaxed)) {
    if (options.transactions != 0 && transactions_ >= options.transactions) return Status();
    inserted.clear();
    for (size_t i = 0; i < steps_.size(); ++i) {
      Step& step = steps_[i];
      step.kind = mix.Choose(random);
      const bool inserts_one = step.kind == StepKind::kInsert;
      const uint64_t number = inserts_one ? inserts.Draw() : chooser.Next(random, inserts.visible());
      if (inserts_one) inserted.push_back(number);
      ycsb::MakeKey(number, &keys_[i]);
      step.key = keys_[i];
      if (step.kind == StepKind::kScan) {
        step.limit = static_cast<uint32_t>(random.Between(mix.scan_min, mix.scan_max));
      } else if (step.kind != StepKind::kRead) {
        MakeWrite(i, number, {.writer = writer, .sequence = ++sequence});
      }
    }
    if (together == 1) {
      DEUT_RETURN_IF_ERROR(Commit(steps_));
    } else {
      DEUT_RETURN_IF_ERROR(session_->RunPipelined(steps_, mix.steps, &check_));
      transactions_ += together;
    }
    for (const uint64_t number : inserted) inserts.Acknowledge(number);
    const MonotonicTime now = runtime_.Now();
    latency_ns_.Record(static_cast<uint64_t>((now - before).count()));
    before = now;
  }
  return Status();
}

void Worker::AddTo(RunResult* result) const {
  result->transactions += transactions_;
  result->records_read += check_.records();
  result->records_written += written_;
  result->retries += session_->retries();
  result->checksum = Mix64(result->checksum ^ check_.checksum());
  result->latency_ns.Merge(latency_ns_);
}

Status RunWorkers(Runtime& runtime, Shared& shared, std::vector<std::unique_ptr<Worker>>& workers, Duration time,
                  const std::function<Status(size_t, Worker&)>& body, RunResult* result) {
  DEUT_RETURN_IF_ERROR(RunThreads(
      runtime, workers.size(), time, &shared.stop, [&](size_t i) { return body(i, *workers[i]); }, &result->seconds));
  for (const auto& worker : workers) worker->AddTo(result);
  return Status();
}

Result<std::vector<std::unique_ptr<Worker>>> MakeWorkers(Backend& backend, Shared& shared, Runtime& runtime,
                                                         uint32_t value_bytes, uint32_t threads,
                                                         bool check_every_value) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint32_t i = 0; i < threads; ++i) {
    DEUT_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, backend.NewSession());
    workers.push_back(std::make_unique<Worker>(std::move(session), shared, runtime, value_bytes, check_every_value));
  }
  return workers;
}

}  // namespace

Result<RunResult> Runner::Load(uint64_t records, uint32_t threads, uint32_t batch) {
  Shared shared;
  DEUT_ASSIGN_OR_RETURN(auto workers, MakeWorkers(backend_, shared, runtime_, value_bytes_, threads, false));
  RunResult result;
  const auto body = [&](size_t, Worker& worker) { return worker.Load(records, batch); };
  DEUT_RETURN_IF_ERROR(RunWorkers(runtime_, shared, workers, Duration(0), body, &result));
  records_ = records;
  return result;
}

Result<RunResult> Runner::Run(const RunOptions& options) {
  Shared shared;
  DEUT_ASSIGN_OR_RETURN(
      auto workers, MakeWorkers(backend_, shared, runtime_, value_bytes_, options.threads, options.check_every_value));
  ycsb::InsertSequence inserts(runtime_, records_);
  const uint64_t first_writer = ++runs_ * kThreadsOfARun;
  RunResult result;
  const auto body = [&](size_t i, Worker& worker) {
    const Status status = worker.Run(options, Mix64(options.seed ^ Mix64(i)), first_writer + i, inserts);
    // Other threads may wait for an insert that will never come.
    if (!status.ok()) inserts.Stop();
    return status;
  };
  const Duration time = options.transactions == 0 ? options.time : Duration(0);
  DEUT_RETURN_IF_ERROR(RunWorkers(runtime_, shared, workers, time, body, &result));
  records_ = inserts.visible();
  return result;
}

}  // namespace deut::bench
