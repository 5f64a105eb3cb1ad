// LMDB. Options and their reasons: options.md.
#include <lmdb.h>

#include <algorithm>
#include <utility>

#include "common/base/concat.h"
#include "integration/bench/backend.h"

namespace deut::bench {
namespace {

// This reserves address space, not memory.
constexpr size_t kMapBytes = size_t{1} << 40;

MDB_val Bytes(std::string_view bytes) { return {bytes.size(), const_cast<char*>(bytes.data())}; }
std::string_view View(const MDB_val& value) { return {static_cast<const char*>(value.mv_data), value.mv_size}; }

Status Check(int code, std::string_view what) {
  if (code == MDB_SUCCESS) return Status();
  return DEUT_ERROR(kInternal, "LMDB: ", what, ": ", mdb_strerror(code));
}

// Calls of one LMDB transaction.
class LmdbInteractive final : public InteractiveTransaction {
 public:
  LmdbInteractive(MDB_txn* transaction, MDB_dbi table) : transaction_(transaction), table_(table) {}

  Status Get(absl::Span<const std::string> keys, std::vector<std::optional<std::string>>* values) override {
    values->assign(keys.size(), std::nullopt);
    for (size_t i = 0; i < keys.size(); ++i) {
      MDB_val key = Bytes(keys[i]), value;
      const int code = mdb_get(transaction_, table_, &key, &value);
      if (code == MDB_NOTFOUND) continue;
      DEUT_RETURN_IF_ERROR(Check(code, "get"));
      (*values)[i] = std::string(View(value));
    }
    return Status();
  }

  Status Scan(std::string_view low, std::string_view high, Order order, uint32_t limit,
              absl::FunctionRef<void(std::string_view, std::string_view)> record) override {
    MDB_cursor* cursor = nullptr;
    DEUT_RETURN_IF_ERROR(Check(mdb_cursor_open(transaction_, table_, &cursor), "open a cursor"));
    const bool up = order == Order::kAscending;
    MDB_val key = Bytes(up ? low : high), value;
    int code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    // For a descending scan the cursor is now at `high` or above it, or behind the last record.
    if (!up) code = mdb_cursor_get(cursor, &key, &value, code == MDB_NOTFOUND ? MDB_LAST : MDB_PREV);
    for (; code == MDB_SUCCESS && limit > 0; --limit) {
      if (up ? View(key) >= high : View(key) < low) break;
      record(View(key), View(value));
      code = mdb_cursor_get(cursor, &key, &value, up ? MDB_NEXT : MDB_PREV);
    }
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? Status() : Check(code, "a cursor");
  }

  Status Put(std::string_view key, std::string_view value) override {
    MDB_val k = Bytes(key), v = Bytes(value);
    return Check(mdb_put(transaction_, table_, &k, &v, 0), "put");
  }

  Status Remove(std::string_view key) override {
    MDB_val k = Bytes(key);
    const int code = mdb_del(transaction_, table_, &k, nullptr);
    return code == MDB_NOTFOUND ? Status() : Check(code, "delete");
  }

 private:
  MDB_txn* const transaction_;
  const MDB_dbi table_;
};

class LmdbSession final : public Session {
 public:
  LmdbSession(MDB_env* environment, MDB_dbi table) : environment_(environment), table_(table) {}
  ~LmdbSession() override {
    if (cursor_ != nullptr) mdb_cursor_close(cursor_);
    if (reader_ != nullptr) mdb_txn_abort(reader_);
  }

  Status Run(absl::Span<const Step> steps, ReadCheck* check) override {
    check->Restart();
    const bool writes = std::any_of(steps.begin(), steps.end(), [](const Step& step) {
      return step.kind != StepKind::kRead && step.kind != StepKind::kScan;
    });
    return writes ? Write(steps, check) : Read(steps, check);
  }

  Status RunInteractive(bool writes, Body body) override {
    MDB_txn* transaction = nullptr;
    DEUT_RETURN_IF_ERROR(Check(mdb_txn_begin(environment_, nullptr, writes ? 0 : MDB_RDONLY, &transaction), "begin"));
    LmdbInteractive interactive(transaction, table_);
    if (const Status status = body(interactive); !status.ok()) {
      mdb_txn_abort(transaction);
      return status;
    }
    return Check(mdb_txn_commit(transaction), "commit");
  }

 private:
  Status Read(absl::Span<const Step> steps, ReadCheck* check) {
    // A reader is made once and then renewed, as the manual advises.
    if (reader_ == nullptr) {
      DEUT_RETURN_IF_ERROR(Check(mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &reader_), "begin"));
      DEUT_RETURN_IF_ERROR(Check(mdb_cursor_open(reader_, table_, &cursor_), "open a cursor"));
    } else {
      DEUT_RETURN_IF_ERROR(Check(mdb_txn_renew(reader_), "renew"));
      DEUT_RETURN_IF_ERROR(Check(mdb_cursor_renew(reader_, cursor_), "renew a cursor"));
    }
    Status status;
    for (const Step& step : steps) {
      status = step.kind == StepKind::kRead ? Get(reader_, step, check) : Scan(cursor_, step, check);
      if (!status.ok()) break;
    }
    mdb_txn_reset(reader_);
    return status;
  }

  Status Write(absl::Span<const Step> steps, ReadCheck* check) {
    MDB_txn* writer = nullptr;
    DEUT_RETURN_IF_ERROR(Check(mdb_txn_begin(environment_, nullptr, 0, &writer), "begin"));
    for (const Step& step : steps) {
      if (const Status status = WriteStep(writer, step, check); !status.ok()) {
        mdb_txn_abort(writer);
        return status;
      }
    }
    return Check(mdb_txn_commit(writer), "commit");
  }

  Status WriteStep(MDB_txn* writer, const Step& step, ReadCheck* check) {
    if (step.kind == StepKind::kScan) {
      MDB_cursor* cursor = nullptr;
      DEUT_RETURN_IF_ERROR(Check(mdb_cursor_open(writer, table_, &cursor), "open a cursor"));
      const Status status = Scan(cursor, step, check);
      mdb_cursor_close(cursor);
      return status;
    }
    if (step.kind == StepKind::kRead || step.kind == StepKind::kReadModifyWrite) {
      DEUT_RETURN_IF_ERROR(Get(writer, step, check));
      if (step.kind == StepKind::kRead) return Status();
    }
    MDB_val key = Bytes(step.key), value = Bytes(step.value);
    return Check(mdb_put(writer, table_, &key, &value, 0), "put");
  }

  Status Get(MDB_txn* transaction, const Step& step, ReadCheck* check) const {
    MDB_val key = Bytes(step.key), value;
    const int code = mdb_get(transaction, table_, &key, &value);
    if (code == MDB_NOTFOUND) {
      check->Missing(step.key);
      return Status();
    }
    DEUT_RETURN_IF_ERROR(Check(code, "get"));
    check->Value(step.key, View(value));
    return Status();
  }

  static Status Scan(MDB_cursor* cursor, const Step& step, ReadCheck* check) {
    MDB_val key = Bytes(step.key), value;
    check->BeginScan(step.key, step.limit);
    int code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    for (uint32_t left = step.limit; code == MDB_SUCCESS; code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
      check->Record(View(key), View(value));
      if (--left == 0) break;
    }
    check->EndScan();
    return code == MDB_NOTFOUND ? Status() : Check(code, "a cursor");
  }

  MDB_env* const environment_;
  const MDB_dbi table_;
  MDB_txn* reader_ = nullptr;
  MDB_cursor* cursor_ = nullptr;
};

class LmdbBackend final : public Backend {
 public:
  ~LmdbBackend() override {
    if (environment_ != nullptr) mdb_env_close(environment_);
  }

  Status Open(const BackendOptions& options) {
    DEUT_RETURN_IF_ERROR(Check(mdb_env_create(&environment_), "create"));
    DEUT_RETURN_IF_ERROR(Check(mdb_env_set_mapsize(environment_, kMapBytes), "the size of the map"));
    DEUT_RETURN_IF_ERROR(Check(mdb_env_set_maxreaders(environment_, options.max_threads + 16), "readers"));
    DEUT_RETURN_IF_ERROR(Check(
        mdb_env_open(environment_, options.directory.c_str(), MDB_NOTLS | MDB_NOSYNC | MDB_NORDAHEAD, 0644), "open"));
    MDB_txn* transaction = nullptr;
    DEUT_RETURN_IF_ERROR(Check(mdb_txn_begin(environment_, nullptr, 0, &transaction), "begin"));
    DEUT_RETURN_IF_ERROR(Check(mdb_dbi_open(transaction, nullptr, MDB_CREATE, &table_), "open the table"));
    return Check(mdb_txn_commit(transaction), "commit");
  }

  BackendFacts Facts() const override {
    int major = 0, minor = 0, patch = 0;
    mdb_version(&major, &minor, &patch);
    return {.name = Concat("LMDB ", major, ".", minor, ".", patch),
            .isolation = "serializable, one writer at a time",
            .buffered = "written to the system, not synced",
            .durable = "synced"};
  }

  Status SetDurable(bool durable) override {
    // Durable commits must not pay for the data that earlier buffered commits have left.
    if (durable) DEUT_RETURN_IF_ERROR(Check(mdb_env_sync(environment_, 1), "sync"));
    return Check(mdb_env_set_flags(environment_, MDB_NOSYNC, durable ? 0 : 1), "set flags");
  }

  Status Settle() override { return Check(mdb_env_sync(environment_, 1), "sync"); }

  Result<std::unique_ptr<Session>> NewSession() override {
    return std::unique_ptr<Session>(std::make_unique<LmdbSession>(environment_, table_));
  }

 private:
  MDB_env* environment_ = nullptr;
  MDB_dbi table_ = 0;
};

}  // namespace

Result<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options) {
  auto backend = std::make_unique<LmdbBackend>();
  DEUT_RETURN_IF_ERROR(backend->Open(options));
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace deut::bench
