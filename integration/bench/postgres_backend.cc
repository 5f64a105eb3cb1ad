// PostgreSQL, over libpq: BackendOptions::target is a connection string. Serializable; prepared statements, binary.
// Operations known beforehand go in one pipeline, which is one implicit transaction and one round trip. options.md
// has the options and their reasons.
#include <postgresql/libpq-fe.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "integration/bench/backend.h"

namespace deut::bench {
namespace {

struct FreeConnection {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
using Connection = std::unique_ptr<PGconn, FreeConnection>;
struct FreeResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Answer = std::unique_ptr<PGresult, FreeResult>;

// Statements by name. The collation compares keys byte by byte.
constexpr char kCreate[] =
    "SET client_min_messages = warning; DROP TABLE IF EXISTS usertable; "
    "CREATE TABLE usertable (key text COLLATE \"C\" PRIMARY KEY WITH (fillfactor = 90), value bytea NOT NULL) "
    "WITH (fillfactor = 80)";
constexpr char kRead[] = "read", kUpdate[] = "update", kInsert[] = "insert", kScan[] = "scan", kBegin[] = "begin",
               kCommit[] = "commit", kRollback[] = "rollback", kPut[] = "put", kRemove[] = "remove",
               kAscending[] = "ascending", kDescending[] = "descending";
constexpr std::array<std::pair<const char*, const char*>, 11> kStatements = {{
    {kRead, "SELECT value FROM usertable WHERE key = $1"},
    {kUpdate, "UPDATE usertable SET value = $2 WHERE key = $1"},
    {kInsert, "INSERT INTO usertable VALUES ($1, $2)"},
    {kScan, "SELECT key, value FROM usertable WHERE key >= $1 ORDER BY key LIMIT $2::int8"},
    {kBegin, "BEGIN"},
    {kCommit, "COMMIT"},
    {kRollback, "ROLLBACK"},
    {kPut, "INSERT INTO usertable VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"},
    {kRemove, "DELETE FROM usertable WHERE key = $1"},
    {kAscending, "SELECT key, value FROM usertable WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3::int8"},
    {kDescending, "SELECT key, value FROM usertable WHERE key >= $1 AND key < $2 ORDER BY key DESC LIMIT $3::int8"},
}};

// A number in the byte order that the server expects.
class Int8 {
 public:
  explicit Int8(uint64_t number) {
    static_assert(std::endian::native == std::endian::little);
    const uint64_t turned = __builtin_bswap64(number);
    std::memcpy(bytes_, &turned, sizeof(turned));
  }
  std::string_view view() const { return {bytes_, sizeof(bytes_)}; }

 private:
  char bytes_[sizeof(uint64_t)];
};

std::string_view Field(const PGresult* answer, int row, int column) {
  return {PQgetvalue(answer, row, column), static_cast<size_t>(PQgetlength(answer, row, column))};
}

Status Failure(PGconn* connection, std::string_view what) {
  return DEUT_ERROR(kInternal, "PostgreSQL: ", what, ": ", PQerrorMessage(connection));
}

Status Command(PGconn* connection, const char* text) {
  const Answer answer(PQexec(connection, text));
  const ExecStatusType status = PQresultStatus(answer.get());
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? Status() : Failure(connection, text);
}

Result<Connection> Connect(const std::string& target) {
  Connection connection(PQconnectdb(target.c_str()));
  if (PQstatus(connection.get()) != CONNECTION_OK) return Failure(connection.get(), "connect");
  return connection;
}

class PostgresSession final : public Session {
 public:
  explicit PostgresSession(Connection connection) : owned_(std::move(connection)), connection_(owned_.get()) {}

  Status Prepare(bool durable) {
    DEUT_RETURN_IF_ERROR(Command(connection_, "SET default_transaction_isolation = 'serializable'"));
    DEUT_RETURN_IF_ERROR(
        Command(connection_, durable ? "SET synchronous_commit = on" : "SET synchronous_commit = off"));
    for (const auto& [name, text] : kStatements) {
      const Answer prepared(PQprepare(connection_, name, text, 0, nullptr));
      if (PQresultStatus(prepared.get()) != PGRES_COMMAND_OK) return Failure(connection_, name);
    }
    return PQenterPipelineMode(connection_) == 1 ? Status() : Failure(connection_, "enter pipeline mode");
  }

  Status Run(absl::Span<const Step> steps, ReadCheck* check) override {
    const bool interactive = std::any_of(steps.begin(), steps.end(), HasToBeInteractive);
    for (;; ++retries_) {
      check->Restart();
      const Status status = interactive ? RunInteractively(steps, check) : RunInOnePipeline(steps, check);
      if (status != ErrorCode::kAborted) return status;
    }
  }

  // Sends all transactions at once, each with a sync of its own; the server runs them one after the other. A
  // transaction that it could not serialize is retried alone.
  Status RunPipelined(absl::Span<const Step> steps, size_t steps_per_transaction, ReadCheck* check) override {
    if (std::any_of(steps.begin(), steps.end(), HasToBeInteractive))
      return Session::RunPipelined(steps, steps_per_transaction, check);
    for (size_t first = 0; first < steps.size(); first += steps_per_transaction)
      DEUT_RETURN_IF_ERROR(SendOfOne(steps.subspan(first, steps_per_transaction)));
    std::vector<absl::Span<const Step>> again;
    for (size_t first = 0; first < steps.size(); first += steps_per_transaction) {
      const absl::Span<const Step> own = steps.subspan(first, steps_per_transaction);
      check->Restart();
      const Status status = ReceiveOfOne(own, check);
      if (status == ErrorCode::kAborted) {
        again.push_back(own);
        continue;
      }
      DEUT_RETURN_IF_ERROR(status);
      DEUT_RETURN_IF_ERROR(check->Commit());
    }
    for (const absl::Span<const Step> own : again) {
      ++retries_;
      DEUT_RETURN_IF_ERROR(Run(own, check));
      DEUT_RETURN_IF_ERROR(check->Commit());
    }
    return Status();
  }

  Status RunInteractive(bool writes, Body body) override;

 private:
  static bool HasToBeInteractive(const Step& step) { return step.kind == StepKind::kReadModifyWrite; }

  // Calls of the open transaction.
  class Interactive;
  Status AttemptInteractive(Body body);

  Status Send(const char* statement, std::initializer_list<std::string_view> parameters = {}) {
    constexpr int kMaxParameters = 3;
    constexpr int kBinary[kMaxParameters] = {1, 1, 1};
    const char* values[kMaxParameters];
    int lengths[kMaxParameters];
    int count = 0;
    for (const std::string_view parameter : parameters) {
      values[count] = parameter.data();
      lengths[count++] = static_cast<int>(parameter.size());
    }
    const int sent = PQsendQueryPrepared(connection_, statement, count, values, lengths, kBinary, 1);
    return sent == 1 ? Status() : Failure(connection_, "send");
  }

  Status SendStep(const Step& step) {
    switch (step.kind) {
      case StepKind::kUpdate:
      case StepKind::kReadModifyWrite:
        return Send(kUpdate, {step.key, step.value});
      case StepKind::kInsert:
        return Send(kInsert, {step.key, step.value});
      case StepKind::kScan:
        return Send(kScan, {step.key, Int8(step.limit).view()});
      case StepKind::kRead:
        break;
    }
    return Send(kRead, {step.key});
  }

  Status Sync() { return PQpipelineSync(connection_) == 1 ? Status() : Failure(connection_, "send"); }

  // ABORTED: the transaction could not be serialized, or there was a deadlock.
  static Status Verdict(const PGresult* answer) {
    switch (PQresultStatus(answer)) {
      case PGRES_COMMAND_OK:
      case PGRES_TUPLES_OK:
        return Status();
      case PGRES_PIPELINE_ABORTED:
        return DEUT_ERROR(kAborted, "after a failure");
      default:
        break;
    }
    const char* const state = PQresultErrorField(answer, PG_DIAG_SQLSTATE);
    if (state != nullptr && (std::string_view(state) == "40001" || std::string_view(state) == "40P01"))
      return DEUT_ERROR(kAborted, "a conflict");
    return DEUT_ERROR(kInternal, "PostgreSQL: ", PQresultErrorMessage(answer));
  }

  // Receives the answer to one statement, which ends with a null.
  Status Receive(Answer* answer) {
    answer->reset(PQgetResult(connection_));
    if (*answer == nullptr) return Failure(connection_, "receive");
    const Status verdict = Verdict(answer->get());
    while (const Answer more{PQgetResult(connection_)}) {
    }
    return verdict;
  }
  // Receives the answer to a sync, which commits an implicit transaction. If the commit fails, the server reports
  // that first.
  Status ReceiveSync() {
    Status verdict;
    for (;;) {
      const Answer answer(PQgetResult(connection_));
      if (PQresultStatus(answer.get()) == PGRES_PIPELINE_SYNC) return verdict;
      if (PQstatus(connection_) != CONNECTION_OK) return Failure(connection_, "no sync");
      if (answer != nullptr && verdict.ok()) verdict = Verdict(answer.get());
    }
  }

  static void Show(const Step& step, const PGresult* answer, ReadCheck* check) {
    const int rows = PQntuples(answer);
    if (step.kind == StepKind::kScan) {
      check->BeginScan(step.key, step.limit);
      for (int row = 0; row < rows; ++row) check->Record(Field(answer, row, 0), Field(answer, row, 1));
      check->EndScan();
    } else if (rows == 1) {
      check->Value(step.key, Field(answer, 0, 0));
    } else {
      check->Missing(step.key);
    }
  }

  static bool Reads(const Step& step) { return step.kind == StepKind::kRead || step.kind == StepKind::kScan; }

  Status RunInOnePipeline(absl::Span<const Step> steps, ReadCheck* check) {
    DEUT_RETURN_IF_ERROR(SendOfOne(steps));
    return ReceiveOfOne(steps, check);
  }
  Status SendOfOne(absl::Span<const Step> steps) {
    for (const Step& step : steps) DEUT_RETURN_IF_ERROR(SendStep(step));
    return Sync();
  }
  Status ReceiveOfOne(absl::Span<const Step> steps, ReadCheck* check) {
    Status verdict;
    for (const Step& step : steps) {
      Answer answer;
      const Status status = Receive(&answer);
      if (verdict.ok()) verdict = status;
      if (verdict.ok() && Reads(step)) Show(step, answer.get(), check);
    }
    const Status committed = ReceiveSync();
    return verdict.ok() ? committed : verdict;
  }

  // Each read-modify-write costs a round trip; other statements travel with it.
  Status RunInteractively(absl::Span<const Step> steps, ReadCheck* check) {
    DEUT_RETURN_IF_ERROR(Send(kBegin));
    size_t unanswered = 1;
    Status verdict;
    for (const Step& step : steps) {
      Step reading = step;
      if (step.kind == StepKind::kReadModifyWrite) reading.kind = StepKind::kRead;
      DEUT_RETURN_IF_ERROR(SendStep(reading));
      verdict = Flush(unanswered, &reading, check);
      unanswered = 0;
      if (!verdict.ok()) break;
      if (step.kind == StepKind::kReadModifyWrite) {
        DEUT_RETURN_IF_ERROR(SendStep(step));
        ++unanswered;
      }
    }
    // After a failure this ends the transaction, too, as a rollback.
    DEUT_RETURN_IF_ERROR(Send(kCommit));
    const Status ended = Flush(unanswered, nullptr, check);
    if (PQtransactionStatus(connection_) == PQTRANS_INERROR) {
      // A write failed, and the server has skipped the commit behind it.
      DEUT_RETURN_IF_ERROR(Send(kCommit));
      DEUT_RETURN_IF_ERROR(Flush(0, nullptr, check));
    }
    return verdict.ok() ? ended : verdict;
  }

  // Sends a sync. Receives the answers to `before` statements without results, and that to `shown` (or to one more
  // statement without a result).
  Status Flush(size_t before, const Step* shown, ReadCheck* check) {
    DEUT_RETURN_IF_ERROR(Sync());
    Status verdict;
    for (size_t i = 0; i < before + 1; ++i) {
      Answer answer;
      const Status status = Receive(&answer);
      if (verdict.ok()) verdict = status;
      if (verdict.ok() && i == before && shown != nullptr && Reads(*shown)) Show(*shown, answer.get(), check);
    }
    const Status committed = ReceiveSync();
    return verdict.ok() ? committed : verdict;
  }

  const Connection owned_;
  PGconn* const connection_;
};

// A write is sent at once, and its answer is received with that of the next read, or of the commit.
class PostgresSession::Interactive final : public InteractiveTransaction {
 public:
  // REQUIRES: BEGIN has been sent.
  explicit Interactive(PostgresSession& session) : session_(session) {}

  Status Get(absl::Span<const std::string> keys, std::vector<std::optional<std::string>>* values) override {
    values->assign(keys.size(), std::nullopt);
    for (const std::string& key : keys) DEUT_RETURN_IF_ERROR(session_.Send(kRead, {key}));
    return Flush(keys.size(), [&](size_t i, const PGresult* answer) {
      if (PQntuples(answer) == 1) (*values)[i] = std::string(Field(answer, 0, 0));
    });
  }

  Status Scan(std::string_view low, std::string_view high, Order order, uint32_t limit,
              absl::FunctionRef<void(std::string_view, std::string_view)> record) override {
    DEUT_RETURN_IF_ERROR(
        session_.Send(order == Order::kAscending ? kAscending : kDescending, {low, high, Int8(limit).view()}));
    return Flush(1, [&](size_t, const PGresult* answer) {
      for (int row = 0; row < PQntuples(answer); ++row) record(Field(answer, row, 0), Field(answer, row, 1));
    });
  }

  Status Put(std::string_view key, std::string_view value) override {
    ++unanswered_;
    return session_.Send(kPut, {key, value});
  }

  Status Remove(std::string_view key) override {
    ++unanswered_;
    return session_.Send(kRemove, {key});
  }

  // Receives the answers to the statements sent before, then those to `shown` more statements, then that to a sync.
  Status Flush(size_t shown, absl::FunctionRef<void(size_t, const PGresult*)> show) {
    DEUT_RETURN_IF_ERROR(session_.Sync());
    Status verdict;
    for (size_t i = 0; i < unanswered_ + shown; ++i) {
      Answer answer;
      const Status status = session_.Receive(&answer);
      if (verdict.ok()) verdict = status;
      if (verdict.ok() && i >= unanswered_) show(i - unanswered_, answer.get());
    }
    unanswered_ = 0;
    const Status synced = session_.ReceiveSync();
    return verdict.ok() ? synced : verdict;
  }

 private:
  PostgresSession& session_;
  size_t unanswered_ = 1;  // BEGIN has no answer yet
};

Status PostgresSession::AttemptInteractive(Body body) {
  DEUT_RETURN_IF_ERROR(Send(kBegin));
  Interactive interactive(*this);
  const auto nothing = [](size_t, const PGresult*) {};
  Status verdict = body(interactive);
  if (verdict.ok()) {
    DEUT_RETURN_IF_ERROR(Send(kCommit));
    verdict = interactive.Flush(1, nothing);
  } else if (verdict != ErrorCode::kAborted) {
    // The body's writes before its error have no answer yet.
    (void)interactive.Flush(0, nothing);
  }
  if (PQtransactionStatus(connection_) != PQTRANS_IDLE) {
    DEUT_RETURN_IF_ERROR(Send(kRollback));
    DEUT_RETURN_IF_ERROR(interactive.Flush(1, nothing));
  }
  return verdict;
}

Status PostgresSession::RunInteractive(bool /*writes*/, Body body) {
  for (;; ++retries_) {
    const Status status = AttemptInteractive(body);
    if (status != ErrorCode::kAborted) return status;
  }
}

class PostgresBackend final : public Backend {
 public:
  PostgresBackend(std::string target, Connection connection)
      : target_(std::move(target)), connection_(std::move(connection)) {}

  BackendFacts Facts() const override {
    const int version = PQserverVersion(connection_.get());
    return {.name = Concat("PostgreSQL ", version / 10000, ".", version % 10000),
            .isolation = "serializable",
            .buffered = "in the log's memory, written out within moments (synchronous_commit off)",
            .durable = "log synced"};
  }

  Status SetDurable(bool durable) override {
    durable_ = durable;
    return Status();
  }

  Result<std::unique_ptr<Session>> NewSession() override {
    DEUT_ASSIGN_OR_RETURN(Connection connection, Connect(target_));
    auto session = std::make_unique<PostgresSession>(std::move(connection));
    DEUT_RETURN_IF_ERROR(session->Prepare(durable_));
    return std::unique_ptr<Session>(std::move(session));
  }

  Status Settle() override {
    DEUT_RETURN_IF_ERROR(Command(connection_.get(), "VACUUM (ANALYZE) usertable"));
    return Command(connection_.get(), "CHECKPOINT");
  }

 private:
  const std::string target_;
  const Connection connection_;
  bool durable_ = false;
};

}  // namespace

Result<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options) {
  DEUT_ASSIGN_OR_RETURN(Connection connection, Connect(options.target));
  DEUT_RETURN_IF_ERROR(Command(connection.get(), kCreate));
  return std::unique_ptr<Backend>(std::make_unique<PostgresBackend>(options.target, std::move(connection)));
}

}  // namespace deut::bench
