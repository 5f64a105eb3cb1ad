#include "integration/bugs/environment.h"

#include <algorithm>

namespace deut::bugs {
namespace {

Duration Micros(Random& random, uint64_t low, uint64_t high) {
  return microseconds(static_cast<int64_t>(random.Between(low, high)));
}

// Returns a random power of two between 2^low and 2^high.
uint64_t Power(Random& random, uint64_t low, uint64_t high) { return uint64_t{1} << random.Between(low, high); }

void DrawLog(Random& random, tc::RedoLogOptions* log) {
  log->directory = "/store/tc";
  log->max_record_bytes = 8 << 10;
  log->ring_bytes = Power(random, 15, 20);
  log->segment_bytes = !random.OneIn(3) ? 32 << 10 : Power(random, 15, 19);
  log->chunk_bytes = Power(random, 9, 12);
  log->block_bytes = Power(random, 9, 12);
  log->max_in_flight = random.Between(1, 16);
  log->max_small_in_flight = random.Between(1, log->max_in_flight);
  log->spare_segments = random.Between(1, 3);
  log->space_reserve_bytes = 16 << 10;
  log->timestamp_block = Power(random, 5, 10);
}

void DrawTc(Random& random, tc::TransactionComponentOptions* tc) {
  DrawLog(random, &tc->log);
  tc->memory.log2_record_buckets = static_cast<uint32_t>(random.Between(1, 8));
  tc->max_transactions = 64;
  tc->outcomes.max_outcomes = 64;
  tc->outcomes.log_bytes = 64 << 10;
  if (random.OneIn(3)) tc->memory.version_budget_bytes = Power(random, 15, 20);
  tc->memory.fold_after = Micros(random, 0, 10000);
  tc->memory.fold_at_least = random.Between(1, 40);
  tc->ranges.records_per_range = static_cast<uint32_t>(random.Between(2, 32));
  tc->ranges.max_ranges = static_cast<uint32_t>(random.Between(1, 32));
  tc->ranges.period = Micros(random, 2000, 50000);
  if (random.OneIn(2)) tc->read_cache.bytes = Power(random, 9, 16);
  tc::DcLinkOptions& link = tc->dc_link;
  link.dc_name = "the data component";
  link.batch_bytes = Power(random, 8, 14);
  link.window_bytes = link.batch_bytes * random.Between(1, 4);
  link.linger = Micros(random, 0, 2000);
  link.reserve_bytes = 0;
  link.redo_start_period = milliseconds(1);
  link.redo_start_bytes = 1 << 10;
  link.reconnect_min = milliseconds(1);
  link.reconnect_max = milliseconds(10);
}

void DrawDc(Random& random, dc::DataComponentOptions* dc) {
  dc->directory = "/store/dc";
  dc::RecordStoreOptions& records = dc->records;
  records.tree.leaf_page_bytes = static_cast<uint32_t>(Power(random, 8, 12));
  records.tree.inner_page_bytes = static_cast<uint32_t>(Power(random, 8, 10));
  records.tree.leaf_chain_length = static_cast<uint16_t>(random.Between(2, 20));
  records.tree.inner_chain_length = static_cast<uint16_t>(random.Between(1, 4));
  records.max_pages = 1 << 20;
  records.store.segment_bytes = Power(random, 14, 17);
  records.store.append_buffer_bytes = records.store.segment_bytes;
  records.cleaner.interval = Micros(random, 1000, 20000);
  records.cleaner.bytes_per_second = 0;
  records.cleaner.slack_segments = random.Between(0, 2);
  records.merge_interval = Micros(random, 1000, 20000);
  // Inner pages stay in memory, and a tree of such small pages has many of them.
  if (!random.OneIn(3)) records.memory_bytes = Power(random, 18, 20);
  dc->checkpoints.log_bytes = Power(random, 10, 15);
  dc->checkpoints.interval = Micros(random, 2000, 30000);
  dc->records.loader.threads = static_cast<uint32_t>(random.Between(1, 4));
  dc->records.loader.reads_in_flight = static_cast<uint32_t>(random.Between(1, 32));
}

}  // namespace

Environment DrawEnvironment(Layer layer, Random& random) {
  Environment environment;
  DrawTc(random, &environment.tc);
  DrawDc(random, &environment.dc);
  if (!random.OneIn(3)) environment.padding = Power(random, 6, 10);
  // The load is one transaction, which must fit into the budget.
  environment.tc.memory.version_budget_bytes = std::max<uint64_t>(
      environment.tc.memory.version_budget_bytes.value_or(tc::VersionMemoryOptions::kDefaultVersionBudgetBytes),
      64 * environment.padding);
  environment.restart_one_in = random.Between(1, 8);
  environment.threads = static_cast<uint32_t>(random.Between(2, 8));
  environment.life = milliseconds(static_cast<int64_t>(random.Between(50, 250)));
  environment.harm_period = Micros(random, 2000, 40000);
  environment.drop_caches = random.OneIn(2);
  environment.old_readers = random.OneIn(2);
  if (random.OneIn(2)) environment.durability = Durability::kDurable;
  environment.chaos_seed = random.Next();
  switch (layer) {
    case Layer::kEmbedded:
    case Layer::kRecorded:  // RunRecordedRound draws its own
      break;
    case Layer::kRestart:
      environment.restart_dc = !random.OneIn(4);
      environment.lives = static_cast<uint32_t>(random.Between(1, 3));
      if (random.OneIn(2)) {
        environment.lives = static_cast<uint32_t>(random.Between(4, 12));
        environment.life = milliseconds(static_cast<int64_t>(random.Between(10, 40)));
      }
      environment.keeps_pages = !random.OneIn(3);
      break;
    case Layer::kPower:
      environment.restart_dc = random.OneIn(4);
      environment.lives = static_cast<uint32_t>(random.Between(2, 4));
      environment.keeps_pages = random.OneIn(2);
      // Power losses may destroy updates that are not durable.
      environment.durability = Durability::kDurable;
      // A store without power never answers, so a transaction gives up soon.
      environment.patience = milliseconds(500);
      break;
    case Layer::kTwoTcs:
      environment.restart_dc = random.OneIn(2);
      environment.lives = static_cast<uint32_t>(random.Between(2, 8));
      environment.life = milliseconds(static_cast<int64_t>(random.Between(10, 80)));
      environment.keeps_pages = random.OneIn(2);
      environment.durability = Durability::kDurable;
      if (!random.OneIn(3)) environment.max_delay = Micros(random, 0, 8000);
      if (random.OneIn(2)) environment.max_delay_replaced_tc = Micros(random, 0, 20000);
      break;
    case Layer::kCorruption:
      // The whole log is kept, so that much of it can be damaged.
      environment.dc.checkpoints.interval = Duration();
      environment.life = milliseconds(50);
      if (!random.OneIn(3)) environment.corrupt_one_in = random.Between(2, 20);
      break;
  }
  if (!random.OneIn(3)) {
    environment.tc.ranges.random_seed = random.Next() | 1;
    environment.tc.ranges.period = Micros(random, 50, 5000);
  }
  return environment;
}

}  // namespace deut::bugs
