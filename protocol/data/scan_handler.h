// ScanHandler: one bulk scan on the server (rule S4). It reads a grant, then reads batches from the component until the
// grant is used up, then reads the next grant. Grants that the client sends ahead wait in the connection. So it reads
// no batch outside the grants, and at most one while the previous one is being written.
// A scan holds a thread of the executor while it uses a grant, and none while it waits for the next one.
// Thread-safety and ownership: rpc_call.h; `host` and `request` outlive it.
#ifndef PROTOCOL_DATA_SCAN_HANDLER_H_
#define PROTOCOL_DATA_SCAN_HANDLER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "protocol/connections/stream_quota.h"
#include "protocol/data/data_component_host.h"
#include "protocol/data_component.h"
#include "protocol/rpc/rpc_call.h"
#include "protocol/wire/data_component.grpc.pb.h"
#include "protocol/wire/namespace.h"

namespace deut {

class ScanHandler final : public RpcCall<wire::ScanAnswer, wire::ScanRequest> {
 public:
  // Asks gRPC for the next such call, with `request(context, stream, tag)`.
  using Request =
      std::function<void(grpc::ServerContext* context,
                         grpc::ServerAsyncReaderWriter<wire::ScanAnswer, wire::ScanRequest>* stream, void* tag)>;
  static void RequestNextCall(const DataComponentHost& host, const Request& request);

 private:
  ScanHandler(const DataComponentHost& host, const Request& request);
  ~ScanHandler() override = default;

  void OnAccepted() override;
  // The scan goes on until it is complete, has failed (its last message says so), or the peer is gone.
  void OnRead(bool ok) override;
  // Whether the scan goes on. If it does not, the call ends with `status`.
  bool Open(Status* status);
  bool ApplyGrant();
  // Writes batches until the grant is used up.
  bool UseGrant();
  bool GrantReached() const;
  void WriteStatus(const Status& status);

  const DataComponentHost& host_;
  const Request& request_;
  StreamQuota::Slot quota_slot_;
  const Duration component_time_limit_;  // the longest time that the component may take for one batch
  std::unique_ptr<ScanStream> scan_;
  ScanSpec spec_;
  ScanBatch batch_;
  std::string bound_;                // the furthest bound granted
  std::string covered_;              // by the batches so far; empty before the first
  uint64_t granted_bytes_left_ = 0;  // bytes granted and not used yet
  wire::ScanAnswer answer_;
};

}  // namespace deut

#endif  // PROTOCOL_DATA_SCAN_HANDLER_H_
