#include "tc/client/session_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "tc/client/fake_transaction_service.h"

namespace deut {
namespace {

using testing::FakeTransactionService;

std::unique_ptr<ClientSession> NewSession(FakeTransactionService& service) {
  return std::make_unique<ClientSession>(service.NewSession(kNoDeadline).value());
}

TEST(SessionPool, GivesBackWhatWasReturnedAndClosesWhatIsTooMany) {
  FakeTransactionService service(RealRuntime());
  {
    SessionPool pool(2);
    EXPECT_EQ(pool.Take(), nullptr);
    for (int i = 0; i < 3; ++i) pool.Return(NewSession(service));
    EXPECT_EQ(service.sessions_open(), 2);
    const std::unique_ptr<ClientSession> first = pool.Take();
    const std::unique_ptr<ClientSession> second = pool.Take();
    EXPECT_NE(first, nullptr);
    EXPECT_NE(second, nullptr);
    EXPECT_EQ(pool.Take(), nullptr);
    pool.Return(NewSession(service));
    EXPECT_EQ(service.sessions_open(), 3);
  }
  EXPECT_EQ(service.sessions_open(), 0);
}

TEST(SessionPool, WithoutRoomClosesAll) {
  FakeTransactionService service(RealRuntime());
  SessionPool pool(0);
  pool.Return(NewSession(service));
  EXPECT_EQ(service.sessions_open(), 0);
  EXPECT_EQ(pool.Take(), nullptr);
}

// No session ever has two owners, and none is lost: each is marked while it is held.
TEST(SessionPool, OneOwnerAtATime) {
  class CountedSession final : public TransactionSession {
   public:
    explicit CountedSession(std::atomic<int>* alive) : alive_(alive) { alive_->fetch_add(1); }
    ~CountedSession() override { alive_->fetch_sub(1); }
    Timestamp not_before() const override { return Timestamp(0); }
    Result<Timestamp> Begin(const TransactionOptions&, Deadline) override { return Timestamp(0); }
    Status Execute(absl::Span<const Operation>, std::vector<OperationResult>*, Deadline) override { return Status(); }
    Result<CommitAnswer> Commit(Deadline) override { return CommitAnswer{}; }
    Status Abort() override { return Status(); }
    Result<CommitAnswer> ExecuteOneShot(const TransactionOptions&, absl::Span<const Operation>,
                                        std::vector<OperationResult>*, Deadline) override {
      return CommitAnswer{};
    }
    std::atomic<int> holders{0};

   private:
    std::atomic<int>* const alive_;
  };

  std::atomic<int> alive{0};
  std::atomic<int> shared{0};
  {
    SessionPool pool(3);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 20'000; ++i) {
          std::unique_ptr<ClientSession> session = pool.Take();
          if (session == nullptr) session = std::make_unique<ClientSession>(std::make_unique<CountedSession>(&alive));
          auto& holders = static_cast<CountedSession&>(*session->calls).holders;
          if (holders.fetch_add(1) != 0) shared.fetch_add(1);
          holders.fetch_sub(1);
          pool.Return(std::move(session));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(alive.load(), 3);
    EXPECT_GE(alive.load(), 1);
  }
  EXPECT_EQ(shared.load(), 0);
  EXPECT_EQ(alive.load(), 0);
}

}  // namespace
}  // namespace deut
