#include "protocol/rpc/rpc_peer.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "grpcpp/support/channel_arguments.h"
#include "protocol/connections/rpc_limits.h"
#include "protocol/limits.h"
#include "protocol/rpc/rpc_status.h"

namespace deut {

void AwaitConnection(Runtime& runtime, grpc::Channel& channel, Deadline deadline) {
  const Deadline limit = std::min(deadline, runtime.Now() + milliseconds(kConnectPatienceMs));
  for (;;) {
    const grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY || state == GRPC_CHANNEL_SHUTDOWN) return;
    if (!channel.WaitForStateChange(state, ToRpcTime(runtime, limit))) return;
  }
}

// Facts about the last handshakes. gRPC reports each of these only as a connection that failed.
class RpcPeer::Handshakes {
 public:
  // This side has checked the server's certificate.
  void Checked(const Status& status) {
    const MutexLock lock(mutex_);
    refused_by_us_ = status;
    if (status.ok()) ++done_;
  }
  Status refused_by_us() {
    const MutexLock lock(mutex_);
    return refused_by_us_;
  }
  // The server closed a connection right after its handshake. True if it has also done so before, and has not behaved
  // otherwise since. A server that stops or dies does it once; a server that refuses our certificate does it every
  // time.
  bool ClosedByServer() {
    const MutexLock lock(mutex_);
    const MonotonicTime now = RealRuntime().Now();
    if (!closed_) closed_ = Closed{.done = done_, .since = now};
    return done_ > closed_->done && now - closed_->since >= milliseconds(kInitialBackoffMs);
  }
  // The server has answered, or has failed in another way.
  void ForgetClosed() {
    const MutexLock lock(mutex_);
    closed_.reset();
  }

 private:
  struct Closed {
    uint64_t done;
    MonotonicTime since;
  };
  Mutex mutex_{RealRuntime()};
  Status refused_by_us_ DEUT_GUARDED_BY(mutex_);
  uint64_t done_ DEUT_GUARDED_BY(mutex_) = 0;
  std::optional<Closed> closed_ DEUT_GUARDED_BY(mutex_);  // since the first such end
};

// Compares the names in the server's certificate with the allow-list. gRPC has already verified the certificate's
// chain.
class RpcPeer::NameCheck final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  NameCheck(std::string peer, std::shared_ptr<const TlsIdentity> tls, std::shared_ptr<Handshakes> handshakes)
      : peer_(std::move(peer)), tls_(std::move(tls)), handshakes_(std::move(handshakes)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* sync_status) override {
    std::vector<std::string> names;
    const auto add = [&names](const std::vector<grpc::string_ref>& more) {
      for (const grpc::string_ref& name : more) names.emplace_back(name.data(), name.size());
    };
    add(request->dns_names());
    add(request->uri_names());
    // The same rule as PeerNames of rpc_server.h.
    if (names.empty() && request->ip_names().empty() && request->email_names().empty()) add({request->common_name()});
    const Status status = CheckPeerNames(*tls_, peer_, names);
    *sync_status = ToRpcStatus(status);
    handshakes_->Checked(status);
    return true;
  }

  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::string peer_;
  const std::shared_ptr<const TlsIdentity> tls_;
  const std::shared_ptr<Handshakes> handshakes_;
};

namespace {

// Whether gRPC's message says that an attempt to connect failed because the connection ended: closed, or reset with
// bytes of ours unread. (rpc_peer_test makes gRPC say these words.) An error from the server may quote such words about
// a connection of its own, but does not begin with them.
bool EndedWhileConnecting(const std::string& message) {
  constexpr std::string_view kEnds[] = {"Socket closed", "Connection reset", "Broken pipe"};
  return message.starts_with("failed to connect") &&
         std::ranges::any_of(kEnds, [&](std::string_view end) { return message.find(end) != std::string::npos; });
}

// A server looks for the name that its client requests among the names in its certificate. gRPC logs a complaint about
// each connection that requests another name. The certificates here name an identity and not a host, so the client
// requests a name that it allows.
std::string SniName(const TlsIdentity& tls) {
  constexpr size_t kMaxHostName = 253;
  const auto is_host_name = [](const std::string& name) {
    return !name.empty() && name.size() <= kMaxHostName &&
           std::ranges::all_of(name, [](char c) { return absl::ascii_isalnum(c) || c == '.' || c == '-'; });
  };
  const auto found = std::ranges::find_if(tls.allow, is_host_name);
  return found == tls.allow.end() ? std::string() : *found;
}

}  // namespace

Result<std::shared_ptr<const RpcPeer>> RpcPeer::Create(const std::string& what, const std::string& flag,
                                                       const Address& address, std::shared_ptr<TlsKeys> tls,
                                                       bool insecure) {
  DEUT_RETURN_IF_ERROR(CheckTransport(flag, address, tls != nullptr, insecure));
  if (!address.is_unix() && address.port() == 0) {
    return DEUT_ERROR(kInvalidArgument, flag, ": ", address.ToString(), " has port 0, which nobody can connect to");
  }
  std::shared_ptr<RpcPeer> peer(new RpcPeer);
  peer->name_ = Concat(what, " at ", address.ToString());
  peer->target_ = address.is_unix() ? address.ToString() : Concat("dns:///", address.ToString());
  peer->handshakes_ = std::make_shared<Handshakes>();
  if (tls == nullptr) {
    peer->credentials_ = grpc::InsecureChannelCredentials();
    return std::shared_ptr<const RpcPeer>(std::move(peer));
  }
  const std::shared_ptr<const TlsIdentity> identity = tls->identity();
  peer->server_name_ = SniName(*identity);
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(tls->provider());
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(true);
  options.set_check_call_host(false);  // the allow-list replaces it
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<NameCheck>(peer->name_, identity, peer->handshakes_));
  peer->credentials_ = grpc::experimental::TlsCredentials(options);
  peer->tls_ = std::move(tls);
  return std::shared_ptr<const RpcPeer>(std::move(peer));
}

std::shared_ptr<grpc::Channel> RpcPeer::NewChannel(RpcTraffic traffic) const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (!server_name_.empty()) arguments.SetSslTargetNameOverride(server_name_);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kInitialBackoffMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxBackoffMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  // The callers decide what to retry, and when (protocol/README.md). Proxies and service configurations are not wanted.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // A compressed message could grow to any size after its size was checked.
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  const bool bulk = traffic == RpcTraffic::kBulk;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(bulk ? kMaxControlAnswerBytes : kMaxMessageBytes));
  arguments.SetMaxSendMessageSize(static_cast<int>(kMaxMessageBytes));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, bulk ? kBulkFrameBytes : kShortFrameBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  return grpc::CreateCustomChannel(target_, credentials_, arguments);
}

bool RpcPeer::MayHaveRefused(const grpc::Status& status) const {
  return tls_ != nullptr && status.error_code() == grpc::StatusCode::UNAVAILABLE &&
         EndedWhileConnecting(status.error_message());
}

Status RpcPeer::FromRpc(const grpc::Status& status) const {
  Status ours = FromRpcStatus(status, name_);
  if (tls_ == nullptr || ours == ErrorCode::kDeadlineExceeded) return ours;
  if (ours == ErrorCode::kUnavailable) {
    Status refused = handshakes_->refused_by_us();
    if (!refused.ok()) return refused;
    // In TLS 1.3 the client's handshake ends before the server checks the client's certificate, and gRPC's server says
    // nothing when it refuses it.
    if (EndedWhileConnecting(status.error_message())) {
      if (handshakes_->ClosedByServer()) {
        return DEUT_ERROR(kPermissionDenied, name_,
                          ": certificate refused: it closes each connection right after the TLS handshake, so it has "
                          "refused this program's certificate (--tls_cert); its log says why");
      }
      return Status(ours.code(),
                    Concat(ours.message(),
                           "; it closed the connection right after the TLS handshake: if it is not about to stop, it "
                           "has refused this program's certificate (--tls_cert), and its log says why"));
    }
  }
  handshakes_->ForgetClosed();
  return ours;
}

}  // namespace deut
