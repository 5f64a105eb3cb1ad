// ScanHandler: one bulk scan on the server (rule S4). It reads a grant, then batches from the component until the grant is used up, then
// the next grant; grants that the client sends ahead wait in the connection. So no batch is read that was not granted, and
// no more than one is held here.
// Thread-safety: Run by one thread. Ownership: borrows everything.
#ifndef PROTOCOL_SCAN_HANDLER_H_
#define PROTOCOL_SCAN_HANDLER_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/sync_stream.h"
#include "protocol/data_component.grpc.pb.h"
#include "protocol/data_component.h"
#include "protocol/stream_watchdog.h"

namespace deut {

class ScanHandler {
 public:
  using Stream = grpc::ServerReaderWriter<wire::ScanAnswer, wire::ScanRequest>;

  ScanHandler(Runtime& runtime, DataComponent& component, StreamWatchdog& watchdog, grpc::ServerContext* context,
              Stream* stream);

  // Until the scan is complete, has failed (the last message says so), or the peer is gone.
  grpc::Status Run();

 private:
  // Writes batches until the grant is used up. False: the scan has ended.
  bool UseGrant(ScanStream& scan);
  bool GrantReached() const;
  bool Write(const wire::ScanAnswer& answer);
  void WriteStatus(const Status& status);

  Runtime& runtime_;
  DataComponent& component_;
  grpc::ServerContext* const context_;
  Stream* const stream_;
  const Duration patience_;  // with the component, for one batch
  StreamWatchdog::Watch write_watch_;
  ScanSpec spec_;
  std::string bound_;    // the furthest granted
  std::string covered_;  // by the batches so far; empty before the first
  uint64_t credit_ = 0;  // bytes granted and not yet used
};

}  // namespace deut

#endif  // PROTOCOL_SCAN_HANDLER_H_
