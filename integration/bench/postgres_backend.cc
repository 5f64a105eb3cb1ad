// PostgreSQL, over libpq: BackendOptions::target is a connection string. Serializable; prepared statements, binary. Operations that are
// known beforehand go in one pipeline, which is one implicit transaction and one round trip. Options and their reasons: options.md.
#include <postgresql/libpq-fe.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

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

// Statements by name; keys are compared byte by byte.
constexpr char kCreate[] =
    "SET client_min_messages = warning; DROP TABLE IF EXISTS usertable; "
    "CREATE TABLE usertable (key text COLLATE \"C\" PRIMARY KEY WITH (fillfactor = 90), value bytea NOT NULL) "
    "WITH (fillfactor = 80)";
constexpr char kRead[] = "read", kUpdate[] = "update", kInsert[] = "insert", kScan[] = "scan", kBegin[] = "begin",
               kCommit[] = "commit";
constexpr std::array<std::pair<const char*, const char*>, 6> kStatements = {{
    {kRead, "SELECT value FROM usertable WHERE key = $1"},
    {kUpdate, "UPDATE usertable SET value = $2 WHERE key = $1"},
    {kInsert, "INSERT INTO usertable VALUES ($1, $2)"},
    {kScan, "SELECT key, value FROM usertable WHERE key >= $1 ORDER BY key LIMIT $2::int8"},
    {kBegin, "BEGIN"},
    {kCommit, "COMMIT"},
}};

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
    const bool interactive = std::any_of(steps.begin(), steps.end(),
                                         [](const Step& step) { return step.kind == StepKind::kReadModifyWrite; });
    for (;; ++retries_) {
      check->Restart();
      const Status status = interactive ? RunInteractively(steps, check) : RunInOnePipeline(steps, check);
      if (status != ErrorCode::kAborted) return status;
    }
  }

 private:
  Status Send(const char* statement, std::string_view first = {}, std::string_view second = {}) {
    const int parameters = first.empty() ? 0 : second.empty() ? 1 : 2;
    const char* const values[] = {first.data(), second.data()};
    const int lengths[] = {static_cast<int>(first.size()), static_cast<int>(second.size())};
    constexpr int kBinary[] = {1, 1};
    const int sent = PQsendQueryPrepared(connection_, statement, parameters, values, lengths, kBinary, 1);
    return sent == 1 ? Status() : Failure(connection_, "send");
  }

  Status SendStep(const Step& step) {
    switch (step.kind) {
      case StepKind::kUpdate:
      case StepKind::kReadModifyWrite:
        return Send(kUpdate, step.key, step.value);
      case StepKind::kInsert:
        return Send(kInsert, step.key, step.value);
      case StepKind::kScan: {
        // As the server wants its integers.
        static_assert(std::endian::native == std::endian::little);
        const uint64_t limit = __builtin_bswap64(step.limit);
        char bytes[sizeof(limit)];
        std::memcpy(bytes, &limit, sizeof(limit));
        return Send(kScan, step.key, {bytes, sizeof(bytes)});
      }
      case StepKind::kRead:
        break;
    }
    return Send(kRead, step.key);
  }

  Status Sync() { return PQpipelineSync(connection_) == 1 ? Status() : Failure(connection_, "send"); }

  // ABORTED: could not be serialized, or a deadlock.
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

  // The answer to one statement, which ends with a null.
  Status Receive(Answer* answer) {
    answer->reset(PQgetResult(connection_));
    if (*answer == nullptr) return Failure(connection_, "receive");
    const Status verdict = Verdict(answer->get());
    while (const Answer more{PQgetResult(connection_)}) {
    }
    return verdict;
  }
  // That to a sync, which commits an implicit transaction: where that fails it says so first.
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
    const auto field = [answer](int row, int column) -> std::string_view {
      return {PQgetvalue(answer, row, column), static_cast<size_t>(PQgetlength(answer, row, column))};
    };
    const int rows = PQntuples(answer);
    if (step.kind == StepKind::kScan) {
      check->BeginScan(step.key, step.limit);
      for (int row = 0; row < rows; ++row) check->Record(field(row, 0), field(row, 1));
      check->EndScan();
    } else if (rows == 1) {
      check->Value(step.key, field(0, 0));
    } else {
      check->Missing(step.key);
    }
  }

  static bool Reads(const Step& step) { return step.kind == StepKind::kRead || step.kind == StepKind::kScan; }

  Status RunInOnePipeline(absl::Span<const Step> steps, ReadCheck* check) {
    for (const Step& step : steps) DEUT_RETURN_IF_ERROR(SendStep(step));
    DEUT_RETURN_IF_ERROR(Sync());
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

  // Each read-modify-write is a round trip; what can go with it does.
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
    // After a failure it ends the transaction, too: as a rollback.
    DEUT_RETURN_IF_ERROR(Send(kCommit));
    const Status ended = Flush(unanswered, nullptr, check);
    if (PQtransactionStatus(connection_) == PQTRANS_INERROR) {
      // A write failed, and the server has skipped the end of the transaction behind it.
      DEUT_RETURN_IF_ERROR(Send(kCommit));
      DEUT_RETURN_IF_ERROR(Flush(0, nullptr, check));
    }
    return verdict.ok() ? ended : verdict;
  }

  // Sync, the answers to `before` statements that show nothing, that to `shown` (or to one more that shows nothing).
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

class PostgresBackend final : public Backend {
 public:
  PostgresBackend(std::string target, Connection connection)
      : target_(std::move(target)), connection_(std::move(connection)) {}

  BackendFacts Facts() const override {
    const int version = PQserverVersion(connection_.get());
    return {.name = Concat("PostgreSQL ", version / 10000, ".", version % 10000, ", one at a time"),
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
