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
      "record_buckets_log2", &options->log2_record_buckets,
      "buckets that the record table begins with, as a power of two; more make false conflicts rarer; 0 = one for "
      "256 bytes of the version budget",
      0u, 30u);
  flags->AddBytes(
      "version_budget", &options->version_budget_bytes,
      "bytes of what is kept of updates that the data component has yet to apply: versions, entries, write "
      "sets, postings, runs; beyond half of it values are taken out of memory and read back from the log, beyond five "
      "eighths what is left is spilled to files");
  flags->AddBytes(
      "max_transaction_bytes", &options->max_transaction_bytes,
      "bytes that one transaction may write: keys, values and 16 bytes for each update; a write beyond that "
      "is refused for good. They are in memory until the commit, besides the version budget",
      1 << 20, uint64_t{64} << 30);
  flags->Add("spill_dir", &options->spill_directory,
             "directory of those files, which are removed at the start; empty = 'spill' in the log's");
  flags->AddEnum("over_budget", &options->over_budget,
                 {{"refuse", OverBudgetPolicy::kRefuse}, {"abort_reader", OverBudgetPolicy::kAbortReader}},
                 "beyond the version budget: writers are refused until the data component has caught up, or the "
                 "transaction or snapshot that "
                 "holds it back is aborted");
  flags->AddBytes("read_cache", &options->read_cache_bytes,
                  "bytes of what the data component has answered to point reads, kept so that it is not asked again: "
                  "copies and the record table's entries for them; 0 = nothing is kept");
  flags->Add("cache_written", &options->cache_written,
             "what is written is kept there as well, while there is room, although nobody has read it");
  flags->AddEnum("range_precision", &options->range_precision,
                 {{"keys", RangePrecision::kKeys}, {"ranges", RangePrecision::kRanges}},
                 "what of an earlier uncommitted writer a scan loses to: its keys within the scan's bounds, when the "
                 "scan comes to them, or "
                 "its intent in the whole logical range, at once");
  flags->Add("conflict_wait", &options->conflict_wait,
             "how long an operation may wait for earlier transactions that are committing already, in place of "
             "aborting; 0 = not at all");
  flags->Add("idle_timeout", &options->idle_timeout, "an open transaction that is not used for so long is aborted");
  flags->Add("max_outcomes", &options->max_outcomes,
             "transactions whose outcome can be asked for later, at most; some 80 bytes each", uint64_t{16},
             uint64_t{1} << 28);
  flags->Add("outcome_window", &options->outcome_window,
             "how long the redo log is kept so that outcomes survive a restart");
  flags->AddBytes("outcome_log_bytes", &options->outcome_log_bytes,
                  "how much of the redo log is kept for that at most");
  flags->Add("records_per_range", &options->records_per_range,
             "a table has one logical range for this many records, and more where much is updated", 1u, UINT32_MAX);
  flags->Add("max_ranges", &options->max_ranges, "logical ranges of a table at most", 1u, 8192u);
  flags->Add("fixed_ranges", &options->fixed_ranges,
             "logical ranges of every table, whatever its size; 0 = by size and updates", 0u, 8192u);
  flags->AddBytes(
      "dc_reserve", &options->dc_link.reserve_bytes,
      "puts are refused while the data component's free bytes, less what it has yet to apply, are below this");
  flags->AddBytes("log_segment", &options->log.segment_bytes, "size of a redo log segment", 16 << 20,
                  uint64_t{1} << 32);
  flags->AddBytes("log_buffer", &options->log.ring_bytes, "log kept in memory; a power of two", 16 << 20,
                  uint64_t{1} << 34);
}

}  // namespace deut::tc
