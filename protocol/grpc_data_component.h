// GrpcDataComponent: a data component in another process. The contract is that of data_component.h; what is added is how calls can fail:
//   UNAVAILABLE        no connection, or it broke before the answer; whether the call was carried out is not known (all calls of this
//                      interface may be repeated)
//   DEADLINE_EXCEEDED  as above, and the deadline passed
//   PERMISSION_DENIED  one side refuses the other's certificate
//   CORRUPTION         the answer is no answer to what was asked
// Connections: one for each Data stream; one for bulk scans and control calls; one for the log. None waits for another.
// Submit never blocks; while the peer is away it finishes requests with UNAVAILABLE as fast as connecting fails.
// Thread-safety: as data_component.h. Ownership: streams and requests must not outlive it.
#ifndef PROTOCOL_GRPC_DATA_COMPONENT_H_
#define PROTOCOL_GRPC_DATA_COMPONENT_H_

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/data_component.h"
#include "protocol/rpc_event.h"
#include "protocol/rpc_peer.h"

namespace deut {

struct GrpcDataComponentOptions {
  // A thread submits to one of them, always the same. More than one pays when several cores serve reads on both sides.
  int data_streams = 1;
  // Runs the events of the streams, and must outlive the component. If it is null, the component starts a thread for them.
  RpcEventLoop* events = nullptr;
};

class GrpcDataComponent final : public DataComponent {
 public:
  // Connects when it is needed.
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
  Result<Position> Checkpoint(const Sender& sender, Position up_to, Deadline deadline) override;
  Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) override;
  Result<std::vector<CounterValue>> Counters(Deadline deadline) override;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace deut

#endif  // PROTOCOL_GRPC_DATA_COMPONENT_H_
