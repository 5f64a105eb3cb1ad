#include "protocol/scan_handler.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "protocol/convert_data_component.h"
#include "protocol/rpc_polling.h"
#include "protocol/rpc_status.h"

namespace deut {

ScanHandler::ScanHandler(Runtime& runtime, DataComponent& component, StreamWatchdog& watchdog,
                         grpc::ServerContext* context, Stream* stream)
    : runtime_(runtime),
      component_(component),
      context_(context),
      stream_(stream),
      patience_(watchdog.limit()),
      write_watch_(watchdog, [context] { context->TryCancel(); }) {}

grpc::Status ScanHandler::Run() {
  wire::ScanRequest request;
  if (!stream_->Read(&request)) return grpc::Status::OK;
  if (!request.has_open()) {
    return ToRpcStatus(DEUT_ERROR(kInvalidArgument, "request: the first message of a scan has to be `open`"));
  }
  Sender sender;
  Status valid = FromWire(request.open(), &sender, &spec_);
  auto scan = valid.ok() ? component_.OpenScan(sender, spec_, FromRpcTime(runtime_, context_->raw_deadline()))
                         : Result<std::unique_ptr<ScanStream>>(valid);
  WriteStatus(scan.status());
  if (!scan.ok()) return grpc::Status::OK;
  while (stream_->Read(&request)) {
    CountStreamRead();
    Status granted = CheckBound("bound", request.grant().bound());
    if (!request.has_grant()) granted = DEUT_ERROR(kInvalidArgument, "request: a scan that is open takes grants only");
    if (granted.ok()) granted = (*scan)->Grant(request.grant().bound(), request.grant().bytes());
    if (!granted.ok()) {
      WriteStatus(granted);
      break;
    }
    bound_ = request.grant().bound();
    const uint64_t room = std::numeric_limits<uint64_t>::max() - credit_;
    credit_ += std::min(request.grant().bytes(), room);
    if (!UseGrant(**scan)) break;
  }
  return grpc::Status::OK;
}

bool ScanHandler::UseGrant(ScanStream& scan) {
  ScanBatch batch;
  wire::ScanAnswer answer;
  // More bytes may be granted when everything up to the bound has been read already.
  while (credit_ != 0 && !GrantReached()) {
    const Status status = scan.Next(&batch, runtime_.Now() + patience_);
    if (!status.ok()) {
      WriteStatus(status);
      return false;
    }
    answer.Clear();
    ToWire(batch, &answer);
    if (!Write(answer) || batch.complete) return false;
    credit_ -= std::min<uint64_t>(credit_, batch.records.bytes().size());
    // A batch that brings nothing new says that the component can go no further under this grant.
    const bool nothing_new = batch.records.empty() && batch.covered == covered_;
    covered_ = std::move(batch.covered);
    if (nothing_new) break;
  }
  return true;
}

bool ScanHandler::GrantReached() const {
  if (bound_.empty() || covered_.empty()) return false;
  return spec_.direction == Direction::kAscending ? covered_ >= bound_ : covered_ <= bound_;
}

bool ScanHandler::Write(const wire::ScanAnswer& answer) {
  write_watch_.Start();
  const bool written = stream_->Write(answer);
  write_watch_.Stop();
  return written;
}

void ScanHandler::WriteStatus(const Status& status) {
  wire::ScanAnswer answer;
  ToWire(status, answer.mutable_status());
  Write(answer);
}

}  // namespace deut
