#include "protocol/data/scan_handler.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "protocol/rpc/rpc_status.h"
#include "protocol/wire/convert_data_component.h"
#include "protocol/wire/namespace.h"

namespace deut {

void ScanHandler::RequestNextCall(const DataComponentHost& host, const Request& request) {
  auto* const call = new ScanHandler(host, request);
  request(&call->context(), call->stream(), call->accepted());
}

ScanHandler::ScanHandler(const DataComponentHost& host, const Request& request)
    : RpcCall(host.runtime, host.executor, host.writes),
      host_(host),
      request_(request),
      component_time_limit_(host.writes.limit()) {}

void ScanHandler::OnAccepted() {
  RequestNextCall(host_, request_);
  if (const Status entered = host_.streams.Enter(context(), &quota_slot_); !entered.ok())
    return End(ToRpcStatus(entered));
  StartRead();
}

void ScanHandler::OnRead(bool ok) {
  // A scan takes long, and may wait for the disk and for the peer.
  executor().BeforeBlocking();
  Status status;
  if (ok && (scan_ == nullptr ? Open(&status) : ApplyGrant())) return StartRead();
  // The scan is destroyed before the peer is told, so that nothing of it is left once its end is known.
  scan_.reset();
  End(ToRpcStatus(status));
}

bool ScanHandler::Open(Status* status) {
  const wire::ScanRequest& request = incoming();
  if (!request.has_open()) {
    *status = DEUT_ERROR(kInvalidArgument, "request: the first message of a scan has to be `open`");
    return false;
  }
  Sender sender;
  Status valid = FromWire(request.open(), &sender, &spec_);
  auto scan = valid.ok() ? host_.component.OpenScan(sender, spec_, FromRpcTime(runtime_, context().raw_deadline()))
                         : Result<std::unique_ptr<ScanStream>>(valid);
  WriteStatus(scan.status());
  if (!scan.ok()) return false;
  scan_ = std::move(scan).value();
  return true;
}

bool ScanHandler::ApplyGrant() {
  const wire::ScanRequest& request = incoming();
  Status granted = CheckBound("bound", request.grant().bound());
  if (!request.has_grant()) granted = DEUT_ERROR(kInvalidArgument, "request: a scan that is open takes grants only");
  if (granted.ok()) granted = scan_->Grant(request.grant().bound(), request.grant().bytes());
  if (!granted.ok()) {
    WriteStatus(granted);
    return false;
  }
  bound_ = request.grant().bound();
  const uint64_t room = std::numeric_limits<uint64_t>::max() - granted_bytes_left_;
  granted_bytes_left_ += std::min(request.grant().bytes(), room);
  return UseGrant();
}

bool ScanHandler::UseGrant() {
  // A grant may have bytes left when everything up to its bound has been read.
  while (granted_bytes_left_ != 0 && !GrantReached()) {
    const Status status = scan_->Next(&batch_, runtime_.Now() + component_time_limit_);
    if (!status.ok()) {
      WriteStatus(status);
      return false;
    }
    answer_.Clear();
    ToWire(batch_, &answer_);
    if (!Write(answer_) || batch_.complete) return false;
    granted_bytes_left_ -= std::min<uint64_t>(granted_bytes_left_, batch_.records.bytes().size());
    // A batch that brings nothing new means that the component can go no further under this grant.
    const bool nothing_new = batch_.records.empty() && batch_.covered == covered_;
    covered_ = std::move(batch_.covered);
    if (nothing_new) break;
  }
  return true;
}

bool ScanHandler::GrantReached() const {
  if (bound_.empty() || covered_.empty()) return false;
  return spec_.direction == Direction::kAscending ? covered_ >= bound_ : covered_ <= bound_;
}

void ScanHandler::WriteStatus(const Status& status) {
  answer_.Clear();
  ToWire(status, answer_.mutable_status());
  Write(answer_);
}

}  // namespace deut
