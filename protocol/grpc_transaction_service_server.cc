#include "protocol/grpc_transaction_service_server.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "protocol/convert_transaction_service.h"
#include "protocol/one_shot_workers.h"
#include "protocol/rpc_polling.h"
#include "protocol/rpc_status.h"
#include "protocol/session_handler.h"
#include "protocol/stream_watchdog.h"
#include "protocol/transaction_service.grpc.pb.h"

namespace deut {
namespace {

// Threads that streams of one-shot transactions may add to those that gRPC counts.
constexpr int kOneShotThreads = 1024;

// A stream of one-shot transactions as its workers see it.
class OneShotStream final : public OneShotWorkers::Stream {
 public:
  using Stream = grpc::ServerReaderWriter<wire::OneShotAnswers, wire::OneShotCalls>;

  OneShotStream(StreamWatchdog& watchdog, grpc::ServerContext* context, Stream* stream)
      : stream_(stream), write_watch_(watchdog, [context] { context->TryCancel(); }) {}

  bool Read(wire::OneShotCalls* message) override {
    if (!stream_->Read(message)) return false;
    CountStreamRead();
    return true;
  }
  bool Write(const wire::OneShotAnswers& message) override {
    write_watch_.Start();
    const bool written = stream_->Write(message);
    write_watch_.Stop();
    return written;
  }

 private:
  Stream* const stream_;
  StreamWatchdog::Watch write_watch_;
};

}  // namespace

class GrpcTransactionServiceServer::Service final : public wire::TransactionService::Service {
 public:
  Service(Runtime& runtime, TransactionService& service, Duration stuck_peer)
      : runtime_(runtime), service_(service), watchdog_(runtime, stuck_peer) {}

  grpc::Status Session(grpc::ServerContext* context, SessionHandler::Stream* stream) override {
    return SessionHandler(runtime_, service_, watchdog_, context, stream).Run();
  }

  grpc::Status OneShots(grpc::ServerContext* context, OneShotStream::Stream* stream) override {
    OneShotStream own(watchdog_, context, stream);
    const OneShotWorkers::Options options{.parallel = parallel_};
    return ToRpcStatus(OneShotWorkers(runtime_, service_, one_shot_threads_, options, &own).Run());
  }

  grpc::Status AskOutcome(grpc::ServerContext* context, const wire::OutcomeRequest* request,
                          wire::OutcomeAnswer* answer) override {
    TransactionName name;
    Status valid = CheckProtocolVersion("the client", request->protocol_version());
    if (valid.ok()) valid = FromWire(*request, &name);
    ToWire(valid.ok() ? service_.AskOutcome(name, DeadlineOf(context)) : Result<OutcomeAnswer>(valid), answer);
    return grpc::Status::OK;
  }

  grpc::Status OpenTable(grpc::ServerContext* context, const wire::TableRequest* request,
                         wire::TableAnswer* answer) override {
    Answer(Check(*request), answer, [&]() -> Status {
      DEUT_ASSIGN_OR_RETURN(const TableId table, service_.OpenTable(request->name(), DeadlineOf(context)));
      answer->set_table(table.value);
      return Status::Ok();
    });
    return grpc::Status::OK;
  }

  grpc::Status CreateTable(grpc::ServerContext* context, const wire::TableRequest* request,
                           wire::TableAnswer* answer) override {
    Answer(Check(*request), answer, [&]() -> Status {
      DEUT_ASSIGN_OR_RETURN(const TableId table, service_.CreateTable(request->name(), DeadlineOf(context)));
      answer->set_table(table.value);
      return Status::Ok();
    });
    return grpc::Status::OK;
  }

  grpc::Status DropTable(grpc::ServerContext* context, const wire::TableRequest* request,
                         wire::TableAnswer* answer) override {
    Answer(Check(*request), answer, [&] { return service_.DropTable(request->name(), DeadlineOf(context)); });
    return grpc::Status::OK;
  }

  grpc::Status ListTables(grpc::ServerContext* context, const wire::ServiceRequest* request,
                          wire::ListTablesAnswer* answer) override {
    Answer(Check(*request), answer, [&]() -> Status {
      DEUT_ASSIGN_OR_RETURN(const std::vector<TableInfo> tables, service_.ListTables(DeadlineOf(context)));
      ToWire(tables, answer->mutable_tables());
      return Status::Ok();
    });
    return grpc::Status::OK;
  }

  grpc::Status GetStatus(grpc::ServerContext* context, const wire::ServiceRequest* request,
                         wire::GetStatusAnswer* answer) override {
    const Status valid = Check(*request);
    ToWire(valid.ok() ? service_.GetStatus(DeadlineOf(context)) : Result<ServiceStatus>(valid), answer);
    return grpc::Status::OK;
  }

  grpc::Status DropCaches(grpc::ServerContext* context, const wire::ServiceRequest* request,
                          wire::DropCachesAnswer* answer) override {
    Answer(Check(*request), answer, [&] { return service_.DropCaches(DeadlineOf(context)); });
    return grpc::Status::OK;
  }

 private:
  static Status Check(const wire::ServiceRequest& request) {
    return CheckProtocolVersion("the client", request.protocol_version());
  }
  static Status Check(const wire::TableRequest& request) {
    DEUT_RETURN_IF_ERROR(CheckProtocolVersion("the client", request.protocol_version()));
    return CheckTableName("name", request.name());
  }

  // Runs the call if the request is valid; what goes wrong becomes the answer's status.
  template <typename Message, typename Call>
  static void Answer(Status valid, Message* answer, Call call) {
    const Status status = valid.ok() ? call() : std::move(valid);
    if (!status.ok()) ToWire(status, answer->mutable_status());
  }

  Deadline DeadlineOf(grpc::ServerContext* context) { return FromRpcTime(runtime_, context->raw_deadline()); }

  Runtime& runtime_;
  TransactionService& service_;
  StreamWatchdog watchdog_;
  ThreadAllowance one_shot_threads_{kOneShotThreads};
  const int parallel_ = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
};

GrpcTransactionServiceServer::GrpcTransactionServiceServer(Runtime& runtime, TransactionService& service,
                                                           Duration stuck_peer)
    : service_(std::make_unique<Service>(runtime, service, stuck_peer)) {}

GrpcTransactionServiceServer::~GrpcTransactionServiceServer() = default;

grpc::Service* GrpcTransactionServiceServer::service() { return service_.get(); }

}  // namespace deut
