#include "integration/bench/application_runner.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/runtime/random.h"
#include "integration/bench/record_scan.h"
#include "integration/bench/worker_threads.h"

namespace deut::bench {
namespace {

uint64_t Summed(uint64_t sum, std::string_view bytes) {
  for (const char byte : bytes) sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100'0000'01B3;
  return Mix64(sum ^ bytes.size());
}

}  // namespace

Result<ApplicationResult> ApplicationRunner::Load(const Application& application, uint32_t threads) {
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> next{0};
  std::vector<std::unique_ptr<Session>> sessions;
  for (uint32_t i = 0; i < threads; ++i) {
    DEUT_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, backend_.NewSession());
    sessions.push_back(std::move(session));
  }
  ApplicationResult result;
  const auto body = [&](size_t i) {
    while (!stop.load(std::memory_order_relaxed)) {
      const uint32_t part = next.fetch_add(1);
      if (part >= application.parts()) break;
      DEUT_RETURN_IF_ERROR(application.LoadPart(*sessions[i], part));
    }
    return Status();
  };
  DEUT_RETURN_IF_ERROR(RunThreads(runtime_, threads, Duration(0), &stop, body, &result.seconds));
  return result;
}

Result<ApplicationResult> ApplicationRunner::Run(const Application& application, const ApplicationRun& run) {
  struct User {
    std::unique_ptr<Session> session;
    std::unique_ptr<Terminal> terminal;
    uint64_t transactions = 0;
    Histogram latency_ns;
  };
  std::vector<std::unique_ptr<User>> users;
  for (uint32_t i = 0; i < run.threads; ++i) {
    auto user = std::make_unique<User>();
    DEUT_ASSIGN_OR_RETURN(user->session, backend_.NewSession());
    user->terminal = application.NewTerminal(terminals_++, Mix64(run.seed ^ Mix64(i)));
    users.push_back(std::move(user));
  }
  std::atomic<bool> stop{false};
  const auto body = [&](size_t i) {
    User& user = *users[i];
    MonotonicTime before = runtime_.Now();
    while (!stop.load(std::memory_order_relaxed)) {
      if (run.transactions != 0 && user.transactions >= run.transactions) break;
      DEUT_RETURN_IF_ERROR(user.terminal->RunNext(*user.session));
      ++user.transactions;
      const MonotonicTime now = runtime_.Now();
      user.latency_ns.Record(static_cast<uint64_t>((now - before).count()));
      before = now;
    }
    return Status();
  };
  ApplicationResult result;
  const Duration time = run.transactions == 0 ? run.time : Duration(0);
  DEUT_RETURN_IF_ERROR(RunThreads(runtime_, run.threads, time, &stop, body, &result.seconds));
  for (const auto& user : users) {
    result.transactions += user->transactions;
    result.counted += user->terminal->counted();
    result.retries += user->session->retries();
    result.latency_ns.Merge(user->latency_ns);
  }
  return result;
}

Result<uint64_t> ApplicationRunner::Check(const Application& application) {
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, backend_.NewSession());
  DEUT_RETURN_IF_ERROR(application.Check(*session));
  uint64_t sum = 0;
  DEUT_RETURN_IF_ERROR(session->RunInteractive(/*writes=*/false, [&](InteractiveTransaction& transaction) {
    sum = 0;
    // The characters behind the prefix are letters and digits, which are below '~'.
    return ForEachRecord(transaction, std::string(application.prefix()), std::string(application.prefix()) + "~",
                         [&](std::string_view key, std::string_view value) {
                           sum = Summed(Summed(sum, key), value);
                           return Status();
                         });
  }));
  return sum;
}

}  // namespace deut::bench
