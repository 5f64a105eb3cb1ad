// Measures the limits of this machine, independent of the project: memory, thread switches, messages. Targets that
// were set on another machine are compared with these. README.md of integration/bench.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"
#include "integration/ycsb/json.h"
#include "protocol/connections/endpoint.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.grpc.pb.h"

namespace deut {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kArray = size_t{512} << 20;

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double ProcessorSeconds(int who) {
  rusage used{};
  getrusage(who, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void Print(const char* what, const char* unit, double value) {
  ycsb::JsonObject line;
  line.Text("what", what).Text("unit", unit).Number("value", value);
  std::printf("%s\n", line.Str().c_str());
  std::fflush(stdout);
}

// One cycle in random order through all lines of an array that no cache holds, so that no prefetcher can predict the
// next line.
class Lines {
 public:
  Lines() : memory_(kArray / sizeof(uint64_t)) {
    constexpr size_t kCount = kArray / kLine;
    std::vector<uint32_t> next(kCount);
    std::iota(next.begin(), next.end(), 0u);
    Random random(1);
    for (size_t i = kCount - 1; i > 0; --i) std::swap(next[i], next[random.Below(i)]);
    for (size_t i = 0; i < kCount; ++i) memory_[i * kWords] = next[i] * kWords;
  }

  // Returns nanoseconds a line, with kChains chains followed in parallel.
  template <size_t kChains>
  double Follow() const {
    constexpr size_t kSteps = 4'000'000 / kChains;
    Random random(2);
    std::array<uint64_t, kChains> at;
    for (uint64_t& place : at) place = random.Below(kArray / kLine) * kWords;
    const double begin = Now();
    for (size_t step = 0; step < kSteps; ++step) {
      for (uint64_t& place : at) place = memory_[place];
    }
    const double seconds = Now() - begin;
    DEUT_CHECK(std::accumulate(at.begin(), at.end(), uint64_t{0}) !=
               1);  // uses the results, so that the loop is not optimised away
    return seconds * 1e9 / static_cast<double>(kSteps * kChains);
  }

 private:
  static constexpr size_t kWords = kLine / sizeof(uint64_t);
  std::vector<uint64_t> memory_;
};

double CopyGigabytes() {
  constexpr size_t kBytes = size_t{256} << 20;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const double begin = Now();
    std::memcpy(to.data(), from.data(), kBytes);
    best = std::max(best, static_cast<double>(kBytes) / (Now() - begin) / 1e9);
    DEUT_CHECK(to[kBytes / 2] == 1);
    to[kBytes / 2] = 2;
  }
  return best;
}

// Returns microseconds from a wake until the woken thread wakes the other one: two threads that wake each other.
double WakeMicros() {
  constexpr uint32_t kTurns = 50'000;
  Runtime& runtime = RealRuntime();
  std::atomic<uint32_t> turn{0};
  const auto play = [&](uint32_t mine) {
    for (uint32_t i = mine; i < 2 * kTurns; i += 2) {
      for (uint32_t now = turn.load(); now != i; now = turn.load()) runtime.Wait(turn, now, kNoDeadline);
      turn.store(i + 1);
      runtime.WakeAll(turn);
    }
  };
  const double begin = Now();
  const auto other = runtime.StartThread("other", [&] { play(1); });
  play(0);
  other->Join();
  return (Now() - begin) * 1e6 / (2 * kTurns);
}

// Returns microseconds of a round trip of 64 bytes between two processes, one at a time.
double SocketMicros() {
  constexpr int kTurns = 20'000;
  int ends[2];
  DEUT_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  char bytes[64] = {};
  const pid_t child = fork();
  DEUT_CHECK(child >= 0);
  if (child == 0) {
    close(ends[0]);
    while (read(ends[1], bytes, sizeof bytes) == sizeof bytes && write(ends[1], bytes, sizeof bytes) == sizeof bytes) {
    }
    _exit(0);
  }
  close(ends[1]);
  const double begin = Now();
  for (int i = 0; i < kTurns; ++i) {
    DEUT_CHECK(write(ends[0], bytes, sizeof bytes) == sizeof bytes);
    DEUT_CHECK(read(ends[0], bytes, sizeof bytes) == sizeof bytes);
  }
  const double micros = (Now() - begin) * 1e6 / kTurns;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return micros;
}

// Answers each message with an empty one.
class Echo final : public wire::TransactionService::Service {
 public:
  grpc::Status OneShots(grpc::ServerContext*,
                        grpc::ServerReaderWriter<wire::OneShotAnswers, wire::OneShotCalls>* stream) override {
    wire::OneShotCalls message;
    wire::OneShotAnswers answer;
    answer.add_answers()->set_id(1);
    while (stream->Read(&message) && stream->Write(answer)) {
    }
    return grpc::Status::OK;
  }
};

// Measures gRPC alone: small messages on a stream between two processes over a Unix socket, and their answers.
class Messages {
 public:
  Messages() : address_(*Address::Parse("--listen", Concat("unix:", directory_.path(), "/socket"))) {
    int ready[2], end[2];
    DEUT_CHECK(pipe(ready) == 0 && pipe(end) == 0);
    child_ = fork();
    DEUT_CHECK(child_ >= 0);
    if (child_ == 0) {
      close(end[1]);
      Echo echo;
      RpcServerOptions options;
      options.listen = address_;
      const auto server = RpcServer::Start(RealRuntime(), options, {&echo});
      char byte = 0;
      if (!server.ok() || write(ready[1], &byte, 1) != 1) _exit(1);
      (void)!read(end[0], &byte, 1);
      _exit(0);
    }
    close(end[0]);
    close(ready[1]);
    end_ = end[1];
    char byte = 0;
    if (read(ready[0], &byte, 1) != 1) FailStop("the server of the measurement did not start");
    close(ready[0]);
  }
  ~Messages() {
    close(end_);
    waitpid(child_, nullptr, 0);
  }

  struct Rates {
    double per_second = 0;
    double processor_us = 0;  // processor time of the client, a message and its answer
  };
  Rates Measure(int under_way) {
    constexpr int kMessages = 30'000;
    auto peer = RpcPeer::Create("the echo", "--listen", address_, nullptr, false);
    DEUT_CHECK(peer.ok());
    const auto channel = (*peer)->NewChannel(RpcTraffic::kShort);
    const auto stub = wire::TransactionService::NewStub(channel);
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    const auto stream = stub->OneShots(&context);
    wire::OneShotCalls message;
    message.add_calls()->set_id(1);
    wire::OneShotAnswers answer;
    DEUT_CHECK(stream->Write(message) && stream->Read(&answer));
    const double begin = Now(), processor = ProcessorSeconds(RUSAGE_SELF);
    const auto writer = RealRuntime().StartThread("writer", [&] {
      for (int i = 0; i < kMessages; ++i) {
        for (int read = read_.load(); i - read >= under_way; read = read_.load())
          RealRuntime().Wait(reads_, static_cast<uint32_t>(read), kNoDeadline);
        DEUT_CHECK(stream->Write(message));
      }
      stream->WritesDone();
    });
    for (int i = 0; i < kMessages; ++i) {
      DEUT_CHECK(stream->Read(&answer));
      read_.fetch_add(1);
      reads_.store(static_cast<uint32_t>(i + 1));
      RealRuntime().WakeAll(reads_);
    }
    writer->Join();
    const double seconds = Now() - begin;
    const Rates rates{.per_second = kMessages / seconds,
                      .processor_us = (ProcessorSeconds(RUSAGE_SELF) - processor) * 1e6 / kMessages};
    DEUT_CHECK(stream->Finish().ok());
    read_.store(0);
    reads_.store(0);
    return rates;
  }

 private:
  const testing::TempDir directory_;
  const Address address_;
  pid_t child_ = 0;
  int end_ = -1;
  std::atomic<int> read_{0};
  std::atomic<uint32_t> reads_{0};  // the same number, as a word to wait on
};

void Run() {
  // Forks before this process has threads.
  Messages messages;
  Print("a message of 64 bytes there and back between two processes, Unix socket", "us", SocketMicros());
  Print("from a wake until the woken thread runs", "us", WakeMicros());
  for (const int under_way : {1, 16}) {
    const Messages::Rates rates = messages.Measure(under_way);
    Print(Concat("gRPC stream between two processes, Unix socket, ", under_way, " under way").c_str(), "messages/s",
          rates.per_second);
    Print(Concat("client's processor a message and its answer, ", under_way, " under way").c_str(), "us",
          rates.processor_us);
  }
  const Lines lines;
  Print("random line of memory, one chain", "ns", lines.Follow<1>());
  Print("random line of memory, 16 chains", "ns", lines.Follow<16>());
  Print("copying, one thread", "GB a second", CopyGigabytes());
}

}  // namespace
}  // namespace deut

int main() {
  deut::Run();
  return 0;
}
