// GrpcDataComponent: a data component in another process. The contract is that of data_component.h, with these
// additional errors:
//   UNAVAILABLE        there is no connection, or it broke before the answer. The call may or may not have been carried out.
//                      (All calls of this interface may be repeated.)
//   DEADLINE_EXCEEDED  as above, and the deadline passed
//   PERMISSION_DENIED  one side refuses the other's certificate
//   CORRUPTION         the answer does not fit the request
// Connections: one for each Data stream, one for bulk scans and control calls, one for the log. None waits for another.
// Submit never blocks. While the peer is away, Submit finishes requests with UNAVAILABLE as fast as connecting fails.
// Thread-safety: as in data_component.h. Ownership: streams and requests must not outlive it.
#ifndef PROTOCOL_DATA_GRPC_DATA_COMPONENT_H_
#define PROTOCOL_DATA_GRPC_DATA_COMPONENT_H_

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/data_component.h"
#include "protocol/rpc/rpc_event.h"
#include "protocol/rpc/rpc_peer.h"

namespace deut {

struct GrpcDataComponentOptions {
  // Each thread always submits to the same stream. More than one stream pays when several cores serve reads on both
  // sides.
  int data_streams = 1;
  // Runs the events of the streams, and must outlive the component. If it is null, the component starts a thread for
  // them.
  RpcEventLoop* events = nullptr;
};

class GrpcDataComponent final : public DataComponent {
 public:
  // Connects only when a call needs it.
  GrpcDataComponent(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, GrpcDataComponentOptions options);
  ~GrpcDataComponent() override;

  Result<HelloAnswer> Hello(const HelloRequest& request, Deadline deadline) override;
  void Submit(absl::Span<DataRequest* const> requests) override;
  void Abandon(DataRequest* request) override;
  Result<std::unique_ptr<ScanStream>> OpenScan(const Sender& sender, const ScanSpec& spec, Deadline deadline) override;
  Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                       Deadline deadline) override;
  Result<std::vector<std::string>> Partition(const Sender& sender, TableId table, uint32_t n,
                                             Deadline deadline) override;
  Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) override;
  Result<std::vector<CounterValue>> Counters(Deadline deadline) override;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace deut

#endif  // PROTOCOL_DATA_GRPC_DATA_COMPONENT_H_
