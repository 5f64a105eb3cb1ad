#include "protocol/transactions/rights_service.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/runtime/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/pipelined_call.h"
#include "protocol/prefetch.h"

namespace deut {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr TableId kMine = TableId(1), kOthers = TableId(2), kNone = TableId(3);

// Records the calls that reach it. Without `steps` it can neither pipeline nor prefetch.
class CountingSession final : public TransactionSession, PipelinedSteps, PrefetchSteps {
 public:
  CountingSession(std::vector<std::string>* calls, bool steps) : calls_(*calls), steps_(steps) {}
  Timestamp not_before() const override { return Timestamp(7); }
  Result<Timestamp> Begin(const TransactionOptions&, Deadline) override { return Called("begin", Timestamp(8)); }
  Status Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results, Deadline) override {
    results->assign(operations.size(), OperationResult());
    calls_.push_back("execute");
    return Status::Ok();
  }
  PipelinedSteps* pipelined_steps() override { return steps_ ? this : nullptr; }
  PrefetchSteps* prefetch_steps() override { return steps_ ? this : nullptr; }
  Result<CommitAnswer> Commit(Deadline) override { return Called("commit", CommitAnswer()); }
  Status Abort() override { return Called("abort", Status::Ok()); }
  Result<CommitAnswer> ExecuteOneShot(const TransactionOptions&, absl::Span<const Operation>,
                                      std::vector<OperationResult>*, Deadline) override {
    return Called("one_shot", CommitAnswer());
  }
  Result<ScanBegun> BeginScan(const TransactionOptions&, const Operation&, std::vector<OperationResult>*,
                              Deadline) override {
    return Called("begin_scan", ScanBegun());
  }

 private:
  bool SendPipelined(PipelinedSteps::Token, absl::Span<const Operation>, Deadline) override {
    return Called("send_pipelined", true);
  }
  Status AwaitPipelined(PipelinedSteps::Token, absl::Span<const Operation>, std::vector<OperationResult>*,
                        Deadline) override {
    return Called("await_pipelined", Status::Ok());
  }
  bool NotePrefetch(PrefetchSteps::Token, absl::Span<const Operation>) override {
    noted_ = true;
    return Called("note_prefetch", true);
  }
  std::unique_ptr<BegunOneShot> BeginForPrefetch(PrefetchSteps::Token, const TransactionOptions&,
                                                 absl::Span<const Operation>) override {
    noted_ = true;
    return Called("begin_for_prefetch", std::make_unique<BegunOneShot>());
  }
  bool StartPrefetch(PrefetchSteps::Token) override { return Called("start_prefetch", std::exchange(noted_, false)); }
  bool AwaitPrefetch(PrefetchSteps::Token, Deadline) override { return Called("await_prefetch", true); }
  template <typename T>
  T Called(const char* name, T answer) {
    calls_.push_back(name);
    return answer;
  }

  std::vector<std::string>& calls_;
  const bool steps_;
  bool noted_ = false;
};

class CountingService final : public TransactionService {
 public:
  Result<std::unique_ptr<TransactionSession>> NewSession(Deadline) override {
    return std::unique_ptr<TransactionSession>(std::make_unique<CountingSession>(&calls, steps));
  }
  Result<OutcomeAnswer> AskOutcome(const TransactionName&, Deadline) override { return OutcomeAnswer(); }
  Result<std::string> NameOfTable(TableId table) override {
    ++name_look_ups;
    if (table == kMine) return std::string("mine.a");
    if (table == kOthers) return std::string("others.b");
    return DEUT_ERROR(kNotFound, "there is no table with id ", table.value);
  }
  Result<TableId> OpenTable(std::string_view, Deadline) override { return kMine; }
  Result<TableId> CreateTable(std::string_view, const TableOptions&, Deadline) override {
    calls.push_back("create");
    return kMine;
  }
  Status DropTable(std::string_view, Deadline) override {
    calls.push_back("drop");
    return Status::Ok();
  }
  Result<std::vector<TableInfo>> ListTables(Deadline) override {
    return std::vector<TableInfo>{{.id = kMine, .name = "mine.a"}, {.id = kOthers, .name = "others.b"}};
  }
  Result<ServiceStatus> GetStatus(Deadline) override { return ServiceStatus(); }
  Status DropCaches(Deadline) override {
    calls.push_back("drop_caches");
    return Status::Ok();
  }

  std::vector<std::string> calls;
  bool steps = true;  // of the sessions
  int name_look_ups = 0;
};

Operation Of(OperationKind kind, TableId table) {
  Operation operation;
  operation.kind = kind;
  operation.table = table;
  operation.key = "k";
  return operation;
}

class RightsServiceTest : public ::testing::Test {
 protected:
  static Authorizer Rights(const std::string& text) {
    auto grants = Authorizer::ParseRights("rights", text, {Role::kReader, Role::kClient, Role::kAdmin});
    EXPECT_TRUE(grants.ok()) << grants.status().ToString();
    return Authorizer(*std::move(grants));
  }
  std::unique_ptr<TransactionSession> Session(RightsService& service) { return *service.NewSession(kNoDeadline); }
  ErrorCode Run(TransactionSession& session, const Operation& operation) {
    std::vector<OperationResult> results;
    return session.ExecuteOneShot({}, {&operation, 1}, &results, kNoDeadline).status().code();
  }

  CountingService inner_;
  AccessControl access_{RealRuntime(),
                        Rights("app client mine.\napp reader pub.\nreport reader\nops admin mine.\nroot admin\n")};
  RightsService app_{inner_, access_, {"app"}};
  RightsService report_{inner_, access_, {"report"}};
};

TEST_F(RightsServiceTest, EveryKindOfOperationNeedsTheRightToItsTable) {
  const auto app = Session(app_), report = Session(report_);
  for (int kind = 0; kind <= static_cast<int>(OperationKind::kRemoveRange); ++kind) {
    const auto as_kind = static_cast<OperationKind>(kind);
    EXPECT_EQ(Run(*app, Of(as_kind, kMine)), ErrorCode::kOk) << kind;
    EXPECT_EQ(Run(*app, Of(as_kind, kOthers)), ErrorCode::kPermissionDenied) << kind;
    const bool reads = as_kind == OperationKind::kGet || as_kind == OperationKind::kScan;
    EXPECT_EQ(Run(*report, Of(as_kind, kOthers)), reads ? ErrorCode::kOk : ErrorCode::kPermissionDenied) << kind;
  }
  Operation announced = Of(OperationKind::kScan, kOthers);
  announced.for_update = true;
  EXPECT_EQ(Run(*report, announced), ErrorCode::kPermissionDenied);
}

TEST_F(RightsServiceTest, ARefusedOperationReachesNothingAndAbortsItsTransaction) {
  const auto session = Session(app_);
  ASSERT_TRUE(session->Begin({}, kNoDeadline).ok());
  inner_.calls.clear();
  std::vector<OperationResult> results;
  const std::vector<Operation> operations = {Of(OperationKind::kPut, kMine), Of(OperationKind::kPut, kOthers),
                                             Of(OperationKind::kGet, kMine)};
  const Status refused = session->Execute(operations, &results, kNoDeadline);
  EXPECT_EQ(refused.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(refused.ToString(), HasSubstr("\"app\" may not write to the table with id 2"));
  EXPECT_THAT(inner_.calls, ElementsAre("abort"));
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].status.code(), ErrorCode::kWrongState);
  EXPECT_EQ(results[1].status.code(), ErrorCode::kPermissionDenied);
}

// Ids count from 1, so a peer with a right to one table could otherwise learn the names of all.
TEST_F(RightsServiceTest, NamesAreShownOnlyToPeersThatMaySeeThem) {
  const auto app = Session(app_), report = Session(report_);
  std::vector<OperationResult> results;
  for (int kind = 0; kind <= static_cast<int>(OperationKind::kRemoveRange); ++kind) {
    const Operation operation = Of(static_cast<OperationKind>(kind), kOthers);
    const Status refused = app->ExecuteOneShot({}, {&operation, 1}, &results, kNoDeadline).status();
    EXPECT_THAT(refused.ToString(), AllOf(HasSubstr("the table with id 2"), Not(HasSubstr("others"))));
    EXPECT_THAT(results.at(0).status.ToString(), Not(HasSubstr("others")));
  }
  const Operation put = Of(OperationKind::kPut, kOthers);
  EXPECT_THAT(report->ExecuteOneShot({}, {&put, 1}, &results, kNoDeadline).status().ToString(),
              HasSubstr("\"report\" may not write to the table \"others.b\""))
      << "it reads that table";
}

TEST_F(RightsServiceTest, NothingIsPreparedOrDeclaredWithoutTheRight) {
  std::unique_ptr<TransactionSession> session = Session(app_);
  const Operation get = Of(OperationKind::kGet, kOthers), scan = Of(OperationKind::kScan, kOthers);
  PrefetchNotes notes(std::move(session));
  EXPECT_FALSE(notes.Note({&get, 1}));
  EXPECT_FALSE(notes.Begin({}, {&scan, 1}, 0));
  PendingPrefetch pending = std::move(notes).Start();
  EXPECT_FALSE(pending.sent());
  session = std::move(pending).Await(kNoDeadline).session;
  ASSERT_NE(session, nullptr);
  EXPECT_FALSE(PipelinedCall::Send(&session, {&get, 1}, kNoDeadline).has_value());
  ASSERT_NE(session, nullptr);
  std::vector<OperationResult> results;
  EXPECT_EQ(session->BeginScan({}, scan, &results, kNoDeadline).status().code(), ErrorCode::kPermissionDenied);
  TransactionOptions declares;
  declares.declared.push_back({.table = kOthers, .key = "k"});
  EXPECT_EQ(session->Begin(declares, kNoDeadline).status().code(), ErrorCode::kPermissionDenied);
  Lsn durable_at(5);
  const Operation mine = Of(OperationKind::kGet, kMine);
  EXPECT_EQ(session->ExecuteOneShotWithoutWait(declares, {&mine, 1}, &results, kNoDeadline, &durable_at, nullptr)
                .status()
                .code(),
            ErrorCode::kPermissionDenied);
  EXPECT_EQ(durable_at, Lsn(0));
  EXPECT_THAT(inner_.calls, ElementsAre("start_prefetch")) << "that sent nothing";
}

TEST_F(RightsServiceTest, WithTheRightEachStepReachesTheSession) {
  std::unique_ptr<TransactionSession> session = Session(app_);
  const TransactionSession* const before = session.get();
  const Operation get = Of(OperationKind::kGet, kMine), scan = Of(OperationKind::kScan, kMine);
  PrefetchNotes notes(std::move(session));
  EXPECT_TRUE(notes.Note({&get, 1}));
  EXPECT_TRUE(notes.Begin({}, {&scan, 1}, 3));
  PendingPrefetch pending = std::move(notes).Start();
  EXPECT_TRUE(pending.sent());
  EndedPrefetch ended = std::move(pending).Await(kNoDeadline);
  EXPECT_TRUE(ended.all_answered);
  ASSERT_EQ(ended.begun.size(), 1u);
  EXPECT_EQ(ended.begun[0].tag, 3u);
  EXPECT_NE(ended.begun[0].transaction, nullptr);
  EXPECT_EQ(ended.session.get(), before);
  session = std::move(ended.session);
  std::optional<PipelinedCall> call = PipelinedCall::Send(&session, {&get, 1}, kNoDeadline);
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(session, nullptr);
  std::vector<OperationResult> results;
  EXPECT_TRUE(std::move(*call).Await(&results, kNoDeadline, &session).ok());
  EXPECT_EQ(session.get(), before);
  EXPECT_THAT(inner_.calls, ElementsAre("note_prefetch", "begin_for_prefetch", "start_prefetch", "await_prefetch",
                                        "send_pipelined", "await_pipelined"));
}

TEST_F(RightsServiceTest, ASessionWithoutStepsIsAskedForNone) {
  inner_.steps = false;
  std::unique_ptr<TransactionSession> session = Session(app_);
  const Operation get = Of(OperationKind::kGet, kMine), scan = Of(OperationKind::kScan, kMine);
  EXPECT_FALSE(PipelinedCall::Send(&session, {&get, 1}, kNoDeadline).has_value());
  ASSERT_NE(session, nullptr);
  PrefetchNotes notes(std::move(session));
  EXPECT_FALSE(notes.Note({&get, 1}));
  EXPECT_FALSE(notes.Begin({}, {&scan, 1}, 0));
  PendingPrefetch pending = std::move(notes).Start();
  EXPECT_FALSE(pending.sent());
  session = std::move(pending).Await(kNoDeadline).session;
  ASSERT_NE(session, nullptr);
  EXPECT_TRUE(inner_.calls.empty());
}

TEST_F(RightsServiceTest, NamesAreLookedUpOnceAndUnknownTablesEveryTime) {
  const auto session = Session(app_);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(*session, Of(OperationKind::kPut, kMine)), ErrorCode::kOk);
  EXPECT_EQ(inner_.name_look_ups, 1);
  // The name of a table that is created later has not been checked yet.
  EXPECT_EQ(Run(*session, Of(OperationKind::kPut, kNone)), ErrorCode::kNotFound);
  EXPECT_EQ(Run(*session, Of(OperationKind::kPut, kNone)), ErrorCode::kNotFound);
  EXPECT_EQ(inner_.name_look_ups, 3);
  // A peer with all rights needs no look-up of names.
  const auto report = Session(report_);
  EXPECT_EQ(Run(*report, Of(OperationKind::kGet, kOthers)), ErrorCode::kOk);
  EXPECT_EQ(inner_.name_look_ups, 3);
}

TEST_F(RightsServiceTest, ReplacedRightsHoldForOpenSessions) {
  const auto session = Session(app_);
  EXPECT_EQ(Run(*session, Of(OperationKind::kPut, kMine)), ErrorCode::kOk);
  access_.Replace(Rights("app reader\n"));
  EXPECT_EQ(Run(*session, Of(OperationKind::kPut, kMine)), ErrorCode::kPermissionDenied);
  EXPECT_EQ(Run(*session, Of(OperationKind::kGet, kOthers)), ErrorCode::kOk);
  access_.Replace(Rights("somebody client\n"));
  EXPECT_EQ(Run(*session, Of(OperationKind::kGet, kOthers)), ErrorCode::kPermissionDenied);
}

TEST_F(RightsServiceTest, TablesAreMadeListedAndDroppedWithinThePrefixes) {
  RightsService ops(inner_, access_, {"ops"}), root(inner_, access_, {"root"});
  EXPECT_TRUE(ops.CreateTable("mine.x", {}, kNoDeadline).ok());
  EXPECT_EQ(ops.CreateTable("x", {}, kNoDeadline).status().code(), ErrorCode::kPermissionDenied);
  EXPECT_EQ(ops.DropTable("others.b", kNoDeadline).code(), ErrorCode::kPermissionDenied);
  EXPECT_TRUE(root.DropTable("others.b", kNoDeadline).ok());
  EXPECT_EQ(app_.DropTable("mine.a", kNoDeadline).code(), ErrorCode::kPermissionDenied);
  EXPECT_EQ(ops.DropCaches(kNoDeadline).code(), ErrorCode::kPermissionDenied);
  EXPECT_TRUE(root.DropCaches(kNoDeadline).ok());
  EXPECT_THAT(inner_.calls, ElementsAre("create", "drop", "drop_caches"));
  EXPECT_EQ(app_.ListTables(kNoDeadline)->size(), 1u);
  EXPECT_EQ(root.ListTables(kNoDeadline)->size(), 2u);
  EXPECT_TRUE(app_.OpenTable("pub.x", kNoDeadline).ok());
  EXPECT_EQ(app_.OpenTable("others.b", kNoDeadline).status().code(), ErrorCode::kPermissionDenied);
}

}  // namespace
}  // namespace deut
