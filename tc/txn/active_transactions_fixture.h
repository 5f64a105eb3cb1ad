// ActiveTransactionsFixture: the active transactions of an empty store, for tests that run the steps of one thread between those of another, at
// test points.
// Thread-safety: one thread; `active_` itself may be used by any thread.
#ifndef TC_TXN_ACTIVE_TRANSACTIONS_FIXTURE_H_
#define TC_TXN_ACTIVE_TRANSACTIONS_FIXTURE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/txn/active_transactions.h"

namespace deut::tc {

inline Deadline Soon() { return RealRuntime().Now() + seconds(20); }
inline Deadline At(Duration duration) { return RealRuntime().Now() + duration; }

class ActiveTransactionsFixture : public ::testing::Test {
 protected:
  ActiveTransactionsFixture() { Reset(); }
  ~ActiveTransactionsFixture() override { testing::SetPointHandler(nullptr); }

  void Reset(uint32_t max_transactions = 64) {
    ActiveTransactions::Options options;
    options.max_transactions = max_transactions;
    options.first_timestamp = Timestamp{100};
    options.pass_readers_after = pass_readers_after_;
    options.log_tail = [this] { return Lsn{tail_.load()}; };
    active_ = std::make_unique<ActiveTransactions>(options, RealRuntime());
  }

  ActiveTransactions::Begun Begin() {
    Result<ActiveTransactions::Begun> begun = active_->Begin(Soon());
    EXPECT_TRUE(begun.ok()) << begun.status().ToString();
    return *begun;
  }
  ActiveTransactions::Begun Snapshot(Timestamp minimum = Timestamp{0}) {
    Result<ActiveTransactions::Begun> begun = active_->BeginSnapshot(minimum, Soon());
    EXPECT_TRUE(begun.ok()) << begun.status().ToString();
    return *begun;
  }
  // Begins and ends a transaction, so that the counter rises.
  void Pass() { active_->End(Begin().slot); }

  // Runs `action` once, when a thread passes the point for the `pass`-th time.
  void At(const char* point, const std::function<void()>& action, int pass = 1) {
    auto left = std::make_shared<int>(pass);
    testing::SetPointHandler([point, action, left](std::string_view name) {
      if (name == point && --*left == 0) action();
    });
  }

  // Snapshots pass a transaction that has only read for this long. With the default they pass none. Takes effect at the next Reset.
  Duration pass_readers_after_ = seconds(1000);
  std::atomic<uint64_t> tail_{1000};
  std::unique_ptr<ActiveTransactions> active_;
};

}  // namespace deut::tc

#endif  // TC_TXN_ACTIVE_TRANSACTIONS_FIXTURE_H_
