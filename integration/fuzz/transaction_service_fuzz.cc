// A hostile client of a transaction component. An input is a sequence of calls and messages to the gRPC service over
// a whole store (TC and DC in this process), in any order, on several sessions at once. The messages are right,
// wrong, or any bytes that parse. No input may crash the process or block a call beyond its time. Afterwards a
// well-behaved client must be served.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/blocking_hook.h"
#include "common/runtime/runtime.h"
#include "grpcpp/client_context.h"
#include "integration/fuzz/input.h"
#include "integration/product/embedded/embedded.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/transactions/grpc_transaction_service_server.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.grpc.pb.h"
#include "tc/client/client.h"
#include "tc/client/retry.h"
#include "tc/server/one_shot_workers.h"

namespace deut::fuzz {
namespace {

// A new store is made after this many inputs, because a store keeps its log for ever.
constexpr int kInputsPerStore = 500;
// No call may take this many seconds; one that does counts as hanging.
constexpr int kHangs = 20;
constexpr size_t kSessions = 3;
constexpr int kMaxSteps = 60;

class Target {
 public:
  Target() : storage_(NewMemoryStorage(RealRuntime())) {
    EmbeddedOptions options;
    options.data_dir = "/store";
    options.tc.log.segment_bytes = 8 << 20;
    options.tc.log.ring_bytes = 8 << 20;
    options.tc.log.max_record_bytes = 2 << 20;  // one update of the largest key and value fits
    options.tc.log.block_bytes = 64 << 10;
    options.tc.log.chunk_bytes = 32 << 10;
    options.tc.log.space_reserve_bytes = 64 << 10;
    options.tc.memory.log2_record_buckets = 8;
    options.tc.max_transactions = 16;
    options.tc.ranges.records_per_range = 4;
    options.tc.ranges.period = milliseconds(10);
    auto store = Embedded::Open(options, runtime_, *storage_);
    DEUT_CHECK(store.ok());
    store_ = *std::move(store);
    for (const char* name : {"one", "two"}) DEUT_CHECK(store_->client().CreateTable(name).ok());
    health_ = store_->client().CreateTable("health").value();
    service_ = std::make_unique<GrpcTransactionServiceServer>(RealRuntime(), store_->service(), tc::NewOneShotWorkers);
    server_ = RpcServer::Start(RealRuntime(), RpcServerOptions(), {service_->service()}).value();
    const auto peer = RpcPeer::Create("the server", "--server", server_->address(), nullptr, /*insecure=*/false);
    stub_ = wire::TransactionService::NewStub(peer.value()->NewChannel(RpcTraffic::kShort));
  }

  wire::TransactionService::Stub& stub() { return *stub_; }

  // Checks that a well-behaved client can write and read.
  void CheckServed() {
    const std::string value = std::to_string(++served_);
    RetryOptions retry;
    retry.timeout = seconds(kHangs);
    retry.transaction.durability = Durability::kBuffered;
    const Status done = RunTransaction(store_->client(), retry, [&](Transaction& t) -> Status {
      DEUT_RETURN_IF_ERROR(t.Put(health_, "key", value));
      DEUT_ASSIGN_OR_RETURN(const std::optional<std::string> read, t.Get(health_, "key"));
      DEUT_CHECK(read == value);
      return Status::Ok();
    });
    if (!done.ok()) std::fprintf(stderr, "a client is not served: %s\n", done.ToString().c_str());
    DEUT_CHECK(done.ok());
  }

 private:
  BlockingHookRuntime runtime_{RealRuntime()};
  const std::unique_ptr<Storage> storage_;
  std::unique_ptr<Embedded> store_;
  TableId health_;
  std::unique_ptr<GrpcTransactionServiceServer> service_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<wire::TransactionService::Stub> stub_;
  uint64_t served_ = 0;
};

void SetTime(grpc::ClientContext* context) {
  context->set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(kHangs, GPR_TIMESPAN)));
}

// The differences between the two kinds of streams.
struct SessionKind {
  using Requests = wire::SessionRequests;
  using Answers = wire::SessionAnswers;
  static auto Open(wire::TransactionService::Stub& stub, grpc::ClientContext* context) { return stub.Session(context); }
  static int Calls(const Requests& requests) { return requests.requests_size(); }
  static const wire::SessionAnswer* Answer(const wire::SessionAnswer* answer) { return answer; }
};
struct OneShotsKind {
  using Requests = wire::OneShotCalls;
  using Answers = wire::OneShotAnswers;
  static auto Open(wire::TransactionService::Stub& stub, grpc::ClientContext* context) {
    return stub.OneShots(context);
  }
  static int Calls(const Requests& requests) { return requests.calls_size(); }
  static const wire::SessionAnswer* Answer(const wire::OneShotAnswer* answer) { return &answer->answer(); }
};

// A stream of a client that obeys gRPC but no rule above it. A thread of its own reads, because a client that does
// not read would block a server in this process.
template <typename Kind>
class Conversation {
 public:
  using Requests = typename Kind::Requests;

  explicit Conversation(wire::TransactionService::Stub& stub) {
    SetTime(&context_);
    stream_ = Kind::Open(stub, &context_);
    reader_ = RealRuntime().StartThread("reader", [this] { Read(); });
  }
  ~Conversation() {
    stream_->WritesDone();
    reader_.reset();
    const grpc::Status end = stream_->Finish();
    DEUT_CHECK(end.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED);
  }

  void Send(const Requests& requests) {
    if (stream_->Write(requests)) sent_ += static_cast<uint32_t>(Kind::Calls(requests));
  }
  // Waits until everything is answered, or the stream has ended.
  void Settle() {
    for (;;) {
      const uint32_t received = received_.load();
      if (received == kEnded || received >= sent_) return;
      RealRuntime().Wait(received_, received, kNoDeadline);
    }
  }
  void Cancel() { context_.TryCancel(); }
  uint64_t last_timestamp() const { return last_timestamp_.load(); }

 private:
  static constexpr uint32_t kEnded = UINT32_MAX;

  void Read() {
    typename Kind::Answers answers;
    while (stream_->Read(&answers)) {
      uint32_t whole = 0;
      for (const auto& any : answers.answers()) {
        const wire::SessionAnswer& answer = *Kind::Answer(&any);
        if (answer.timestamp() != 0) last_timestamp_.store(answer.timestamp());
        whole += answer.more() ? 0 : 1;
      }
      received_.fetch_add(whole);
      RealRuntime().WakeAll(received_);
    }
    received_.store(kEnded);
    RealRuntime().WakeAll(received_);
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<Requests, typename Kind::Answers>> stream_;
  std::atomic<uint32_t> received_{0};
  std::atomic<uint64_t> last_timestamp_{0};
  uint32_t sent_ = 0;
  std::unique_ptr<Thread> reader_;
};
using Session = Conversation<SessionKind>;
using OneShots = Conversation<OneShotsKind>;

uint32_t AnyTable(Input& input) {
  const uint32_t known = input.Below(8);
  return known < 7 ? 1 + known % 3 : static_cast<uint32_t>(input.Number());
}

void SetBegin(Input& input, uint64_t last_timestamp, wire::Begin* begin) {
  const uint8_t flags = input.Byte();
  begin->set_isolation(static_cast<wire::Isolation>((flags & 7) == 7 ? input.Byte() : flags & 1));
  begin->set_durability(static_cast<wire::Durability>((flags & 56) == 56 ? input.Byte() : 1));
  if ((flags & 192) == 128) {
    begin->set_id(input.OneIn(8) ? input.Text(20) : std::string(15, 'i') + static_cast<char>(input.Byte()));
    begin->set_not_before(input.OneIn(4) ? input.Number() : last_timestamp);
  }
  if ((flags & 192) == 192) begin->set_min_timestamp(input.OneIn(2) ? last_timestamp : input.Number());
  for (uint32_t i = input.OneIn(4) ? input.Below(4) : 0; i > 0; --i) {
    wire::DeclaredKey* key = begin->add_declared();
    key->set_table(AnyTable(input));
    key->set_key(input.Key());
  }
}

void AddOperation(Input& input, wire::Operation* operation) {
  const uint32_t kind = input.Below(32);
  const uint32_t rare = kind < 30 ? 0 : input.Byte();
  operation->set_kind(static_cast<wire::OperationKind>(kind < 30 ? 1 + kind % 6 : kind == 30 ? 7 + rare % 7 : rare));
  operation->set_table(AnyTable(input));
  if (operation->kind() != wire::SCAN || input.OneIn(16)) {
    operation->set_key(input.Key());
    operation->set_value(input.OneIn(32) ? std::string((1 << 20) + input.Below(2), 'v') : input.Text(20));
  }
  if (operation->kind() > wire::SCAN) {
    if (input.OneIn(2)) operation->set_value(std::string("numbers!"));
    if (input.OneIn(2)) operation->set_expected(input.Text(10));
    operation->set_expect_absent(input.OneIn(4));
    operation->set_stamp(static_cast<wire::Stamp>(input.Below(4)));
    operation->set_stamp_offset(input.OneIn(4) ? static_cast<uint32_t>(input.Number()) : 0);
  }
  if (operation->kind() == wire::SCAN || operation->kind() == wire::REMOVE_RANGE || input.OneIn(16)) {
    if (input.OneIn(2)) operation->set_low(input.Key());
    if (input.OneIn(2)) operation->set_high(input.Key());
    operation->set_direction(static_cast<wire::Direction>(input.Below(3)));
    operation->set_limit_records(static_cast<uint32_t>(input.Number()));
    operation->set_limit_bytes(input.OneIn(8) ? static_cast<uint32_t>(input.Number()) : 100);
    operation->set_for_update(input.OneIn(2));
    operation->set_scan_sequence(input.OneIn(4) ? static_cast<uint32_t>(input.Number()) : 0);
  }
}

// Adds some operations, sometimes a thousand copies of the first one.
template <typename Message>
void AddOperations(Input& input, Message* message) {
  for (uint32_t i = input.Below(6); i > 0; --i) AddOperation(input, message->add_operations());
  if (!input.OneIn(64) || message->operations_size() == 0 || message->operations(0).value().size() > 100) return;
  for (uint32_t i = 1000 + input.Below(40); i > 0; --i) *message->add_operations() = message->operations(0);
}

void AddRequest(Input& input, uint64_t last_timestamp, wire::SessionRequest* request) {
  request->set_timeout_us(1 + input.Byte() * 100);
  switch (input.Below(12)) {
    case 0:
      request->mutable_open()->set_protocol_version(input.OneIn(8) ? input.Byte() : kProtocolVersion);
      break;
    case 1:
    case 2:
      SetBegin(input, last_timestamp, request->mutable_begin());
      break;
    case 3:
    case 4:
    case 5:
      AddOperations(input, request->mutable_execute());
      break;
    case 6:
    case 7:
      request->mutable_commit();
      break;
    case 8:
      request->mutable_abort();
      break;
    case 9:
    case 10:
      SetBegin(input, last_timestamp, request->mutable_one_shot()->mutable_begin());
      AddOperations(input, request->mutable_one_shot());
      break;
    default:
      break;  // the request stays empty
  }
}

void Send(Input& input, Session& session) {
  wire::SessionRequests requests;
  if (input.OneIn(16)) {
    // Any bytes that parse. Their waits get a short timeout.
    if (!requests.ParseFromString(input.Text(255))) return;
    for (wire::SessionRequest& request : *requests.mutable_requests()) request.set_timeout_us(1000);
  } else {
    for (uint32_t i = input.Below(4); i > 0; --i) AddRequest(input, session.last_timestamp(), requests.add_requests());
    if (input.OneIn(64) && requests.requests_size() > 0) {
      while (requests.requests_size() < 65) requests.add_requests()->mutable_abort();
    }
  }
  session.Send(requests);
}

// The sender chooses the ids: any number, and repeated ones.
void Send(Input& input, OneShots& stream) {
  wire::OneShotCalls message;
  if (input.OneIn(16)) {
    if (!message.ParseFromString(input.Text(255))) return;
  } else {
    if (input.OneIn(32)) message.mutable_open()->set_protocol_version(input.Byte());
    for (uint32_t i = input.OneIn(32) ? 0 : 1 + input.Below(8); i > 0; --i) {
      wire::OneShotCall* call = message.add_calls();
      call->set_id(input.Number());
      SetBegin(input, stream.last_timestamp(), call->mutable_one_shot()->mutable_begin());
      AddOperations(input, call->mutable_one_shot());
    }
    if (input.OneIn(64) && message.calls_size() > 0 && message.calls(0).ByteSizeLong() < 1000) {
      const int many = 250 + static_cast<int>(input.Below(10));  // more than 256 are refused
      while (message.calls_size() < many) *message.add_calls() = message.calls(0);
    }
  }
  for (wire::OneShotCall& call : *message.mutable_calls()) call.set_timeout_us(1 + input.Byte() * 100);
  stream.Send(message);
}

void CallTables(Input& input, wire::TransactionService::Stub& stub) {
  grpc::ClientContext context;
  SetTime(&context);
  wire::TableRequest request;
  request.set_protocol_version(input.OneIn(16) ? input.Byte() : kProtocolVersion);
  request.set_name(input.OneIn(8) ? std::string(250 + input.Below(10), 'n') : Concat("t", input.Below(3)));
  if (input.OneIn(8)) request.set_name(input.Text(10));
  if (request.name() == "health") return;
  wire::TableAnswer answer;
  const uint32_t call = input.Below(4);
  if (call == 3) {
    wire::OutcomeRequest asked;
    asked.set_protocol_version(request.protocol_version());
    asked.set_id(input.OneIn(8) ? input.Text(20) : std::string(15, 'i') + static_cast<char>(input.Byte()));
    asked.set_not_before(input.OneIn(4) ? input.Number() : 0);
    wire::OutcomeAnswer outcome;
    (void)stub.AskOutcome(&context, asked, &outcome);
    return;
  }
  const grpc::Status status = call == 0   ? stub.CreateTable(&context, request, &answer)
                              : call == 1 ? stub.DropTable(&context, request, &answer)
                                          : stub.OpenTable(&context, request, &answer);
  DEUT_CHECK(status.ok());
}

void CallService(Input& input, wire::TransactionService::Stub& stub) {
  grpc::ClientContext context;
  // DropCaches waits for open transactions, so the call has a short deadline.
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(50, GPR_TIMESPAN)));
  wire::ServiceRequest request;
  request.set_protocol_version(input.OneIn(16) ? input.Byte() : kProtocolVersion);
  wire::ListTablesAnswer tables;
  wire::GetStatusAnswer status;
  wire::DropCachesAnswer dropped;
  switch (input.Below(8)) {
    case 0:
      (void)stub.GetStatus(&context, request, &status).ok();
      break;
    case 1:
      (void)stub.DropCaches(&context, request, &dropped).ok();
      break;
    default:
      (void)stub.ListTables(&context, request, &tables).ok();
  }
}

void PlayOneShots(Input& input, wire::TransactionService::Stub& stub, std::unique_ptr<OneShots>* stream) {
  const uint32_t action = input.Below(8);
  if (*stream == nullptr) {
    *stream = std::make_unique<OneShots>(stub);
    wire::OneShotCalls open;
    if (!input.OneIn(16)) open.mutable_open()->set_protocol_version(kProtocolVersion);
    (*stream)->Send(open);
  }
  if (action == 0) {
    stream->reset();
  } else if (action == 1) {
    (*stream)->Cancel();
  } else if (action == 2) {
    (*stream)->Settle();
  } else {
    Send(input, **stream);
  }
}

void Play(Input& input) {
  // The last store is never destroyed, because threads' own variables are gone at the end of the process.
  static Target* target = nullptr;
  static int inputs = 0;
  if (inputs++ % kInputsPerStore == 0) {
    delete target;
    target = new Target();
  }
  {
    std::array<std::unique_ptr<Session>, kSessions> sessions;
    std::unique_ptr<OneShots> one_shots;
    for (int step = 0; step < kMaxSteps && !input.empty(); ++step) {
      const uint32_t action = input.Below(16);
      std::unique_ptr<Session>& session = sessions[input.Below(kSessions)];
      if (action == 0) {
        session.reset();
      } else if (action == 1) {
        CallTables(input, target->stub());
      } else if (action == 2) {
        CallService(input, target->stub());
      } else if (action == 3 && session != nullptr) {
        session->Cancel();
      } else if (action < 7 && session != nullptr) {
        session->Settle();
      } else if (action == 15) {
        PlayOneShots(input, target->stub(), &one_shots);
      } else {
        if (session == nullptr) {
          session = std::make_unique<Session>(target->stub());
          if (!input.OneIn(8)) {
            wire::SessionRequests open;
            open.add_requests()->mutable_open()->set_protocol_version(kProtocolVersion);
            session->Send(open);
          }
        }
        Send(input, *session);
      }
    }
  }
  target->CheckServed();
}

}  // namespace
}  // namespace deut::fuzz

// The store outlives the last input, and the pages of its tree are referenced by tagged words, which LeakSanitizer
// does not follow. The unit tests look for leaks.
// The name is LeakSanitizer's.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" int __lsan_is_turned_off() { return 1; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  deut::fuzz::Input input(data, size);
  deut::fuzz::Play(input);
  return 0;
}
