// SessionHandler: one Session stream on the server: runs the requests of a message one after the other on a TransactionSession, and writes
// answers in the same order; then it waits for the next message without a thread. However the stream ends, the session object is destroyed,
// and with it an open transaction aborted.
// Many results are written in several messages; the operations of an Execute are run in groups, so that what their results hold
// together stays small.
// A session that asks for nothing for as long as `idle` has patience is ended with UNAVAILABLE and the word that nothing was run
// (rpc_status.h): a client that has sent something meanwhile can send it again to another session.
// Thread-safety and ownership: rpc_call.h; `host` and `request` outlive it.
#ifndef PROTOCOL_SESSION_HANDLER_H_
#define PROTOCOL_SESSION_HANDLER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/peer_service.h"
#include "protocol/rpc_call.h"
#include "protocol/stream_host.h"
#include "protocol/stream_quota.h"
#include "protocol/stream_watchdog.h"
#include "protocol/transaction_service.grpc.pb.h"
#include "protocol/transaction_service.h"

namespace deut {

class SessionHandler final : public RpcCall<wire::SessionAnswers, wire::SessionRequests> {
 public:
  // Asks gRPC for the next such call: `request(context, stream, tag)`.
  using Request = std::function<void(grpc::ServerContext* context,
                                     grpc::ServerAsyncReaderWriter<wire::SessionAnswers, wire::SessionRequests>* stream,
                                     void* tag)>;
  static void Want(const StreamHost& host, const Request& request);

 private:
  // Operations run together.
  static constexpr size_t kGroup = 64;

  SessionHandler(const StreamHost& host, const Request& request);
  ~SessionHandler() override = default;

  // Only a session that waits for its peer can be ended for being idle: one of the two wins.
  enum State : uint32_t { kWaiting, kAtWork, kIdleEnded };

  void OnTaken() override;
  void OnRead(bool ok) override;
  // The thread's; the session is at work.
  void Work();
  // False: it is at work.
  bool EndIdle();
  // Runs what was read; not OK: the stream is to end so. `over`: the stream is over.
  Status HandleMessage(bool* over);
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
  void AwaitMessage();

  const StreamHost& host_;
  const Request& request_;
  StreamQuota::Place place_;
  std::unique_ptr<PeerService> service_;
  std::unique_ptr<TransactionSession> session_;
  std::vector<Operation> operations_;
  std::vector<OperationResult> results_;
  wire::SessionAnswers outgoing_;
  size_t outgoing_bytes_ = 0;
  bool answer_open_ = false;  // the last answer of outgoing_ is the current request's
  bool broken_ = false;
  std::atomic<State> state_{kAtWork};
  StreamWatchdog::Watch idle_watch_;  // last: its end waits until it is not being told
};

}  // namespace deut

#endif  // PROTOCOL_SESSION_HANDLER_H_
