// RocksDB, by its C interface, in three variants: plain (write batches, no isolation), optimistic
// (OptimisticTransactionDB) and pessimistic (TransactionDB). In every variant, a transaction of one operation runs
// without a transaction object, because the operation is atomic by itself. options.md has the options and their
// reasons.
#include <rocksdb/c.h>
#include <rocksdb/version.h>

#include <algorithm>
#include <utility>

#include "common/base/concat.h"
#include "integration/bench/backend.h"

namespace deut::bench {
namespace {

constexpr int kBackgroundJobs = 2;
constexpr size_t kWriteBufferBytes = size_t{64} << 20;
constexpr double kBloomBits = 10;
constexpr double kHashRatio = 0.75;
constexpr int kFormatVersion = 5;

enum class Variant : uint8_t { kPlain, kOptimistic, kPessimistic };

// The error argument of the C interface.
class Error {
 public:
  Error() = default;
  ~Error() { Clear(); }
  Error(const Error&) = delete;
  Error& operator=(const Error&) = delete;

  char** out() {
    Clear();
    return &message_;
  }
  bool ok() const { return message_ == nullptr; }
  // True for a conflict, or for a lock that was not available: the transaction must be retried.
  bool conflict() const {
    const std::string_view message = ok() ? "" : message_;
    return message.starts_with("Resource busy") || message.starts_with("Operation timed out") ||
           message.starts_with("Operation failed. Try again");
  }
  Status ToStatus(std::string_view what) const {
    return ok() ? Status() : DEUT_ERROR(kInternal, "RocksDB: ", what, ": ", message_);
  }

 private:
  void Clear() {
    rocksdb_free(message_);
    message_ = nullptr;
  }
  char* message_ = nullptr;
};

// State that all sessions share. One of the three databases is open; `plain` is also the base of the optimistic one.
struct Store {
  Variant variant = Variant::kPlain;
  rocksdb_t* plain = nullptr;
  rocksdb_optimistictransactiondb_t* optimistic = nullptr;
  rocksdb_transactiondb_t* pessimistic = nullptr;
  rocksdb_writeoptions_t* write = nullptr;
  rocksdb_optimistictransaction_options_t* optimistic_options = nullptr;
  rocksdb_transaction_options_t* pessimistic_options = nullptr;
};

bool Reads(const Step& step) { return step.kind == StepKind::kRead || step.kind == StepKind::kScan; }

class RocksSession final : public Session {
 public:
  explicit RocksSession(const Store& store)
      : store_(store), read_(rocksdb_readoptions_create()), batch_(rocksdb_writebatch_create()) {}
  ~RocksSession() override {
    if (transaction_ != nullptr) rocksdb_transaction_destroy(transaction_);
    rocksdb_writebatch_destroy(batch_);
    rocksdb_readoptions_destroy(read_);
  }

  Status Run(absl::Span<const Step> steps, ReadCheck* check) override {
    for (;; ++retries_) {
      check->Restart();
      const Status status = Attempt(steps, check);
      if (status != ErrorCode::kAborted) return status;
    }
  }

  Status RunInteractive(bool writes, Body body) override;

 private:
  // Calls of the open transaction.
  class Interactive;

  // ABORTED: a conflict.
  Status Attempt(absl::Span<const Step> steps, ReadCheck* check) {
    const bool single = steps.size() == 1 && steps[0].kind != StepKind::kReadModifyWrite;
    const bool writes_only = std::none_of(steps.begin(), steps.end(), [](const Step& step) {
      return Reads(step) || step.kind == StepKind::kReadModifyWrite;
    });
    if (single && Reads(steps[0])) return RunRead(steps[0], /*in_transaction=*/false, check);
    if (single) return PutOne(steps[0]);
    if (writes_only) return WriteBatch(steps);
    return store_.variant == Variant::kPlain ? RunWithoutIsolation(steps, check) : RunTransaction(steps, check);
  }

  Status Outcome(std::string_view what) {
    if (error_.conflict()) return DEUT_ERROR(kAborted, "a conflict");
    return error_.ToStatus(what);
  }

  Status PutOne(const Step& step) {
    if (store_.variant == Variant::kPessimistic) {
      rocksdb_transactiondb_put(store_.pessimistic, store_.write, step.key.data(), step.key.size(), step.value.data(),
                                step.value.size(), error_.out());
    } else {
      rocksdb_put(store_.plain, store_.write, step.key.data(), step.key.size(), step.value.data(), step.value.size(),
                  error_.out());
    }
    return Outcome("put");
  }

  Status WriteBatch(absl::Span<const Step> steps) {
    rocksdb_writebatch_clear(batch_);
    for (const Step& step : steps) {
      rocksdb_writebatch_put(batch_, step.key.data(), step.key.size(), step.value.data(), step.value.size());
    }
    switch (store_.variant) {
      case Variant::kPlain:
        rocksdb_write(store_.plain, store_.write, batch_, error_.out());
        break;
      case Variant::kOptimistic:
        rocksdb_optimistictransactiondb_write(store_.optimistic, store_.write, batch_, error_.out());
        break;
      case Variant::kPessimistic:
        rocksdb_transactiondb_write(store_.pessimistic, store_.write, batch_, error_.out());
        break;
    }
    return Outcome("write");
  }

  // Runs the steps one after the other, as users of the plain variant do.
  Status RunWithoutIsolation(absl::Span<const Step> steps, ReadCheck* check) {
    for (const Step& step : steps) {
      if (step.kind == StepKind::kReadModifyWrite)
        DEUT_RETURN_IF_ERROR(Get({.kind = StepKind::kRead, .key = step.key}, false, check));
      DEUT_RETURN_IF_ERROR(Reads(step) ? RunRead(step, false, check) : PutOne(step));
    }
    return Status();
  }

  Status RunTransaction(absl::Span<const Step> steps, ReadCheck* check) {
    return InTransaction([&] {
      for (const Step& step : steps) DEUT_RETURN_IF_ERROR(RunStep(step, check));
      return Status();
    });
  }

  // Begins a transaction, runs `body`, and commits or rolls back.
  Status InTransaction(absl::FunctionRef<Status()> body) {
    // Reuses the object of the previous transaction, as the documentation advises.
    transaction_ =
        store_.variant == Variant::kOptimistic
            ? rocksdb_optimistictransaction_begin(store_.optimistic, store_.write, store_.optimistic_options,
                                                  transaction_)
            : rocksdb_transaction_begin(store_.pessimistic, store_.write, store_.pessimistic_options, transaction_);
    snapshot_ = rocksdb_transaction_get_snapshot(transaction_);
    rocksdb_readoptions_set_snapshot(read_, snapshot_);
    Status status = body();
    rocksdb_readoptions_set_snapshot(read_, nullptr);
    if (status.ok()) {
      rocksdb_transaction_commit(transaction_, error_.out());
      status = Outcome("commit");
    }
    // We own the snapshot's handle; the transaction owns the snapshot itself.
    rocksdb_free(const_cast<rocksdb_snapshot_t*>(snapshot_));
    if (!status.ok()) {
      Error ignored;
      rocksdb_transaction_rollback(transaction_, ignored.out());
    }
    return status;
  }

  Status RunStep(const Step& step, ReadCheck* check) {
    if (Reads(step)) return RunRead(step, /*in_transaction=*/true, check);
    if (step.kind == StepKind::kReadModifyWrite) {
      // Locks the record against a writer between the read and the write, as a read-modify-write requires.
      size_t bytes = 0;
      char* const value = rocksdb_transaction_get_for_update(transaction_, read_, step.key.data(), step.key.size(),
                                                             &bytes, /*exclusive=*/1, error_.out());
      if (!error_.ok()) return Outcome("get for update");
      Show(step.key, value, bytes, check);
      rocksdb_free(value);
    }
    rocksdb_transaction_put(transaction_, step.key.data(), step.key.size(), step.value.data(), step.value.size(),
                            error_.out());
    return Outcome("put");
  }

  static void Show(std::string_view key, const char* value, size_t bytes, ReadCheck* check) {
    if (value == nullptr) {
      check->Missing(key);
    } else {
      check->Value(key, {value, bytes});
    }
  }

  Status RunRead(const Step& step, bool in_transaction, ReadCheck* check) {
    return step.kind == StepKind::kScan ? Scan(step, in_transaction, check) : Get(step, in_transaction, check);
  }

  Status Get(const Step& step, bool in_transaction, ReadCheck* check) {
    rocksdb_pinnableslice_t* slice = nullptr;
    if (in_transaction) {
      slice = rocksdb_transaction_get_pinned(transaction_, read_, step.key.data(), step.key.size(), error_.out());
    } else if (store_.variant == Variant::kPessimistic) {
      slice =
          rocksdb_transactiondb_get_pinned(store_.pessimistic, read_, step.key.data(), step.key.size(), error_.out());
    } else {
      slice = rocksdb_get_pinned(store_.plain, read_, step.key.data(), step.key.size(), error_.out());
    }
    if (!error_.ok()) return Outcome("get");
    size_t bytes = 0;
    const char* const value = slice == nullptr ? nullptr : rocksdb_pinnableslice_value(slice, &bytes);
    Show(step.key, value, bytes, check);
    if (slice != nullptr) rocksdb_pinnableslice_destroy(slice);
    return Status();
  }

  Status Scan(const Step& step, bool in_transaction, ReadCheck* check) {
    rocksdb_iterator_t* iterator = nullptr;
    if (in_transaction) {
      iterator = rocksdb_transaction_create_iterator(transaction_, read_);
    } else if (store_.variant == Variant::kPessimistic) {
      iterator = rocksdb_transactiondb_create_iterator(store_.pessimistic, read_);
    } else {
      iterator = rocksdb_create_iterator(store_.plain, read_);
    }
    check->BeginScan(step.key, step.limit);
    rocksdb_iter_seek(iterator, step.key.data(), step.key.size());
    for (uint32_t left = step.limit; rocksdb_iter_valid(iterator) != 0; rocksdb_iter_next(iterator)) {
      size_t key_bytes = 0, value_bytes = 0;
      const char* const key = rocksdb_iter_key(iterator, &key_bytes);
      const char* const value = rocksdb_iter_value(iterator, &value_bytes);
      check->Record({key, key_bytes}, {value, value_bytes});
      if (--left == 0) break;
    }
    check->EndScan();
    rocksdb_iter_get_error(iterator, error_.out());
    rocksdb_iter_destroy(iterator);
    return Outcome("an iterator");
  }

  const Store& store_;
  rocksdb_readoptions_t* const read_;
  rocksdb_writebatch_t* const batch_;
  rocksdb_transaction_t* transaction_ = nullptr;
  const rocksdb_snapshot_t* snapshot_ = nullptr;
  Error error_;
};

class RocksSession::Interactive final : public InteractiveTransaction {
 public:
  explicit Interactive(RocksSession& session) : session_(session) {}

  Status Get(absl::Span<const std::string> keys, std::vector<std::optional<std::string>>* values) override {
    values->assign(keys.size(), std::nullopt);
    for (size_t i = 0; i < keys.size(); ++i) {
      rocksdb_pinnableslice_t* const slice = rocksdb_transaction_get_pinned(
          session_.transaction_, session_.read_, keys[i].data(), keys[i].size(), session_.error_.out());
      DEUT_RETURN_IF_ERROR(session_.Outcome("get"));
      if (slice == nullptr) continue;
      size_t bytes = 0;
      const char* const value = rocksdb_pinnableslice_value(slice, &bytes);
      if (value != nullptr) (*values)[i] = std::string(value, bytes);
      rocksdb_pinnableslice_destroy(slice);
    }
    return Status();
  }

  Status Scan(std::string_view low, std::string_view high, Order order, uint32_t limit,
              absl::FunctionRef<void(std::string_view, std::string_view)> record) override {
    const bool up = order == Order::kAscending;
    rocksdb_iterator_t* const iterator = rocksdb_transaction_create_iterator(session_.transaction_, session_.read_);
    const auto key_of = [&] {
      size_t bytes = 0;
      const char* const key = rocksdb_iter_key(iterator, &bytes);
      return std::string_view(key, bytes);
    };
    if (up) {
      rocksdb_iter_seek(iterator, low.data(), low.size());
    } else {
      rocksdb_iter_seek_for_prev(iterator, high.data(), high.size());
      if (rocksdb_iter_valid(iterator) != 0 && key_of() == high) rocksdb_iter_prev(iterator);
    }
    for (; limit > 0 && rocksdb_iter_valid(iterator) != 0; --limit) {
      const std::string_view key = key_of();
      if (up ? key >= high : key < low) break;
      size_t bytes = 0;
      const char* const value = rocksdb_iter_value(iterator, &bytes);
      record(key, {value, bytes});
      up ? rocksdb_iter_next(iterator) : rocksdb_iter_prev(iterator);
    }
    rocksdb_iter_get_error(iterator, session_.error_.out());
    rocksdb_iter_destroy(iterator);
    return session_.Outcome("an iterator");
  }

  Status Put(std::string_view key, std::string_view value) override {
    rocksdb_transaction_put(session_.transaction_, key.data(), key.size(), value.data(), value.size(),
                            session_.error_.out());
    return session_.Outcome("put");
  }

  Status Remove(std::string_view key) override {
    rocksdb_transaction_delete(session_.transaction_, key.data(), key.size(), session_.error_.out());
    return session_.Outcome("delete");
  }

 private:
  RocksSession& session_;
};

Status RocksSession::RunInteractive(bool /*writes*/, Body body) {
  if (store_.variant == Variant::kPlain)
    return DEUT_ERROR(kInvalidArgument, "plain RocksDB has no transactions that go on after a read");
  for (;; ++retries_) {
    Interactive interactive(*this);
    const Status status = InTransaction([&] { return body(interactive); });
    if (status != ErrorCode::kAborted) return status;
  }
}

class RocksBackend final : public Backend {
 public:
  ~RocksBackend() override {
    if (store_.pessimistic != nullptr) rocksdb_transactiondb_close(store_.pessimistic);
    if (store_.optimistic != nullptr) {
      rocksdb_optimistictransactiondb_close_base_db(store_.plain);
      rocksdb_optimistictransactiondb_close(store_.optimistic);
    } else if (store_.plain != nullptr) {
      rocksdb_close(store_.plain);
    }
  }

  Status Open(const BackendOptions& options);

  BackendFacts Facts() const override {
    const std::string name = Concat("RocksDB ", ROCKSDB_MAJOR, ".", ROCKSDB_MINOR);
    BackendFacts facts{.name = name,
                       .isolation = "none",
                       .interactive = store_.variant != Variant::kPlain,
                       .buffered = "in the log's memory, written out when its buffer is full",
                       .durable = "log synced"};
    if (store_.variant == Variant::kOptimistic) {
      facts.name = Concat(name, " OptimisticTransactionDB");
      facts.isolation = "snapshot, write conflicts by validation, no phantoms prevented";
    }
    if (store_.variant == Variant::kPessimistic) {
      facts.name = Concat(name, " TransactionDB");
      facts.isolation = "snapshot, write conflicts by locks, no phantoms prevented";
    }
    return facts;
  }

  Status SetDurable(bool durable) override {
    rocksdb_writeoptions_set_sync(store_.write, durable ? 1 : 0);
    if (!durable) return Status();
    // Durable commits must not pay for the data that earlier buffered commits have left.
    Error error;
    if (store_.pessimistic != nullptr) {
      rocksdb_transactiondb_flush_wal(store_.pessimistic, 1, error.out());
    } else {
      rocksdb_flush_wal(store_.plain, 1, error.out());
    }
    return error.ToStatus("flush the log");
  }

  // Flushes and compacts everything.
  Status Settle() override {
    Error error;
    rocksdb_flushoptions_t* const flush = rocksdb_flushoptions_create();
    if (store_.pessimistic != nullptr) {
      // The C interface gives no access to its base database, so its levels compact by themselves.
      rocksdb_transactiondb_flush(store_.pessimistic, flush, error.out());
    } else {
      rocksdb_flush(store_.plain, flush, error.out());
    }
    rocksdb_flushoptions_destroy(flush);
    if (error.ok() && store_.plain != nullptr) rocksdb_compact_range(store_.plain, nullptr, 0, nullptr, 0);
    return error.ToStatus("flush");
  }

  Result<std::unique_ptr<Session>> NewSession() override {
    return std::unique_ptr<Session>(std::make_unique<RocksSession>(store_));
  }

 private:
  static rocksdb_options_t* MakeOptions(uint64_t cache_bytes);

  Store store_;
};

rocksdb_options_t* RocksBackend::MakeOptions(uint64_t cache_bytes) {
  rocksdb_block_based_table_options_t* const table = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_cache(table, rocksdb_cache_create_lru(cache_bytes));
  rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(kBloomBits));
  rocksdb_block_based_options_set_format_version(table, kFormatVersion);
  rocksdb_block_based_options_set_data_block_index_type(
      table, rocksdb_block_based_table_data_block_index_type_binary_search_and_hash);
  rocksdb_block_based_options_set_data_block_hash_ratio(table, kHashRatio);

  rocksdb_options_t* const options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_increase_parallelism(options, kBackgroundJobs);
  rocksdb_options_set_max_background_jobs(options, kBackgroundJobs);
  rocksdb_options_set_write_buffer_size(options, kWriteBufferBytes);
  rocksdb_options_set_max_write_buffer_number(options, 4);
  rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
  rocksdb_options_set_compression(options, rocksdb_no_compression);
  rocksdb_options_set_manual_wal_flush(options, 1);
  rocksdb_options_set_block_based_table_factory(options, table);
  return options;
}

Status RocksBackend::Open(const BackendOptions& options) {
  if (options.variant.empty() || options.variant == "plain") {
    store_.variant = Variant::kPlain;
  } else if (options.variant == "optimistic") {
    store_.variant = Variant::kOptimistic;
  } else if (options.variant == "pessimistic") {
    store_.variant = Variant::kPessimistic;
  } else {
    return DEUT_ERROR(kInvalidArgument, "RocksDB has no variant ", Quoted(options.variant),
                      "; there are plain, optimistic and pessimistic");
  }
  rocksdb_options_t* const rocks = MakeOptions(options.cache_bytes);
  const char* const path = options.directory.c_str();
  store_.write = rocksdb_writeoptions_create();
  Error error;
  switch (store_.variant) {
    case Variant::kPlain:
      store_.plain = rocksdb_open(rocks, path, error.out());
      break;
    case Variant::kOptimistic:
      store_.optimistic = rocksdb_optimistictransactiondb_open(rocks, path, error.out());
      if (error.ok()) store_.plain = rocksdb_optimistictransactiondb_get_base_db(store_.optimistic);
      store_.optimistic_options = rocksdb_optimistictransaction_options_create();
      rocksdb_optimistictransaction_options_set_set_snapshot(store_.optimistic_options, 1);
      break;
    case Variant::kPessimistic: {
      rocksdb_transactiondb_options_t* const locks = rocksdb_transactiondb_options_create();
      store_.pessimistic = rocksdb_transactiondb_open(rocks, locks, path, error.out());
      rocksdb_transactiondb_options_destroy(locks);
      store_.pessimistic_options = rocksdb_transaction_options_create();
      rocksdb_transaction_options_set_set_snapshot(store_.pessimistic_options, 1);
      rocksdb_transaction_options_set_deadlock_detect(store_.pessimistic_options, 1);
      break;
    }
  }
  rocksdb_options_destroy(rocks);
  return error.ToStatus("open");
}

}  // namespace

Result<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options) {
  auto backend = std::make_unique<RocksBackend>();
  DEUT_RETURN_IF_ERROR(backend->Open(options));
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace deut::bench
