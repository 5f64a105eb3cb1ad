// Sessions: one transaction at a time, which errors leave it open and which end it, one-shot transactions, the end of
// the TC. (Idle sessions: session_reaper_test.cc.)
#include "tc/server/session.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/runtime/random.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "protocol/prefetch.h"
#include "tc/record_manager/engine_fixture.h"
#include "tc/server/restarts.h"
#include "tc/server/session_fixture.h"
#include "tc/server/session_registry.h"
#include "tc/server/still_runtime.h"

namespace deut::tc {
namespace {

TEST_F(SessionTest, OneTransactionAtATime) {
  std::unique_ptr<Session> session = NewSession();
  EXPECT_EQ(StatusText(session->Commit(Soon()).status()), "WRONG_STATE");
  EXPECT_EQ(StatusText(session->Abort()), "WRONG_STATE");
  EXPECT_EQ(Execute(*session, {Get("a")}), "WRONG_STATE | WRONG_STATE");
  ASSERT_TRUE(session->Begin(TransactionOptions{}, Soon()).ok());
  EXPECT_EQ(StatusText(session->Begin(TransactionOptions{}, Soon()).status()), "WRONG_STATE");
  EXPECT_EQ(Execute(*session, {Put("a", "1"), Get("a"), Get("b"), Put("b", "2"), Get("b")}), "ok 1 ok ok 2 ");
  EXPECT_TRUE(session->Commit(Soon()).ok());
  EXPECT_EQ(OneShot(*session, {Get("a"), Get("b")}), "1 2 | ok");
  ASSERT_TRUE(session->Begin(TransactionOptions{}, Soon()).ok());
  EXPECT_EQ(Execute(*session, {Put("a", "3")}), "ok ");
  EXPECT_TRUE(session->Abort().ok());
  EXPECT_EQ(OneShot(*session, {Get("a")}), "1 | ok");
}

// Transactions of a session use one another's memory.
TEST_F(SessionTest, NothingOfATransactionIsLeftToTheNext) {
  std::unique_ptr<Session> session = NewSession();
  TransactionOptions declaring;
  declaring.declared = {{kTable, "d"}};
  ASSERT_TRUE(session->Begin(declaring, Soon()).ok());
  EXPECT_EQ(Execute(*session, {Put("a", "1"), Put("b", "1")}), "ok ok ");
  Result<CommitAnswer> committed = session->Commit(Soon());
  ASSERT_TRUE(committed.ok());
  EXPECT_NE(committed->commit_lsn, Lsn{0});
  // A transaction that only reads has no place in the log, and its reads are its own.
  ASSERT_TRUE(session->Begin(TransactionOptions{}, Soon()).ok());
  EXPECT_EQ(Execute(*session, {Get("a"), Get("d")}), "1 ok ");
  committed = session->Commit(Soon());
  ASSERT_TRUE(committed.ok());
  EXPECT_EQ(committed->commit_lsn, Lsn{0});
  // A snapshot cannot write, and the transaction after it can.
  TransactionOptions snapshot;
  snapshot.isolation = Isolation::kSnapshot;
  ASSERT_TRUE(session->Begin(snapshot, Soon()).ok());
  EXPECT_EQ(Execute(*session, {Put("c", "1")}), "WRONG_STATE ");
  EXPECT_TRUE(session->Abort().ok());
  ASSERT_TRUE(session->Begin(TransactionOptions{}, Soon()).ok());
  EXPECT_EQ(Execute(*session, {Put("d", "2")}), "ok ");
  EXPECT_TRUE(session->Abort().ok());
  EXPECT_EQ(OneShot(*session, {Get("a"), Get("c"), Get("d")}), "1 ok ok | ok");
  EXPECT_EQ(f_.active->open_transactions(), 0u);
}

TEST_F(SessionTest, OnlySomeErrorsEndTheTransaction) {
  std::unique_ptr<Session> session = NewSession(), other = NewSession();
  EXPECT_EQ(OneShot(*session, {Put("a", "1")}), "ok | ok");
  ASSERT_TRUE(session->Begin(TransactionOptions{}, Soon()).ok());
  EXPECT_EQ(Execute(*session, {Insert("a", "2"), Put("", "x"), Get("a")}), "ALREADY_EXISTS INVALID_ARGUMENT 1 ");
  ASSERT_TRUE(other->Begin(TransactionOptions{}, Soon()).ok());
  EXPECT_EQ(Execute(*other, {Put("c", "1")}), "ok ");
  EXPECT_EQ(Execute(*session, {Put("b", "2"), Put("c", "2"), Get("a")}),
            "ok write-uncommitted WRONG_STATE | write-uncommitted");
  EXPECT_EQ(StatusText(session->Commit(Soon()).status()), "WRONG_STATE");
  EXPECT_TRUE(other->Commit(Soon()).ok());
  EXPECT_EQ(OneShot(*session, {Get("b"), Get("c")}), "ok 1 | ok") << "an ended transaction has written nothing";
}

TEST_F(SessionTest, OneShotsWriteAllOrNothing) {
  std::unique_ptr<Session> session = NewSession();
  EXPECT_EQ(OneShot(*session, {Insert("a", "1"), Insert("b", "1")}), "ok ok | ok");
  EXPECT_EQ(OneShot(*session, {Put("c", "2"), Insert("a", "2"), Put("d", "2")}),
            "ok ALREADY_EXISTS ok | ALREADY_EXISTS");
  EXPECT_EQ(OneShot(*session, {Get("c"), Get("d"), Get("a")}), "ok ok 1 | ok");
  EXPECT_EQ(f_.active->open_transactions(), 0u);
}

// D1: a failed precondition's result tells the place in the serial order at which it did not hold.
TEST_F(SessionTest, ARefusedPreconditionTellsItsTimestamp) {
  std::unique_ptr<Session> session = NewSession();
  const auto run = [&](const std::vector<Operation>& operations, std::vector<OperationResult>* results) {
    return session->ExecuteOneShot(TransactionOptions{}, operations, results, Soon());
  };
  std::vector<OperationResult> results;
  const Result<CommitAnswer> before = run({Insert("a", "1")}, &results);
  ASSERT_TRUE(before.ok());
  EXPECT_EQ(FailedPreconditionAt(results), Timestamp(0));
  // A transaction that has written something, which is undone, and one that has only read.
  Timestamp last = before->timestamp;
  const Operation update = {.kind = OperationKind::kUpdate, .table = kTable, .key = "absent", .value = "1"};
  for (const std::vector<Operation>& operations :
       {std::vector<Operation>{Put("b", "1"), Insert("a", "2"), Get("a")}, std::vector<Operation>{Get("a"), update}}) {
    EXPECT_FALSE(run(operations, &results).ok());
    EXPECT_EQ(results[0].failed_precondition_at, Timestamp(0));
    EXPECT_GT(results[1].failed_precondition_at, last);
    last = results[1].failed_precondition_at;
  }
  const Result<CommitAnswer> after = run({Get("a"), Get("b")}, &results);
  ASSERT_TRUE(after.ok());
  EXPECT_GT(after->timestamp, last);
  EXPECT_EQ(FailedPreconditionAt(results), Timestamp(0));
  // A transaction that has ended in another way tells no timestamp.
  serving_ = Status(ErrorCode::kUnavailable, "not now");
  EXPECT_FALSE(run({Put("b", "1"), Insert("a", "2")}, &results).ok());
  EXPECT_EQ(FailedPreconditionAt(results), Timestamp(0));
}

// ExecuteOneShotWithoutWait says which LSN to wait for, and does not wait, even with a disk that completes nothing.
class SlowDiskSessionTest : public ::testing::Test {
 protected:
  SlowDiskSessionTest() : registry_(RealRuntime(), seconds(60)) {}
  ~SlowDiskSessionTest() override { registry_.Stop(); }
  Result<CommitAnswer> Ahead(const std::vector<Operation>& operations, Lsn* durable_at) {
    std::vector<OperationResult> results;
    *durable_at = Lsn(7);
    return session_->ExecuteOneShotWithoutWait(TransactionOptions{}, operations, &results, EngineFixture::Soon(),
                                               durable_at, nullptr);
  }

  EngineFixture f_{{.faulty_disk = true}};
  SessionRegistry registry_;
  std::unique_ptr<Session> session_ =
      std::make_unique<Session>(*f_.manager, RealRuntime(), [] { return Status(); }, registry_);
};

TEST_F(SlowDiskSessionTest, OneShotsAheadSayWhatTheyDependOn) {
  Lsn durable_at;
  // Nothing was written, and nothing read that another transaction wrote.
  ASSERT_TRUE(Ahead({Get("a")}, &durable_at).ok());
  EXPECT_EQ(durable_at, Lsn(0));
  f_.disk->HoldCompletions(true);
  const Result<CommitAnswer> put = Ahead({Put("a", "1")}, &durable_at);
  ASSERT_TRUE(put.ok());
  EXPECT_EQ(durable_at, put->commit_lsn);
  // A read of its write depends on it, and so does a precondition that has failed because of it.
  const Result<CommitAnswer> read = Ahead({Get("a")}, &durable_at);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->commit_lsn, Lsn(0));
  EXPECT_EQ(durable_at, put->commit_lsn);
  EXPECT_EQ(StatusText(Ahead({Put("b", "1"), Insert("a", "2")}, &durable_at).status()), "ALREADY_EXISTS");
  EXPECT_EQ(durable_at, put->commit_lsn);
  TransactionOptions buffered;
  buffered.durability = Durability::kBuffered;
  std::vector<OperationResult> results;
  ASSERT_TRUE(session_
                  ->ExecuteOneShotWithoutWait(buffered, {{Put("c", "1")}}, &results, EngineFixture::Soon(), &durable_at,
                                              nullptr)
                  .ok());
  EXPECT_EQ(durable_at, Lsn(0));
  f_.disk->HoldCompletions(false);
  ASSERT_TRUE(f_.log->WaitDurable(put->commit_lsn, EngineFixture::Soon()).ok());
  ASSERT_TRUE(Ahead({Get("a")}, &durable_at).ok());
  EXPECT_EQ(durable_at, Lsn(0));
}

// A conflict is not reported while the transaction may be run again. The next attempt wins if the other one is
// decided by then.
TEST_F(SessionTest, OneShotsThatLoseAConflictAreRunAgain) {
  StillRuntime clock;
  const auto session = std::make_unique<Session>(*f_.manager, clock, [this] { return serving_; }, registry_);
  const std::unique_ptr<Session> other = NewSession();
  EXPECT_EQ(OneShot(*session, {Put("a", "1")}), "ok | ok");
  ASSERT_TRUE(other->Begin(TransactionOptions{}, Soon()).ok());
  EXPECT_EQ(Execute(*other, {Put("a", "2")}), "ok ");
  // The other one stays undecided: after a few attempts the client is told.
  EXPECT_EQ(OneShot(*session, {Put("b", "3"), Get("a")}), "ok read-uncommitted | read-uncommitted");
  EXPECT_EQ(f_.engine->counters.one_shots_rerun.load(), static_cast<uint64_t>(Restarts::kMaxRestarts));
  EXPECT_EQ(f_.active->open_transactions(), 1u);
#ifdef DEUT_TEST_POINTS
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "session.restart") return;
    testing::SetPointHandler({});
    EXPECT_TRUE(other->Commit(Soon()).ok());
  });
  EXPECT_EQ(OneShot(*session, {Put("b", "3"), Get("a")}), "ok 2 | ok");
  testing::SetPointHandler({});
  EXPECT_EQ(f_.engine->counters.one_shots_rerun.load(), static_cast<uint64_t>(Restarts::kMaxRestarts) + 1);
#endif
}

// A transaction that is one scan. The call that begins it commits it if the first batch has all of it; otherwise it
// stays open.
TEST_F(SessionTest, AScanThatFitsIsOneCall) {
  StillRuntime clock;
  const auto session = std::make_unique<Session>(*f_.manager, clock, [this] { return serving_; }, registry_);
  const std::unique_ptr<Session> other = NewSession();
  EXPECT_EQ(OneShot(*session, {Put("a", "1"), Put("b", "2"), Put("c", "3")}), "ok ok ok | ok");
  std::vector<OperationResult> results;
  Operation scan{.kind = OperationKind::kScan, .table = kTable, .low = "a", .high = "d"};
  const auto begin = [&](Session& by) { return by.BeginScan(TransactionOptions{}, scan, &results, Soon()); };
  Result<ScanBegun> begun = begin(*session);
  ASSERT_TRUE(begun.ok());
  EXPECT_TRUE(begun->over);
  EXPECT_TRUE(results[0].complete);
  EXPECT_EQ(results[0].records.size(), 3u);
  EXPECT_EQ(f_.active->open_transactions(), 0u);
  scan.limit_records = 2;
  begun = begin(*session);
  ASSERT_TRUE(begun.ok());
  EXPECT_TRUE(begun->over) << "as many as were asked for";
  EXPECT_FALSE(results[0].complete);
  EXPECT_EQ(f_.active->open_transactions(), 0u);
  scan.limit_records = 0;
  scan.limit_bytes = 30;
  begun = begin(*session);
  ASSERT_TRUE(begun.ok());
  EXPECT_FALSE(begun->over);
  EXPECT_EQ(f_.active->open_transactions(), 1u);
  EXPECT_EQ(StatusText(begin(*session).status()), "WRONG_STATE") << "one at a time";
  ASSERT_TRUE(other->Begin(TransactionOptions{}, Soon()).ok());
  EXPECT_EQ(Execute(*session, {Get("a")}), "1 ");
  EXPECT_TRUE(session->Commit(Soon()).ok());
  // The scan has read all of the range that it came to, so an earlier writer there would lose. The scan loses to a
  // writer that stays undecided.
  EXPECT_EQ(Execute(*other, {Put("b", "4")}), "ok ");
  scan.limit_bytes = 1 << 20;
  EXPECT_EQ(StatusText(begin(*session).status()), "range-writer");
  EXPECT_EQ(f_.engine->counters.one_shots_rerun.load(), static_cast<uint64_t>(Restarts::kMaxRestarts));
  EXPECT_EQ(f_.active->open_transactions(), 1u);
  EXPECT_TRUE(other->Commit(Soon()).ok());
  EXPECT_TRUE(begin(*session)->over);
  scan.table = TableId{77};
  EXPECT_EQ(StatusText(begin(*session).status()), "NOT_FOUND");
  serving_ = DEUT_ERROR(kUnavailable, "not now");
  EXPECT_EQ(StatusText(begin(*session).status()), "UNAVAILABLE");
  EXPECT_EQ(f_.active->open_transactions(), 0u);
}

// A scan that declares the keys that it will write, and stays open; and one that is evicted while it is open.
TEST_F(SessionTest, AScanThatBeginsATransactionThatWrites) {
  std::unique_ptr<Session> session = NewSession();
  EXPECT_EQ(OneShot(*session, {Put("a", "1"), Put("b", "2"), Put("c", "3")}), "ok ok ok | ok");
  const Operation scan{.kind = OperationKind::kScan, .table = kTable, .low = "a", .high = "c", .limit_bytes = 30};
  std::vector<OperationResult> results;
  TransactionOptions declaring;
  declaring.declared = {{.table = kTable, .key = "x"}};
  for (int i = 0; i < 2; ++i) {
    Result<ScanBegun> begun = session->BeginScan(declaring, scan, &results, Soon());
    ASSERT_TRUE(begun.ok()) << begun.status().ToString();
    EXPECT_FALSE(begun->over);
    EXPECT_EQ(Execute(*session, {Put("x", "1"), Get("x")}), "ok 1 ");
    EXPECT_TRUE(session->Commit(Soon()).ok());
    EXPECT_EQ(f_.active->open_transactions(), 0u);
  }
  Result<ScanBegun> begun = session->BeginScan(TransactionOptions{}, scan, &results, Soon());
  ASSERT_TRUE(begun.ok());
  session->Evict(begun->answer.timestamp);
  EXPECT_EQ(f_.active->open_transactions(), 0u);
  EXPECT_FALSE(session->Commit(Soon()).ok());
  EXPECT_TRUE(session->BeginScan(TransactionOptions{}, scan, &results, Soon()).ok());
}

TEST_F(SessionTest, AScanAloneIsReadByItsSuccessors) {
  std::unique_ptr<Session> session = NewSession(), early = NewSession();
  EXPECT_EQ(OneShot(*session, {Put("a", "1")}), "ok | ok");
  ASSERT_TRUE(early->Begin(TransactionOptions{}, Soon()).ok());
  const Operation scan{.kind = OperationKind::kScan, .table = kTable, .low = "a", .high = "d"};
  std::vector<OperationResult> results;
  ASSERT_TRUE(session->BeginScan(TransactionOptions{}, scan, &results, Soon())->over);
  EXPECT_EQ(Execute(*early, {Put("b", "1")}), "range-read-later | range-read-later") << "R2: it was a later reader";
}

TEST_F(SessionTest, ASessionThatGoesAwayAborts) {
  {
    std::unique_ptr<Session> session = NewSession();
    ASSERT_TRUE(session->Begin(TransactionOptions{}, Soon()).ok());
    EXPECT_EQ(Execute(*session, {Put("a", "1")}), "ok ");
    EXPECT_EQ(registry_.size(), 1u);
  }
  EXPECT_EQ(registry_.size(), 0u);
  EXPECT_EQ(f_.active->open_transactions(), 0u);
  EXPECT_EQ(f_.Contents(), "");
}

TEST_F(SessionTest, ATcThatDoesNotServeAborts) {
  std::unique_ptr<Session> session = NewSession(), committing = NewSession();
  ASSERT_TRUE(session->Begin(TransactionOptions{}, Soon()).ok());
  ASSERT_TRUE(committing->Begin(TransactionOptions{}, Soon()).ok());
  EXPECT_EQ(Execute(*committing, {Put("a", "1")}), "ok ");
  serving_ = DEUT_ERROR(kUnavailable, "not now");
  EXPECT_EQ(Execute(*session, {Get("a")}), "WRONG_STATE | UNAVAILABLE");
  EXPECT_EQ(StatusText(committing->Commit(Soon()).status()), "UNAVAILABLE");
  EXPECT_EQ(StatusText(session->Begin(TransactionOptions{}, Soon()).status()), "UNAVAILABLE");
  EXPECT_EQ(f_.active->open_transactions(), 0u);
}

TEST_F(SessionTest, AbortAllEndsWhatIsOpen) {
  std::unique_ptr<Session> one = NewSession(), idle = NewSession();
  ASSERT_TRUE(one->Begin(TransactionOptions{}, Soon()).ok());
  EXPECT_EQ(Execute(*one, {Put("a", "1")}), "ok ");
  registry_.AbortAll(AbortReason::kShutdown);
  EXPECT_EQ(f_.active->open_transactions(), 0u);
  EXPECT_EQ(StatusText(one->Commit(Soon()).status()), "WRONG_STATE");
}

// A resumable scan that is not used gives up its stream of the DC, though not in the middle of a call, and goes on
// nevertheless.
TEST_F(SessionTest, ScansThatAreNotUsedRest) {
  std::vector<std::pair<std::string, std::string>> load;
  for (int i = 100; i < 200; ++i) load.push_back({std::to_string(i), "v"});
  f_.Load(load);
  std::unique_ptr<Session> session = NewSession();
  ASSERT_TRUE(session->Begin(TransactionOptions{}, Soon()).ok());
  Operation scan{.kind = OperationKind::kScan, .table = kTable, .limit_bytes = 200};
  std::string low;
  size_t records = 0;
  for (int batch = 0;; ++batch) {
    bool in_use = false;
    testing::SetPointHandler([&](std::string_view name) {
      if (name != "scan.after_dc" || in_use) return;
      in_use = true;
      session->EndIdleStreams(RealRuntime().Now() + seconds(100));
    });
    std::vector<OperationResult> results;
    ASSERT_TRUE(session->Execute(absl::MakeConstSpan(&scan, 1), &results, Soon()).ok());
    testing::SetPointHandler(nullptr);
    records += results[0].records.size();
    if (results[0].complete) break;
    scan.scan_sequence = results[0].scan_sequence;
    low = results[0].resume;
    scan.low = low;
    if (batch % 3 != 1) continue;
    EXPECT_EQ(f_.dc->open_scans(), 1u);
    session->EndIdleStreams(RealRuntime().Now() - seconds(100));
    EXPECT_EQ(f_.dc->open_scans(), 1u);
    session->EndIdleStreams(RealRuntime().Now() + seconds(100));
    EXPECT_EQ(f_.dc->open_scans(), 0u);
  }
  EXPECT_EQ(records, load.size());
  EXPECT_GE(f_.dc->scans_opened(), 2u);
  EXPECT_TRUE(session->Commit(Soon()).ok());
}

// A clock that the test can move forward; the rest is real.
class LaterRuntime final : public Runtime {
 public:
  MonotonicTime Now() override { return RealRuntime().Now() + Duration(later_.load()); }
  int64_t WallMicros() override { return RealRuntime().WallMicros(); }
  uint64_t RandomSeed() override { return RealRuntime().RandomSeed(); }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    return RealRuntime().StartThread(std::move(name), std::move(body));
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    return RealRuntime().Wait(word, expected, deadline);
  }
  void Wake(const std::atomic<uint32_t>& word, int waiters) override { RealRuntime().Wake(word, waiters); }
  void Yield() override { RealRuntime().Yield(); }

  void Advance(Duration by) { later_.fetch_add(by.count()); }

 private:
  std::atomic<int64_t> later_{0};
};

// The registry never gets into a session whose transaction is always in use. So the session itself gives up the
// streams of its scans.
TEST_F(SessionTest, ASessionInUseRestsItsOwnScans) {
  std::vector<std::pair<std::string, std::string>> load;
  for (int i = 100; i < 200; ++i) load.push_back({std::to_string(i), "v"});
  f_.Load(load);
  LaterRuntime clock;
  Session session(*f_.manager, clock, [this] { return serving_; }, registry_);
  ASSERT_TRUE(session.Begin(TransactionOptions{}, Soon()).ok());
  Operation scan{.kind = OperationKind::kScan, .table = kTable, .limit_bytes = 200};
  std::string low;
  size_t records = 0;
  for (int batch = 0;; ++batch) {
    std::vector<OperationResult> results;
    ASSERT_TRUE(session.Execute(absl::MakeConstSpan(&scan, 1), &results, Soon()).ok());
    records += results[0].records.size();
    if (results[0].complete) break;
    scan.scan_sequence = results[0].scan_sequence;
    low = results[0].resume;
    scan.low = low;
    if (batch != 2) continue;
    EXPECT_EQ(Execute(session, {Get("100")}), "v ");
    EXPECT_EQ(f_.dc->open_scans(), 1u) << "used a moment ago";
    clock.Advance(Session::kStreamIdleTimeout + seconds(1));
    EXPECT_EQ(Execute(session, {Get("100")}), "v ");
    EXPECT_EQ(f_.dc->open_scans(), 0u);
    EXPECT_EQ(f_.engine->scan_streams.used(), 0u);
    clock.Advance(-Session::kStreamIdleTimeout - seconds(1));
  }
  EXPECT_EQ(records, load.size());
  EXPECT_EQ(f_.dc->scans_opened(), 2u);
  EXPECT_TRUE(session.Commit(Soon()).ok());
}

// R8: a batch that is asked for ahead of need meets an earlier writer. It is a conflict only if the reader gets
// there.
TEST_F(SessionTest, ABatchAskedForAheadEndsNothing) {
  f_.Load({{"a", "1"}, {"b", "1"}, {"c", "1"}});
  for (const bool comes_there : {false, true}) {
    std::unique_ptr<Session> writer = NewSession(), reader = NewSession();
    ASSERT_TRUE(writer->Begin(TransactionOptions{}, Soon()).ok());
    EXPECT_EQ(Execute(*writer, {Put("c", "2")}), "ok ");
    ASSERT_TRUE(reader->Begin(TransactionOptions{}, Soon()).ok());
    EXPECT_EQ(Execute(*reader, {Put("x", "own")}), "ok ");
    Operation scan{.kind = OperationKind::kScan, .table = kTable, .high = "d", .limit_records = 2};
    std::vector<OperationResult> results;
    ASSERT_TRUE(reader->Execute(absl::MakeConstSpan(&scan, 1), &results, Soon()).ok());
    ASSERT_EQ(results[0].records.size(), 2u);
    const std::string low = results[0].resume;
    scan.scan_sequence = results[0].scan_sequence;
    scan.low = low;
    scan.prefetch = true;
    ASSERT_TRUE(reader->Execute(absl::MakeConstSpan(&scan, 1), &results, Soon()).ok());
    EXPECT_EQ(StatusText(results[0].status), "range-writer");
    EXPECT_EQ(Execute(*reader, {Get("x")}), "own ");
    if (comes_there) {
      scan.prefetch = false;
      EXPECT_EQ(StatusText(reader->Execute(absl::MakeConstSpan(&scan, 1), &results, Soon())), "range-writer");
      EXPECT_EQ(StatusText(reader->Commit(Soon()).status()), "WRONG_STATE");
    } else {
      EXPECT_TRUE(reader->Commit(Soon()).ok());
    }
    EXPECT_TRUE(writer->Abort().ok());
  }
}

// An error that reports damage is reported, even for a batch that is asked for ahead of need.
TEST_F(SessionTest, ABatchAskedForAheadThatFindsDamageEndsIt) {
  f_.Load({{"a", "1"}, {"b", "1"}, {"c", "1"}});
  std::unique_ptr<Session> reader = NewSession();
  ASSERT_TRUE(reader->Begin(TransactionOptions{}, Soon()).ok());
  const Operation scan{
      .kind = OperationKind::kScan, .table = kTable, .high = "d", .limit_records = 2, .prefetch = true};
  std::vector<OperationResult> results;
  for (const ErrorCode code : {ErrorCode::kUnavailable, ErrorCode::kCorruption}) {
    f_.dc->set_error(Status(code, "so it is"));
    const Status status = reader->Execute(absl::MakeConstSpan(&scan, 1), &results, Soon());
    f_.dc->set_error(Status::Ok());
    EXPECT_EQ(status.code(), code == ErrorCode::kCorruption ? code : ErrorCode::kOk);
  }
  EXPECT_EQ(StatusText(reader->Commit(Soon()).status()), "WRONG_STATE");
}

// As for a message without point reads, such as one of snapshots.
TEST_F(SessionTest, NothingIsReadAheadThatNobodyWanted) {
  std::unique_ptr<TransactionSession> session = NewSession();
  const Operation put = Put("a", "1");
  for (const bool notes_put : {false, true, false}) {
    PrefetchNotes notes(std::move(session));
    if (notes_put) EXPECT_FALSE(notes.Note({&put, 1}));
    PendingPrefetch pending = std::move(notes).Start();
    EXPECT_FALSE(pending.sent());
    session = std::move(pending).Await(Soon()).session;
    ASSERT_NE(session, nullptr);
  }
}

class BegunSessionTest : public SessionTest {
 protected:
  BegunSessionTest() { f_.Load({{"a", "1"}, {"b", "1"}}); }
  // Begins one scan of all keys, which has its first batch.
  std::unique_ptr<BegunOneShot> Begin(std::unique_ptr<Session>* session) {
    PrefetchNotes notes(std::move(*session));
    EXPECT_EQ(notes.Begin(TransactionOptions{}, {&scan_, 1}, 0), serving_.ok());
    EndedPrefetch ended = std::move(notes).Start().Await(Soon());
    session->reset(static_cast<Session*>(ended.session.release()));
    return ended.begun.empty() ? nullptr : std::move(ended.begun.front().transaction);
  }
  std::string Run(Session& session, std::unique_ptr<BegunOneShot> begun) {
    std::vector<OperationResult> results;
    Lsn durable_at;
    const Result<CommitAnswer> answer = session.ExecuteOneShotWithoutWait(TransactionOptions{}, {&scan_, 1}, &results,
                                                                          Soon(), &durable_at, std::move(begun));
    if (!answer.ok()) return StatusText(answer.status());
    std::string text;
    for (RecordBatch::Iterator it(results.at(0).records); it.Valid(); it.Next()) text += it.record().value;
    return text;
  }

  const Operation scan_{.kind = OperationKind::kScan, .table = kTable};
};

TEST_F(BegunSessionTest, AnySessionGoesOnWithWhatWasBegun) {
  std::unique_ptr<Session> one = NewSession(), other = NewSession();
  std::unique_ptr<BegunOneShot> begun = Begin(&one);
  ASSERT_NE(begun, nullptr);
  const uint64_t asked = f_.dc->requests();
  EXPECT_EQ(OneShot(*one, {Put("a", "2")}), "ok | ok");  // a later write
  EXPECT_EQ(Run(*other, std::move(begun)), "11");
  EXPECT_EQ(f_.dc->requests(), asked);
  EXPECT_EQ(Run(*other, nullptr), "21");
  EXPECT_EQ(f_.active->open_transactions(), 0u);
}

// The first attempt is the transaction that was begun. The next has a timestamp of its own.
TEST_F(BegunSessionTest, ABegunTransactionThatLosesAConflictIsRunAgain) {
  std::unique_ptr<Session> session = NewSession(), writer = NewSession();
  ASSERT_TRUE(writer->Begin(TransactionOptions{}, Soon()).ok());
  EXPECT_EQ(Execute(*writer, {Put("b", "2")}), "ok ");
  std::unique_ptr<BegunOneShot> begun = Begin(&session);
  ASSERT_NE(begun, nullptr);
  AtPoint again("session.restart", [&] { EXPECT_TRUE(writer->Commit(Soon()).ok()); });
  EXPECT_EQ(Run(*session, std::move(begun)), "12");
  EXPECT_TRUE(again.reached());
  EXPECT_EQ(f_.engine->counters.one_shots_rerun.load(), 1u);
}

TEST_F(BegunSessionTest, ABegunTransactionThatIsNotRunEnds) {
  std::unique_ptr<Session> session = NewSession();
  std::unique_ptr<BegunOneShot> begun = Begin(&session);
  ASSERT_NE(begun, nullptr);
  ASSERT_TRUE(session->Begin(TransactionOptions{}, Soon()).ok());
  EXPECT_EQ(Run(*session, std::move(begun)), "WRONG_STATE");
  EXPECT_TRUE(session->Abort().ok());
  EXPECT_EQ(f_.active->open_transactions(), 0u);
  begun = Begin(&session);
  ASSERT_NE(begun, nullptr);
  serving_ = Status(ErrorCode::kUnavailable, "it stops");
  EXPECT_EQ(Begin(&session), nullptr);
  EXPECT_EQ(Run(*session, std::move(begun)), "UNAVAILABLE");
  EXPECT_EQ(f_.active->open_transactions(), 0u);
}

// As when the thread of a stream ends while the DC is asked. The DC may have answered or not.
TEST_F(BegunSessionTest, APrefetchThatIsGivenUpKeepsNothing) {
  for (const bool answered : {true, false}) {
    f_.dc->LoseAsked(!answered);
    {
      PrefetchNotes notes(NewSession());
      ASSERT_TRUE(notes.Begin(TransactionOptions{}, {&scan_, 1}, 0));
      const PendingPrefetch pending = std::move(notes).Start();
      EXPECT_TRUE(pending.sent());
      EXPECT_EQ(f_.active->open_transactions(), 1u);
      EXPECT_EQ(f_.engine->prefetched_scans.used(), 1u);
    }
    EXPECT_EQ(f_.active->open_transactions(), 0u);
    EXPECT_EQ(f_.engine->prefetched_scans.used(), 0u);
    EXPECT_EQ(f_.engine->scan_ahead.used(), 0u);
  }
}

}  // namespace
}  // namespace deut::tc
