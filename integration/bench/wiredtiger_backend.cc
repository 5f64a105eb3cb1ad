// WiredTiger. options.md has the options and their reasons.
#include <wiredtiger.h>

#include <algorithm>
#include <utility>

#include "common/base/concat.h"
#include "integration/bench/backend.h"

namespace deut::bench {
namespace {

constexpr char kTable[] = "table:usertable";

WT_ITEM Bytes(std::string_view bytes) {
  WT_ITEM item{};
  item.data = bytes.data();
  item.size = bytes.size();
  return item;
}
std::string_view View(const WT_ITEM& item) { return {static_cast<const char*>(item.data), item.size}; }

// ABORTED: a conflict, or no room in the cache for this transaction. It must be retried.
Status Check(int code, std::string_view what) {
  if (code == 0) return Status();
  if (code == WT_ROLLBACK) return DEUT_ERROR(kAborted, "a conflict");
  return DEUT_ERROR(kInternal, "WiredTiger: ", what, ": ", wiredtiger_strerror(code));
}

// Calls of the transaction that is open on a session.
class TigerInteractive final : public InteractiveTransaction {
 public:
  explicit TigerInteractive(WT_CURSOR* cursor) : cursor_(cursor) {}

  Status Get(absl::Span<const std::string> keys, std::vector<std::optional<std::string>>* values) override {
    values->assign(keys.size(), std::nullopt);
    for (size_t i = 0; i < keys.size(); ++i) {
      WT_ITEM key = Bytes(keys[i]), value{};
      cursor_->set_key(cursor_, &key);
      const int code = cursor_->search(cursor_);
      if (code == WT_NOTFOUND) continue;
      DEUT_RETURN_IF_ERROR(Check(code, "search"));
      DEUT_RETURN_IF_ERROR(Check(cursor_->get_value(cursor_, &value), "get a value"));
      (*values)[i] = std::string(View(value));
    }
    return Status();
  }

  Status Scan(std::string_view low, std::string_view high, Order order, uint32_t limit,
              absl::FunctionRef<void(std::string_view, std::string_view)> record) override {
    const bool up = order == Order::kAscending;
    WT_ITEM key = Bytes(up ? low : high), value{};
    cursor_->set_key(cursor_, &key);
    int where = 0;
    int code = cursor_->search_near(cursor_, &where);
    // The cursor is at the bound, or at a neighbour on either side.
    if (code == 0 && up && where < 0) code = cursor_->next(cursor_);
    if (code == 0 && !up && where >= 0) code = cursor_->prev(cursor_);
    for (; code == 0 && limit > 0; --limit) {
      DEUT_RETURN_IF_ERROR(Check(cursor_->get_key(cursor_, &key), "get a key"));
      if (up ? View(key) >= high : View(key) < low) break;
      DEUT_RETURN_IF_ERROR(Check(cursor_->get_value(cursor_, &value), "get a value"));
      record(View(key), View(value));
      code = up ? cursor_->next(cursor_) : cursor_->prev(cursor_);
    }
    return code == WT_NOTFOUND ? Status() : Check(code, "a cursor");
  }

  Status Put(std::string_view key, std::string_view value) override {
    WT_ITEM k = Bytes(key), v = Bytes(value);
    cursor_->set_key(cursor_, &k);
    cursor_->set_value(cursor_, &v);
    return Check(cursor_->insert(cursor_), "insert");
  }

  Status Remove(std::string_view key) override {
    WT_ITEM k = Bytes(key);
    cursor_->set_key(cursor_, &k);
    const int code = cursor_->remove(cursor_);
    return code == WT_NOTFOUND ? Status() : Check(code, "remove");
  }

 private:
  WT_CURSOR* const cursor_;
};

class TigerSession final : public Session {
 public:
  static Result<std::unique_ptr<Session>> Open(WT_CONNECTION* connection, bool durable) {
    auto session = std::make_unique<TigerSession>();
    session->durable_ = durable;
    DEUT_RETURN_IF_ERROR(Check(connection->open_session(connection, nullptr, "isolation=snapshot", &session->session_),
                               "open a session"));
    DEUT_RETURN_IF_ERROR(
        Check(session->session_->open_cursor(session->session_, kTable, nullptr, nullptr, &session->cursor_),
              "open a cursor"));
    return std::unique_ptr<Session>(std::move(session));
  }
  ~TigerSession() override {
    if (session_ != nullptr) (void)session_->close(session_, nullptr);  // this closes its cursor, too
  }

  Status Run(absl::Span<const Step> steps, ReadCheck* check) override {
    for (;; ++retries_) {
      check->Restart();
      Status status = Alone(steps) ? RunStep(steps[0], check) : RunTransaction(steps, check);
      // Releases the page.
      if (const int code = cursor_->reset(cursor_); code != 0 && status.ok()) return Check(code, "reset");
      if (status != ErrorCode::kAborted) return status;
    }
  }

  Status RunInteractive(bool /*writes*/, Body body) override {
    for (;; ++retries_) {
      Status status = AttemptInteractive(body);
      if (const int code = cursor_->reset(cursor_); code != 0 && status.ok()) return Check(code, "reset");
      if (status != ErrorCode::kAborted) return status;
    }
  }

 private:
  Status AttemptInteractive(Body body) {
    DEUT_RETURN_IF_ERROR(Check(session_->begin_transaction(session_, nullptr), "begin"));
    TigerInteractive interactive(cursor_);
    if (const Status status = body(interactive); !status.ok()) {
      (void)session_->rollback_transaction(session_, nullptr);
      return status;
    }
    return Check(session_->commit_transaction(session_, durable_ ? "sync=on" : nullptr), "commit");
  }

  // True for a read, and for a write that need not be synced: each is a transaction by itself. A scan is not, because
  // each of its steps would see another state.
  bool Alone(absl::Span<const Step> steps) const {
    if (steps.size() != 1 || steps[0].kind == StepKind::kScan || steps[0].kind == StepKind::kReadModifyWrite)
      return false;
    return steps[0].kind == StepKind::kRead || !durable_;
  }

  Status RunTransaction(absl::Span<const Step> steps, ReadCheck* check) {
    DEUT_RETURN_IF_ERROR(Check(session_->begin_transaction(session_, nullptr), "begin"));
    for (const Step& step : steps) {
      if (const Status status = RunStep(step, check); !status.ok()) {
        (void)session_->rollback_transaction(session_, nullptr);
        return status;
      }
    }
    // A commit that fails has rolled back.
    return Check(session_->commit_transaction(session_, durable_ ? "sync=on" : nullptr), "commit");
  }

  Status RunStep(const Step& step, ReadCheck* check) {
    switch (step.kind) {
      case StepKind::kScan:
        return Scan(step, check);
      case StepKind::kRead:
        return Get(step, check);
      case StepKind::kReadModifyWrite:
        DEUT_RETURN_IF_ERROR(Get(step, check));
        return Put(step);
      case StepKind::kUpdate:
      case StepKind::kInsert:
        break;
    }
    return Put(step);
  }

  Status Put(const Step& step) {
    WT_ITEM key = Bytes(step.key), value = Bytes(step.value);
    cursor_->set_key(cursor_, &key);
    cursor_->set_value(cursor_, &value);
    return Check(cursor_->insert(cursor_), "insert");
  }

  Status Get(const Step& step, ReadCheck* check) {
    WT_ITEM key = Bytes(step.key), value{};
    cursor_->set_key(cursor_, &key);
    const int code = cursor_->search(cursor_);
    if (code == WT_NOTFOUND) {
      check->Missing(step.key);
      return Status();
    }
    DEUT_RETURN_IF_ERROR(Check(code, "search"));
    DEUT_RETURN_IF_ERROR(Check(cursor_->get_value(cursor_, &value), "get a value"));
    check->Value(step.key, View(value));
    return Status();
  }

  Status Scan(const Step& step, ReadCheck* check) {
    WT_ITEM key = Bytes(step.key), value{};
    check->BeginScan(step.key, step.limit);
    cursor_->set_key(cursor_, &key);
    int where = 0;
    int code = cursor_->search_near(cursor_, &where);
    if (code == 0 && where < 0) code = cursor_->next(cursor_);
    for (uint32_t left = step.limit; code == 0; code = cursor_->next(cursor_)) {
      DEUT_RETURN_IF_ERROR(Check(cursor_->get_key(cursor_, &key), "get a key"));
      DEUT_RETURN_IF_ERROR(Check(cursor_->get_value(cursor_, &value), "get a value"));
      check->Record(View(key), View(value));
      if (--left == 0) break;
    }
    check->EndScan();
    return code == WT_NOTFOUND ? Status() : Check(code, "a cursor");
  }

  bool durable_ = false;
  WT_SESSION* session_ = nullptr;
  WT_CURSOR* cursor_ = nullptr;
};

class TigerBackend final : public Backend {
 public:
  ~TigerBackend() override {
    if (connection_ != nullptr) (void)connection_->close(connection_, nullptr);
  }

  Status Open(const BackendOptions& options) {
    const std::string settings =
        Concat("create,cache_size=", options.cache_bytes, ",session_max=", options.max_threads + 64,
               ",log=(enabled=true,file_max=256MB),transaction_sync=(enabled=false),checkpoint=(wait=60)",
               ",eviction=(threads_min=1,threads_max=2)");
    DEUT_RETURN_IF_ERROR(
        Check(wiredtiger_open(options.directory.c_str(), nullptr, settings.c_str(), &connection_), "open"));
    DEUT_RETURN_IF_ERROR(Check(connection_->open_session(connection_, nullptr, nullptr, &session_), "open a session"));
    return Check(session_->create(session_, kTable, "key_format=u,value_format=u"), "create the table");
  }

  BackendFacts Facts() const override {
    int major = 0, minor = 0, patch = 0;
    (void)wiredtiger_version(&major, &minor, &patch);
    return {.name = Concat("WiredTiger ", major, ".", minor, ".", patch),
            .isolation = "snapshot, no write skew or phantoms prevented",
            .buffered = "in the log's memory, written out when its buffer is full",
            .durable = "log synced"};
  }

  Status SetDurable(bool durable) override {
    durable_ = durable;
    // Durable commits must not pay for the data that earlier buffered commits have left.
    return durable ? Check(session_->log_flush(session_, "sync=on"), "flush the log") : Status();
  }

  Result<std::unique_ptr<Session>> NewSession() override { return TigerSession::Open(connection_, durable_); }

  Status Settle() override { return Check(session_->checkpoint(session_, nullptr), "checkpoint"); }

 private:
  bool durable_ = false;
  WT_CONNECTION* connection_ = nullptr;
  WT_SESSION* session_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options) {
  auto backend = std::make_unique<TigerBackend>();
  DEUT_RETURN_IF_ERROR(backend->Open(options));
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace deut::bench
