#include "tc/server/tc_flags.h"

namespace deut::tc {

void AddTcFlags(FlagSet* flags, TransactionComponentOptions* options) {
  flags->Add("max_transactions", &options->max_transactions, "transactions and snapshots that may be open at once", 64u,
             1u << 20);
  flags->Add(
      "max_tables", &options->max_tables,
      "tables that may exist at once, and dropped ones that are not freed yet because an older transaction is open", 1u,
      1u << 24);
  flags->Add(
      "record_buckets_log2", &options->memory.log2_record_buckets,
      "buckets that the record table begins with, as a power of two; more make false conflicts rarer; 0 = one for "
      "256 bytes of the version budget",
      0u, 30u);
  flags->AddBytes(
      "version_budget", &options->memory.version_budget_bytes,
      "bytes of memory for updates that the data component has not applied yet: versions, entries, write sets, "
      "postings, runs; above half of it, values are evicted and read back from the log; above five eighths, whole "
      "commits are spilled to files",
      "from a sixteenth to a quarter of --memory, as far as memory is free; with --memory=0: 1GiB");
  flags->AddBytes(
      "max_transaction_bytes", &options->memory.max_transaction_bytes,
      "bytes that one transaction may write: keys, values and 16 bytes for each update; a write beyond that "
      "is refused, and a retry does not help. They are in memory until the commit, in addition to the version budget",
      "a quarter of --memory, at most 2GiB; with --memory=0: 2GiB", 1 << 20, uint64_t{64} << 30);
  flags->Add(
      "spill_dir", &options->spill.directory,
      "directory of the spill files, which are removed at the start; empty = 'spill' in the directory of the log");
  flags->AddEnum("over_budget", &options->memory.over_budget,
                 {{"refuse", OverBudgetPolicy::kRefuse}, {"abort_reader", OverBudgetPolicy::kAbortReader}},
                 "when the version budget is used up: `refuse` = writers are refused until the data component has "
                 "caught up; `abort_reader` = the transaction or snapshot that holds it back is aborted");
  flags->AddBytes(
      "read_cache", &options->read_cache.bytes,
      "bytes of the read cache, which keeps the data component's answers to point reads: copies, and the "
      "record table's entries for them; 0 = no read cache",
      "what --memory leaves; with pages in the process: nothing while they fit, then a quarter of that; with "
      "--memory=0: none");
  flags->Add("cache_written", &options->read_cache.written,
             "freshly written values are cached, too, while there is room, and are evicted before values that have "
             "been read");
  flags->AddEnum("range_precision", &options->conflicts.range_precision,
                 {{"keys", RangePrecision::kKeys}, {"ranges", RangePrecision::kRanges}},
                 "when a scan conflicts with an earlier uncommitted writer: `keys` = only if it reaches a key that the "
                 "writer wrote or declared; `ranges` = as soon as the writer has posted in the range");
  flags->Add("conflict_wait", &options->conflicts.wait,
             "how long an operation may wait for earlier transactions that are committing already, in place of "
             "aborting; 0 = not at all");
  flags->Add("idle_timeout", &options->idle_timeout, "an open transaction that is idle for this long is aborted");
  flags->Add("max_outcomes", &options->outcomes.max_outcomes,
             "maximum number of transactions whose outcome can be asked for later; some 80 bytes each", uint64_t{16},
             uint64_t{1} << 28);
  flags->Add("outcome_window", &options->outcomes.window,
             "how long the redo log is kept so that outcomes survive a restart");
  flags->AddBytes("outcome_log_bytes", &options->outcomes.log_bytes,
                  "maximum bytes of the redo log that are kept for outcome_window");
  flags->Add("records_per_range", &options->ranges.records_per_range,
             "records in a logical range of a table; ranges that are updated often have fewer", 1u, UINT32_MAX);
  flags->Add("max_ranges", &options->ranges.max_ranges, "maximum number of logical ranges of a table", 1u, 8192u);
  flags->Add("fixed_ranges", &options->ranges.fixed_ranges,
             "logical ranges of every table, whatever its size; 0 = by size and updates", 0u, 8192u);
  flags->AddBytes(
      "dc_reserve", &options->dc_link.reserve_bytes,
      "puts are refused while the data component's free bytes, less what it has yet to apply, are below this");
  flags->AddBytes("log_segment", &options->log.segment_bytes, "size of a redo log segment", 16 << 20,
                  uint64_t{1} << 32);
  flags->AddBytes("log_buffer", &options->log_buffer_bytes, "log kept in memory; a power of two",
                  "a sixty-fourth of --memory, from 16MiB to 64MiB; with --memory=0: 64MiB", 16 << 20,
                  uint64_t{1} << 34);
}

}  // namespace deut::tc
