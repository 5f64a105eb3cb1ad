// TC starts and fencing. Tests named after a rule fail when that rule's step is left out.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"
#include "tc/dc_link/dc_link.h"
#include "tc/dc_link/fake_data_component.h"
#include "tc/dc_link/link_fixture.h"
#include "tc/dc_link/link_harness.h"
#include "tc/log_format/block_format.h"

namespace deut::tc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DcLinkRestartTest : public LinkTest {};

TEST_F(DcLinkRestartTest, X4ATcStartsWhileItsDcIsDown) {
  h_.StartTc();
  const Status waiting = h_.link->WaitCaughtUp(LinkHarness::After(milliseconds(30)));
  EXPECT_EQ(waiting.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(waiting.ToString(), HasSubstr("dc-under-test is not connected"));
  EXPECT_THAT(h_.link->status().state, HasSubstr("dc-under-test"));
  EXPECT_FALSE(h_.link->status().caught_up);
  h_.dc.Start();
  EXPECT_TRUE(h_.WaitCaughtUp().ok());
  EXPECT_TRUE(h_.link->status().caught_up);
}

// The TC's chains are lost with its process. So the DC may answer a read only when it holds everything that the log
// does.
TEST_F(DcLinkRestartTest, X4NothingIsReadBeforeTheRecoveredLogIsApplied) {
  Begin();
  h_.CommitAndApply({{"a", "old"}});
  h_.dc.HoldApply(true);
  const Position end = h_.Commit({{"a", "new"}});
  ASSERT_TRUE(h_.log->WaitDurable(end.commit, LinkHarness::Soon()).ok());
  h_.StopTc();
  // The batch is lost in flight, so that the DC, alive, lags behind the log.
  h_.dc.BreakStream(DEUT_ERROR(kUnavailable, "a cable"));
  h_.StartTc();
  EXPECT_EQ(h_.link->WaitCaughtUp(LinkHarness::After(milliseconds(60))).code(), ErrorCode::kUnavailable);
  const auto early = h_.Read("a", LinkHarness::After(milliseconds(20)));
  EXPECT_FALSE(early.ok()) << Text(early);
  h_.dc.HoldApply(false);
  ASSERT_TRUE(h_.WaitCaughtUp().ok());
  EXPECT_GE(h_.link->applied(), end);
  EXPECT_EQ(Text(h_.Read("a")), "new");
  EXPECT_EQ(h_.link->status().connections.incarnations, 1u);
}

TEST_F(DcLinkRestartTest, X4ALivingDcGetsOnlyWhatItLacks) {
  Begin();
  for (int i = 0; i < 50; ++i) h_.CommitAndApply({{absl::StrCat("k", i), "v"}});
  h_.StopTc();
  const size_t before = h_.dc.seen().size();
  h_.StartTc();
  ASSERT_TRUE(h_.WaitCaughtUp().ok());
  h_.CommitAndApply({{"k50", "v"}});
  size_t updates = 0;
  for (size_t i = before; i < h_.dc.seen().size(); ++i) updates += h_.dc.seen()[i].kind == LogEntryKind::kPut ? 1 : 0;
  EXPECT_EQ(updates, 1u);
}

TEST_F(DcLinkRestartTest, X4BothDie) {
  Begin();
  Position last;
  for (int i = 0; i < 300; ++i) last = h_.Commit({{absl::StrCat("k", i % 40), absl::StrCat(i)}});
  ASSERT_TRUE(h_.log->WaitDurable(last.commit, LinkHarness::Soon()).ok());
  h_.dc.Kill();
  h_.CrashTc();
  h_.dc.Start();
  h_.StartTc();
  ASSERT_TRUE(h_.WaitCaughtUp().ok());
  for (int k = 0; k < 40; ++k) EXPECT_EQ(Text(h_.Read(absl::StrCat("k", k))), absl::StrCat(k < 20 ? 280 + k : 240 + k));
}

TEST_F(DcLinkRestartTest, X4TheDcIsKnownToTheLogBeforeItIsUsed) {
  Begin();
  EXPECT_TRUE(h_.recovered.known_dcs.empty());
  h_.CrashTc();  // drops everything that is not durable
  h_.StartTc();
  EXPECT_THAT(h_.recovered.known_dcs, ElementsAre(DcId{3}));
  EXPECT_TRUE(h_.WaitCaughtUp().ok());
}

TEST_F(DcLinkRestartTest, X4AnUnknownDcIsRefused) {
  Begin();
  h_.CommitAndApply({{"a", "1"}});
  h_.StopTc();
  FakeDataComponent stranger(RealRuntime(), DcId{4});
  stranger.Start();
  {
    auto storage = h_.disk.Mount();
    auto log = RedoLog::Open(h_.log_options, RealRuntime(), *storage, &h_.recovered);
    ASSERT_TRUE(log.ok());
    h_.transactions.set_log(log->get());
    DcLink link(RealRuntime(), stranger, **log, h_.recovered, h_.transactions, h_.transactions, h_.link_options);
    link.Start();
    EXPECT_EQ(link.WaitCaughtUp(LinkHarness::Soon()).code(), ErrorCode::kWrongState);
    EXPECT_THAT(link.status().state, HasSubstr("not a DC of the redo log"));
  }
  EXPECT_EQ(stranger.last_hello().expected_dc, DcId{3}) << "a real one would have refused before it changed anything";
  EXPECT_EQ(stranger.counts().streams, 0u) << "it was sent nothing";
}

TEST_F(DcLinkRestartTest, X4ADcAheadOfTheLogIsRefused) {
  Begin();
  h_.CommitAndApply({{"a", "1"}});
  h_.StopTc();
  h_.dc.set_extra_applied(Position{Lsn{uint64_t{1} << 40}, 0});
  h_.StartTc();
  ExpectRefused(ErrorCode::kCorruption, "the log has lost its end");
}

TEST_F(DcLinkRestartTest, X4ANewLogRefusesADcWithData) {
  Begin();
  h_.CommitAndApply({{"a", "1"}});
  h_.dc.MakeStable();
  h_.StopTc();
  h_.dc.Kill();
  h_.log_options.directory = "another-log";
  h_.StartTc();  // its first TC epoch is used up, so that the DC does not fence it
  h_.StopTc();
  h_.dc.Start();
  h_.StartTc();
  ExpectRefused(ErrorCode::kWrongState, "knows no DC yet");
}

// --- X5.

TEST_F(DcLinkRestartTest, X5AFencedTcSendsNothingMore) {
  Begin();
  h_.CommitAndApply({{"a", "1"}});
  HelloRequest usurper;
  usurper.tc = h_.log->tc();
  usurper.epoch = TcEpoch{h_.log->epoch().value + 1};
  usurper.nonce = 5;
  ASSERT_TRUE(h_.dc.Hello(usurper, kNoDeadline).ok());  // closes this TC's stream
  h_.Commit({{"a", "2"}});
  const uint64_t hellos = h_.link->status().connections.hellos;
  ASSERT_TRUE(Eventually([&] { return !h_.fatal().empty() || h_.link->status().connections.hellos > hellos + 3; }));
  ASSERT_EQ(h_.fatal().size(), 1u) << "it goes on trying";
  EXPECT_EQ(h_.fatal()[0].code(), ErrorCode::kFenced);
  const uint64_t calls = h_.dc.counts().calls();
  h_.Commit({{"a", "3"}});
  EXPECT_EQ(h_.Read("a", LinkHarness::After(milliseconds(50))).status().code(), ErrorCode::kFenced);
  EXPECT_EQ(h_.link->Tables(LinkHarness::After(milliseconds(50))).status().code(), ErrorCode::kFenced);
  EXPECT_EQ(h_.link->OpenScan(ScanSpec{}, LinkHarness::After(milliseconds(50))).status().code(), ErrorCode::kFenced);
  EXPECT_FALSE(h_.dc.WaitUntil([&] { return h_.dc.counts().calls() != calls; }, milliseconds(60)));
  EXPECT_EQ(h_.dc.Get(LinkHarness::kTable, "a"), "1");
}

TEST_F(DcLinkRestartTest, X5AReadThatIsFencedStopsTheLink) {
  Begin();
  h_.CommitAndApply({{"a", "1"}});
  h_.dc.HoldReads(true);
  Status status;
  auto reader = RealRuntime().StartThread("reader", [&] { status = h_.Read("a").status(); });
  ASSERT_TRUE(Eventually([&] { return h_.dc.counts().reads >= 1; }));
  HelloRequest usurper{kProtocolVersion, h_.log->tc(), TcEpoch{h_.log->epoch().value + 1}, 5};
  ASSERT_TRUE(h_.dc.Hello(usurper, kNoDeadline).ok());
  h_.dc.HoldReads(false);
  reader.reset();
  EXPECT_EQ(status.code(), ErrorCode::kFenced);
  EXPECT_TRUE(h_.WaitFatal());
}

// A start that is refused leaves the log as it was, byte by byte, so that the next one is refused as well. If an
// epoch were logged before the DC is asked, each refused start would let the log grow. At last it would be longer
// than what the DC has applied, and nothing would seem wrong.
class RefusedStartTest : public DcLinkRestartTest {
 protected:
  using Files = std::map<std::string, std::string>;

  RefusedStartTest() { h_.look_first = true; }

  void CommitSome(int count) {
    for (int i = 0; i < count; ++i) h_.CommitAndApply({{absl::StrCat("k", i), "v"}});
  }

  Files Folder() {
    const std::unique_ptr<Storage> storage = h_.disk.Mount();
    Files files;
    const Result<std::vector<std::string>> names = storage->List("log");
    EXPECT_TRUE(names.ok());
    for (const std::string& name : *names) {
      const auto file = storage->Open("log/" + name, {});
      std::string bytes(*(*file)->Size(), '\0');
      EXPECT_EQ(*(*file)->Read(0, bytes.data(), bytes.size()), bytes.size());
      files[name] = bytes;
    }
    return files;
  }

  void PutBack(const Files& files) {
    const Files now = Folder();
    const std::unique_ptr<Storage> storage = h_.disk.Mount();
    for (const auto& [name, bytes] : now) {
      if (name.starts_with("log-")) ASSERT_TRUE(storage->Remove("log/" + name).ok());
    }
    for (const auto& [name, bytes] : files) {
      if (!name.starts_with("log-")) continue;
      const auto file = storage->Open("log/" + name, {.create = true, .writable = true});
      ASSERT_TRUE(file.ok() && (*file)->Write(0, bytes.data(), bytes.size()).ok() && (*file)->Sync().ok());
    }
    ASSERT_TRUE(storage->SyncDirectory("log").ok());
  }

  // Starts many times. Each start is refused alike, and changes nothing.
  void ExpectRefusedForEver(const std::string& text) {
    const Files before = Folder();
    for (int start = 0; start < 20; ++start) {
      SCOPED_TRACE(start);
      h_.StartTc();
      const Status refused = h_.WaitCaughtUp();
      EXPECT_EQ(refused.code(), ErrorCode::kCorruption) << refused.ToString();
      EXPECT_THAT(refused.ToString(), HasSubstr(text));
      h_.StopTc();
      ASSERT_TRUE(Folder() == before) << "the refused start has changed the log";
    }
  }
};

TEST_F(RefusedStartTest, X4AnOlderCopyOfTheLogIsRefusedForEver) {
  Begin();
  CommitSome(5);
  h_.StopTc();
  const Files copy = Folder();
  h_.StartTc();
  ASSERT_TRUE(h_.WaitCaughtUp().ok());
  CommitSome(25);
  h_.StopTc();
  PutBack(copy);
  ExpectRefusedForEver("the log has lost its end");
}

TEST_F(RefusedStartTest, X4ALogThatHasLostItsLastBlocksIsRefusedForEver) {
  Begin();
  CommitSome(20);
  // Later commits are not below the DC's position, so that the lost end begins with commits that the DC has.
  const Position from = h_.Commit({{"last", "1"}});
  ASSERT_TRUE(h_.WaitApplied(from));
  CommitSome(2);
  h_.StopTc();
  Files files = Folder();
  uint64_t zeroed = 0;
  for (auto& [name, bytes] : files) {
    uint64_t number = 0;
    if (!ParseSegmentName(name, &number)) continue;
    for (uint64_t at = kSegmentHeaderBytes; at + kBlockAlignment <= bytes.size();) {
      BlockHeader header;
      if (!ReadBlockHeader(bytes.data() + at, number, at, bytes.size() - at, &header).ok()) break;
      if (header.end_lsn() > from.commit) {
        std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(at), header.block_bytes, '\0');
        ++zeroed;
      }
      at += header.block_bytes;
    }
  }
  ASSERT_GE(zeroed, 3u);
  PutBack(files);
  ExpectRefusedForEver("the log has lost its end");
}

// An older copy of the log that has served with another data component or an earlier program. It is longer than what
// the DC has applied, and has the same TC epochs. Only their nonces differ.
TEST_F(RefusedStartTest, X4AnOlderCopyThatHasGrownAgainIsRefusedForEver) {
  Begin();
  CommitSome(5);
  h_.StopTc();
  const Files copy = Folder();
  h_.StartTc();
  ASSERT_TRUE(h_.WaitCaughtUp().ok());
  CommitSome(5);
  h_.StopTc();
  PutBack(copy);
  {
    h_.storage = h_.disk.Mount();
    const auto log = RedoLog::Open(h_.log_options, RealRuntime(), *h_.storage, &h_.recovered);
    ASSERT_TRUE(log.ok()) << log.status().ToString();
    const std::string value(10'000, 'x');
    const Update update{LogEntryKind::kPut, 1, LinkHarness::kTable, "other", value};
    // The second commit begins behind what the DC has applied.
    (*log)->AppendCommit(h_.recovered.first_timestamp, {&update, 1});
    const AppendResult last = (*log)->AppendCommit(Timestamp{h_.recovered.first_timestamp.value + 1}, {&update, 1});
    ASSERT_TRUE((*log)->WaitDurable(last.lsn, LinkHarness::Soon()).ok());
  }
  h_.storage.reset();
  ExpectRefusedForEver("has no such start");
}

// A copy of a log is started while the original goes on. The original ships one more commit after the copy's TC has
// asked the DC and before it says Hello. A DC that does not compare obeys the copy's TC then. The copy has grown
// beyond the position of that commit, and has the TC epoch and nonce that the DC obeys.
TEST_F(RefusedStartTest, X4ABatchShippedBetweenTheInquiryAndTheHelloIsRefusedForEver) {
  Begin();
  CommitSome(5);
  h_.StopTc();
  h_.dc.AcceptAnyHello(true);
  h_.before_begin = [&] { h_.dc.set_extra_applied(Position{h_.recovered.end_lsn, UINT32_MAX}); };
  h_.StartTc();
  const Status refused = h_.WaitCaughtUp();
  EXPECT_EQ(refused.code(), ErrorCode::kCorruption) << refused.ToString();
  h_.StopTc();
  h_.before_begin = nullptr;
  ExpectRefusedForEver("the log has lost its end");
}

// As above, with a DC that compares. It does not obey the copy's TC, and still says whose data it holds.
TEST_F(RefusedStartTest, X4AHelloThatWasDecidedOnSomethingElseLeavesTheDcAsItWas) {
  Begin();
  CommitSome(5);
  const ObeyedTc original = h_.dc.obeyed();
  h_.StopTc();
  h_.before_begin = [&] { h_.dc.set_extra_applied(Position{h_.recovered.end_lsn, UINT32_MAX}); };
  h_.StartTc();
  EXPECT_EQ(h_.WaitCaughtUp().code(), ErrorCode::kCorruption);
  h_.StopTc();
  h_.before_begin = nullptr;
  EXPECT_EQ(h_.dc.obeyed(), original);
  ExpectRefusedForEver("the log has lost its end");
  EXPECT_EQ(h_.dc.obeyed(), original);
}

// S2: the DC has fallen behind the position for which the log was trimmed.
TEST_F(RefusedStartTest, S2ADcThatHasLostWhatWasStableIsRefusedForEver) {
  h_.link_options.redo_start_bytes = 1024;
  Begin();
  for (int i = 0; i < 20; ++i) h_.CommitAndApply({{absl::StrCat("k", i), std::string(400, 'v')}});
  h_.dc.MakeStable();
  ASSERT_TRUE(Eventually([&] { return !h_.log->redo_start().stable.empty(); }));
  h_.StopTc();
  h_.dc.LoseStable(Position{});
  h_.dc.Restart();
  const ObeyedTc obeyed = h_.dc.obeyed();
  ExpectRefusedForEver("had reported");
  EXPECT_EQ(h_.dc.obeyed(), obeyed);
}

// A copy of both folders was started elsewhere and has gone on by itself. Its DC's folder is put under the original,
// which has been restarted since and has the higher epoch.
class ForkTest : public RefusedStartTest {
 protected:
  void BeginThirdLife() {
    Begin();
    CommitSome(5);
    for (int start = 0; start < 2; ++start) {
      h_.StopTc();
      h_.StartTc();
      ASSERT_TRUE(h_.WaitCaughtUp().ok());
    }
    CommitSome(3);
    h_.dc.MakeStable();
    fork_ = ObeyedTc{h_.log->tc(), TcEpoch{h_.log->epoch().value - 1}, 77};
    ASSERT_NE(fork_.nonce, h_.log->nonce());
  }
  void PutForkUnderIt(Position applied) {
    h_.dc.BecomeFork(fork_, applied);
    h_.dc.Start();
  }
  // The DC is not told to obey another TC: its statement, on which the refusal is based, stays as it was.
  void ExpectRefusedNowAndForEver() {
    ExpectRefused(ErrorCode::kCorruption, "has no such start");
    EXPECT_EQ(h_.dc.obeyed(), fork_);
    h_.StopTc();
    ExpectRefusedForEver("has no such start");
    EXPECT_EQ(h_.dc.obeyed(), fork_);
  }

  ObeyedTc fork_;
};

// Its positions are all plausible: not beyond the last batch that this TC has sent, and not below the stable
// position.
TEST_F(ForkTest, X4UnderALivingTcItIsRefusedForEver) {
  BeginThirdLife();
  const Position applied = h_.dc.applied();
  h_.dc.Kill();
  PutForkUnderIt(applied);
  ExpectRefusedNowAndForEver();
}

// It is ahead of what this TC has sent, but not of what it has committed meanwhile, with which the next start would
// compare.
TEST_F(ForkTest, X4ThatIsAheadOfWhatWasSentIsRefusedForEver) {
  BeginThirdLife();
  h_.dc.Kill();
  Position last;
  for (int i = 0; i < 20; ++i) last = h_.Commit({{absl::StrCat("away", i), "v"}});
  ASSERT_TRUE(h_.log->WaitDurable(last.commit, LinkHarness::Soon()).ok());
  const Position sent = h_.link->status().positions.ever_sent;
  ASSERT_LT(sent.commit.value + 8, last.commit.value);
  PutForkUnderIt(Position{Lsn{sent.commit.value + 8}, UINT32_MAX});
  ASSERT_TRUE(h_.WaitFatal());
  EXPECT_EQ(h_.fatal().front().code(), ErrorCode::kCorruption);
  EXPECT_EQ(h_.dc.obeyed(), fork_);
  h_.StopTc();
  ExpectRefusedForEver("has no such start");
  EXPECT_EQ(h_.dc.obeyed(), fork_);
}

// The folders are exchanged between the inquiry and the Hello, while the TC keeps running.
TEST_F(ForkTest, X4ThatComesBetweenInquiryAndHelloIsRefusedForEver) {
  BeginThirdLife();
  const Position applied = h_.dc.applied();
  bool exchanged = false;
  h_.dc.Kill();
  h_.dc.OnInquiry([&] {
    if (std::exchange(exchanged, true)) return;
    h_.dc.Kill();
    PutForkUnderIt(applied);
  });
  h_.dc.Start();
  ASSERT_TRUE(Eventually([&] { return h_.dc.obeyed() == fork_; }));
  ExpectRefusedNowAndForEver();
}

// The log was copied while an older transaction was open. That transaction holds back all commits after the copy
// (S1), so that the DC gets none of them. By its position the copy is valid.
TEST_F(RefusedStartTest, X4AnOlderCopyOfTheLogIsRefusedThoughTheDcHasNothingOfWhatItLacks) {
  h_.link_options.tell_durable_period = milliseconds(2);
  Begin();
  CommitSome(5);
  h_.transactions.HoldBackAt(h_.transactions.Draw().value);
  const auto commit_held_back = [&](int count) {
    Position last;
    for (int i = 0; i < count; ++i) last = h_.Commit({{absl::StrCat("held", i), "v"}});
    ASSERT_TRUE(h_.log->WaitDurable(last.commit, LinkHarness::Soon()).ok());
  };
  commit_held_back(3);
  const Files copy = Folder();
  commit_held_back(25);
  const Lsn durable = h_.log->durable();
  ASSERT_TRUE(Eventually([&] { return h_.dc.log_durable() >= durable; }));
  const Position applied = h_.dc.applied();
  h_.CrashTc();
  EXPECT_EQ(h_.dc.applied(), applied);
  h_.transactions.Release();
  const Files whole = Folder();
  PutBack(copy);
  ExpectRefusedForEver(absl::StrCat("durable up to LSN ", h_.dc.log_durable().value));
  // With the whole log the start succeeds.
  PutBack(whole);
  h_.StartTc();
  ASSERT_TRUE(h_.WaitCaughtUp().ok());
  EXPECT_EQ(Text(h_.Read("held24")), "v");
}

TEST_F(RefusedStartTest, X4AStrangersLogIsRefusedForEver) {
  Begin();
  CommitSome(3);
  h_.StopTc();
  FakeDataComponent stranger(RealRuntime(), DcId{4});
  stranger.Start();
  const Files before = Folder();
  for (int start = 0; start < 12; ++start) {
    const std::unique_ptr<Storage> storage = h_.disk.Mount();
    const auto log = RedoLog::Recover(h_.log_options, RealRuntime(), *storage, &h_.recovered);
    ASSERT_TRUE(log.ok());
    DcLinkOptions options = h_.link_options;
    options.begin_log = [&] { return (*log)->Begin(); };
    DcLink link(RealRuntime(), stranger, **log, h_.recovered, h_.transactions, h_.transactions, options);
    link.Start();
    EXPECT_EQ(link.WaitCaughtUp(LinkHarness::Soon()).code(), ErrorCode::kWrongState);
    link.Stop();
    (*log)->Stop();
  }
  EXPECT_TRUE(Folder() == before);
  EXPECT_EQ(stranger.counts().hellos, 0u) << "it was asked, and not told to obey";
}

}  // namespace
}  // namespace deut::tc
