#include "integration/power/powered_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/runtime/random.h"

namespace deut::power {
namespace {

// Small sizes, so that a few dozen transactions reach everything: chunks, several blocks in flight, new and recycled
// segments, the next reservation of timestamps. They also read values from disk that the ring no longer holds.
tc::TransactionComponentOptions SmallOptions(Duration device_timeout) {
  tc::TransactionComponentOptions options;
  options.log.directory = kTcDirectory;
  options.log.ring_bytes = 32 << 10;
  options.log.segment_bytes = 32 << 10;
  options.log.max_record_bytes = 8 << 10;
  options.log.block_bytes = 4 << 10;
  options.log.chunk_bytes = 2 << 10;
  options.log.max_small_in_flight = 8;
  options.log.space_reserve_bytes = 16 << 10;
  options.log.timestamp_block = 32;
  options.log.device_timeout = device_timeout;
  options.memory.log2_record_buckets = 8;
  options.max_transactions = 64;
  options.outcomes.max_outcomes = 64;
  options.outcomes.log_bytes = 64 << 10;  // small enough that the log is still trimmed
  options.ranges.records_per_range = 8;
  options.ranges.max_ranges = 16;
  options.ranges.period = milliseconds(5);
  options.dc_link.dc_name = "the data component";
  options.dc_link.batch_bytes = 2 << 10;
  options.dc_link.linger = microseconds(200);
  options.dc_link.reserve_bytes = 0;
  options.dc_link.redo_start_period = milliseconds(1);
  options.dc_link.redo_start_bytes = 1 << 10;
  options.dc_link.reconnect_min = milliseconds(1);
  options.dc_link.reconnect_max = milliseconds(10);
  return options;
}

// Small sizes, so that a short run splits pages, evicts them, takes checkpoints, and fills segments.
dc::DataComponentOptions SmallPages(const StoreSizes& sizes) {
  dc::DataComponentOptions dc;
  dc.directory = kDcDirectory;
  dc.records.loader.threads = 2;
  dc.checkpoints.log_bytes = 4 << 10;
  dc.checkpoints.interval = milliseconds(5);
  dc::RecordStoreOptions& options = dc.records;
  options.tree.leaf_page_bytes = 1 << 10;
  options.tree.inner_page_bytes = 512;
  options.tree.leaf_chain_length = 4;
  options.tree.inner_chain_length = 2;
  options.store.segment_bytes = 16 << 10;
  options.store.append_buffer_bytes = 16 << 10;
  options.cleaner.interval = milliseconds(1);
  options.cleaner.bytes_per_second = 0;
  options.cleaner.slack_segments = 1;
  options.memory_bytes = 96 << 10;
  options.merge_interval = milliseconds(1);
  options.max_pages = 1 << 16;
  if (sizes.little_background) {
    options.cleaner.interval = options.merge_interval = dc.checkpoints.interval = seconds(10);
    dc.checkpoints.log_bytes = 1 << 20;
  }
  if (sizes.drawn_from == 0) return dc;
  Random random(sizes.drawn_from);
  const auto power = [&random](uint64_t low, uint64_t high) { return uint64_t{1} << random.Between(low, high); };
  options.tree.leaf_page_bytes = static_cast<uint32_t>(power(8, 11));
  options.tree.inner_page_bytes = static_cast<uint32_t>(power(8, 10));
  options.tree.leaf_chain_length = static_cast<uint16_t>(random.Between(2, 12));
  options.tree.inner_chain_length = static_cast<uint16_t>(random.Between(1, 4));
  options.store.segment_bytes = power(14, 16);
  options.store.append_buffer_bytes = options.store.segment_bytes;
  if (sizes.drawn_from % 2 == 0) options.store.segments_before_growth = 4;
  options.cleaner.slack_segments = random.Between(0, 2);
  options.memory_bytes = random.Between(64, 256) << 10;
  if (sizes.little_background) return dc;
  dc.checkpoints.log_bytes = power(11, 15);
  dc.checkpoints.interval = milliseconds(static_cast<int64_t>(random.Between(2, 20)));
  return dc;
}

constexpr Duration kLookAgain = milliseconds(2);
constexpr Duration kOpenTimeout = seconds(60);

}  // namespace

Result<std::unique_ptr<PoweredStore>> PoweredStore::Open(Storage& storage, KeptPages* pages,
                                                         const std::function<bool()>& lost_power,
                                                         const StoreSizes& sizes) {
  Runtime& runtime = RealRuntime();
  std::unique_ptr<PoweredStore> store(new PoweredStore());
  store->dc_ = std::make_unique<InProcessDataComponent>(
      runtime, [&storage, &runtime, pages, sizes, store = store.get()]() -> Result<std::unique_ptr<DataComponent>> {
        if (pages != nullptr) return CheckpointingDc::Open(*pages, runtime);
        dc::DataComponentOptions options = SmallPages(sizes);
        options.records.on_failure = [store](const Status& status) { store->Fail(status); };
        DEUT_ASSIGN_OR_RETURN(std::unique_ptr<DataComponent> dc,
                              dc::DataComponentServer::Open(options, storage, runtime));
        return dc;
      });
  DEUT_RETURN_IF_ERROR(store->dc_->Start());
  tc::TransactionComponentOptions options = SmallOptions(sizes.device_timeout);
  options.log.on_failure = [s = store.get()](const Status& status) { s->Fail(status); };
  options.on_refused = options.log.on_failure;
  DEUT_ASSIGN_OR_RETURN(store->tc_, tc::TransactionComponent::Open(options, runtime, storage, *store->dc_));
  const Deadline deadline = runtime.Now() + kOpenTimeout;
  for (;;) {
    const Status serving = store->tc_->WaitServing(std::min<Deadline>(deadline, runtime.Now() + kLookAgain));
    DEUT_RETURN_IF_ERROR(store->failure());
    if (serving.ok()) break;
    if (lost_power() || runtime.Now() >= deadline) return serving;
  }
  store->client_ = Client::FromService(store->tc_.get(), {});
  return store;
}

PoweredStore::~PoweredStore() {
  client_.reset();
  if (tc_) tc_->Stop();
  tc_.reset();
  dc_.reset();
}

void PoweredStore::Fail(const Status& status) {
  {
    const MutexLock lock(mutex_);
    if (failure_.ok()) failure_ = status;
  }
  failed_.Signal(RealRuntime());
}

Status PoweredStore::failure() {
  const MutexLock lock(mutex_);
  return failure_;
}

namespace {

uint64_t Named(std::string_view name, const std::vector<CounterValue>& counters) {
  for (const CounterValue& counter : counters) {
    if (counter.name == name) return counter.value;
  }
  return 0;
}

}  // namespace

uint64_t PoweredStore::first_lsn() {
  const Result<ServiceStatus> status = tc_->GetStatus(RealRuntime().Now() + seconds(10));
  return status.ok() ? Named("log.first", status->tc) : 0;
}

uint64_t PoweredStore::dc_counter(std::string_view name) {
  const Result<std::vector<CounterValue>> counters = dc_->Counters(RealRuntime().Now() + seconds(10));
  return counters.ok() ? Named(name, *counters) : 0;
}

}  // namespace deut::power
