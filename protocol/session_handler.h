// SessionHandler: one Session stream on the server: reads requests, runs them one after the other on a TransactionSession, and writes
// answers in the same order. However the stream ends, the session object is destroyed, and with it an open transaction aborted.
// Many results are written in several messages; the operations of an Execute are run in groups, so that what their results hold
// together stays small.
// Thread-safety: Run by one thread. Ownership: borrows everything.
#ifndef PROTOCOL_SESSION_HANDLER_H_
#define PROTOCOL_SESSION_HANDLER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/sync_stream.h"
#include "protocol/stream_watchdog.h"
#include "protocol/transaction_service.grpc.pb.h"
#include "protocol/transaction_service.h"

namespace deut {

class SessionHandler {
 public:
  using Stream = grpc::ServerReaderWriter<wire::SessionAnswers, wire::SessionRequests>;

  SessionHandler(Runtime& runtime, TransactionService& service, StreamWatchdog& watchdog, grpc::ServerContext* context,
                 Stream* stream);

  // Until the peer or the server ends the stream.
  grpc::Status Run();

 private:
  // Operations run together.
  static constexpr size_t kGroup = 64;

  // Runs one request and adds its answer. False: the stream is over.
  bool Handle(const wire::SessionRequest& request);
  Status Open(const wire::SessionOpen& open, Deadline deadline);
  Status Begin(const wire::Begin& begin, Deadline deadline);
  Status Execute(const wire::Execute& execute, Deadline deadline);
  Status Commit(Deadline deadline);
  Status OneShot(const wire::OneShot& one_shot, Deadline deadline);
  void SetCommit(const CommitAnswer& commit);

  // Moves results into the answer; writes what is large enough.
  void AddResults(const std::vector<OperationResult>& results);
  wire::SessionAnswer* answer();
  void WriteAnswers();

  Runtime& runtime_;
  TransactionService& service_;
  Stream* const stream_;
  StreamWatchdog::Watch write_watch_;
  std::unique_ptr<TransactionSession> session_;
  std::vector<Operation> operations_;
  std::vector<OperationResult> results_;
  wire::SessionAnswers outgoing_;
  size_t outgoing_bytes_ = 0;
  bool answer_open_ = false;  // the last answer of outgoing_ is the current request's
  bool broken_ = false;
};

}  // namespace deut

#endif  // PROTOCOL_SESSION_HANDLER_H_
