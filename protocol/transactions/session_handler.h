// SessionHandler: one Session stream on the server. It runs the requests of a message one after another on a
// TransactionSession, and writes the answers in the same order. Then it waits for the next message without a thread.
// However the stream ends, the session object is destroyed, which aborts its open transaction.
// Many results are written in several messages. The operations of an Execute run in groups, so that their results
// together take little memory.
// A session without a request for the limit of `idle` ends with UNAVAILABLE and the note that nothing was run
// (rpc_status.h). A client that has sent a request meanwhile can send it again to another session.
// Thread-safety and ownership: rpc_call.h; `host` and `request` outlive it.
#ifndef PROTOCOL_TRANSACTIONS_SESSION_HANDLER_H_
#define PROTOCOL_TRANSACTIONS_SESSION_HANDLER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/connections/stream_quota.h"
#include "protocol/rpc/rpc_call.h"
#include "protocol/rpc/stream_watchdog.h"
#include "protocol/transaction_service.h"
#include "protocol/transactions/peer_service.h"
#include "protocol/transactions/stream_host.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.grpc.pb.h"

namespace deut {

class SessionHandler final : public RpcCall<wire::SessionAnswers, wire::SessionRequests> {
 public:
  // Asks gRPC for the next such call, with `request(context, stream, tag)`.
  using Request = std::function<void(grpc::ServerContext* context,
                                     grpc::ServerAsyncReaderWriter<wire::SessionAnswers, wire::SessionRequests>* stream,
                                     void* tag)>;
  static void RequestNextCall(const StreamHost& host, const Request& request);

 private:
  // The number of operations that run together.
  static constexpr size_t kGroup = 64;

  SessionHandler(const StreamHost& host, const Request& request);
  ~SessionHandler() override = default;

  // Only a session that waits for its peer can be ended as idle. An exchange of this state decides between the two.
  enum State : uint32_t { kWaiting, kAtWork, kIdleEnded };

  void OnAccepted() override;
  void OnRead(bool ok) override;
  // Runs the message that was read. The session is at work meanwhile.
  void Work();
  // False: the session is at work.
  bool EndIdle();
  // Runs the message that was read. Not OK: the stream ends with this status. `over`: the stream is over.
  Status HandleMessage(bool* over);
  // Runs one request and adds its answer. False: the stream is over.
  bool Handle(const wire::SessionRequest& request);
  Status Open(const wire::SessionOpen& open, Deadline deadline);
  Status Begin(const wire::Begin& begin, Deadline deadline);
  Status Execute(const wire::Execute& execute, Deadline deadline);
  Status Commit(Deadline deadline);
  Status OneShot(const wire::OneShot& one_shot, Deadline deadline);
  void SetCommit(const CommitAnswer& commit);

  // Moves results into the answer, and writes the answers when they are large enough.
  void AddResults(const std::vector<OperationResult>& results);
  wire::SessionAnswer* answer();
  void WriteAnswers();
  void AwaitMessage();

  const StreamHost& host_;
  const Request& request_;
  StreamQuota::Slot quota_slot_;
  std::unique_ptr<PeerService> service_;
  std::unique_ptr<TransactionSession> session_;
  std::vector<Operation> operations_;
  std::vector<OperationResult> results_;
  wire::SessionAnswers outgoing_;
  size_t outgoing_bytes_ = 0;
  bool answer_open_ = false;  // the last answer of outgoing_ belongs to the present request
  bool broken_ = false;
  std::atomic<State> state_{kAtWork};
  StreamWatchdog::Watch idle_watch_;  // the last member: its destructor waits until the watchdog does not call it
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTIONS_SESSION_HANDLER_H_
