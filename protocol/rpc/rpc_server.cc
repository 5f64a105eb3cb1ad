#include "protocol/rpc/rpc_server.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "common/base/concat.h"
#include "common/base/descriptor.h"
#include "common/observe/limited_log.h"
#include "grpc/grpc_security_constants.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "grpcpp/server_builder.h"
#include "protocol/connections/peer_addresses.h"
#include "protocol/connections/rpc_limits.h"
#include "protocol/limits.h"
#include "protocol/rpc/rpc_status.h"

namespace deut {

std::vector<std::string> PeerNames(const grpc::AuthContext& context) {
  std::vector<std::string> names;
  const auto add = [&](const char* property) {
    for (const grpc::string_ref& name : context.FindPropertyValues(property))
      names.emplace_back(name.data(), name.size());
  };
  add(GRPC_PEER_URI_PROPERTY_NAME);
  add(GRPC_PEER_DNS_PROPERTY_NAME);
  // An authority checks alternative names by their kinds. A common name is any text, and may look like a URI. So it
  // counts only in a certificate without alternative names.
  if (context.FindPropertyValues(GRPC_X509_SAN_PROPERTY_NAME).empty()) add(GRPC_X509_CN_PROPERTY_NAME);
  return names;
}

// Compares the names in the client's certificate with the rights that the call needs. gRPC has already verified the
// certificate's chain.
class RpcServer::NameCheck final : public grpc::AuthMetadataProcessor {
 public:
  NameCheck(Runtime& runtime, std::shared_ptr<const AccessControl> access)
      : access_(std::move(access)), refusals_(runtime) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    const auto path = metadata.find(":path");
    const std::string_view call =
        path == metadata.end() ? std::string_view() : std::string_view(path->second.data(), path->second.size());
    const Status refused = access_->current()->CheckCall(call, PeerNames(*context));
    if (!refused.ok()) {
      refusals_.Warn([&] {
        const std::vector<grpc::string_ref> pem = context->FindPropertyValues("x509_pem_cert");
        return Concat("a client at ",
                      pem.empty() ? std::string("an unknown address")
                                  : PeerAddresses(std::string_view(pem.front().data(), pem.front().size())),
                      " was refused: ", refused.message(), " (call ", call, ")");
      });
    }
    return ToRpcStatus(refused);
  }

 private:
  const std::shared_ptr<const AccessControl> access_;
  LimitedLog refusals_;
};

// Only one queue asks for new calls, because each connection is watched by one of the queues that do.
RpcServer::RpcServer(Runtime& runtime, const RpcServerOptions& options)
    : runtime_(runtime),
      options_(options),
      builder_(std::make_unique<grpc::ServerBuilder>()),
      tls_(options.tls),
      health_(runtime, options.stuck_peer),
      executor_(std::make_unique<RpcExecutor>(
          runtime,
          RpcExecutor::Options{.threads = options.max_threads,
                               .threads_for_single_calls = options.max_threads / 16,
                               .max_running = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))},
          builder_->AddCompletionQueue())) {
  executor_->Start();
}

Result<std::unique_ptr<RpcServer>> RpcServer::Start(Runtime& runtime, const RpcServerOptions& options,
                                                    const std::vector<grpc::Service*>& services) {
  auto server = std::make_unique<RpcServer>(runtime, options);
  DEUT_RETURN_IF_ERROR(server->Start(services));
  return server;
}

Status RpcServer::Start(const std::vector<grpc::Service*>& services) {
  DEUT_RETURN_IF_ERROR(CheckTransport("--listen", options_.listen, options_.tls != nullptr, options_.insecure));
  DEUT_ASSIGN_OR_RETURN(acceptor_, ConnectionAcceptor::Create(runtime_, options_.listen, options_.connections));
  address_ = acceptor_->address();

  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (options_.tls != nullptr) {
    if (options_.access == nullptr) return DEUT_ERROR(kInternal, "a server with TLS and without rights of peers");
    WatchTlsConnections();
    grpc::experimental::TlsServerCredentialsOptions tls(options_.tls->provider());
    tls.watch_root_certs();
    tls.watch_identity_key_cert_pairs();
    tls.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    credentials = grpc::experimental::TlsServerCredentials(tls);
    credentials->SetAuthMetadataProcessor(std::make_shared<NameCheck>(runtime_, options_.access));
  }

  const std::unique_ptr<grpc::ServerBuilder> own_builder = std::move(builder_);
  grpc::ServerBuilder& builder = *own_builder;
  hand_over_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  std::vector<ExecutedService*> executed;
  for (grpc::Service* service : services) {
    builder.RegisterService(service);
    if (auto* const one = dynamic_cast<ExecutedService*>(service)) executed.push_back(one);
  }
  health_.AddTo(builder);
  unknown_calls_.AddTo(builder);
  builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxMessageBytes));
  builder.SetMaxSendMessageSize(static_cast<int>(kMaxControlAnswerBytes));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(duration_cast<milliseconds>(options_.handshake_timeout).count()));
  // A compressed message could grow to any size after its size was checked.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kBulkFrameBytes);
  grpc::ResourceQuota quota("deuteronomy");
  quota.Resize(options_.memory_bytes).SetMaxThreads(options_.max_threads);
  builder.SetResourceQuota(quota);

  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return DEUT_ERROR(kInvalidArgument, "cannot serve at ", options_.listen.ToString(),
                      options_.tls == nullptr ? ": gRPC does not start" : ": gRPC refuses the TLS files");
  }
  health_.Serve(executor_->queue());
  unknown_calls_.Serve(*executor_);
  for (ExecutedService* service : executed) service->Serve(*executor_);
  acceptor_->Start([hand_over = hand_over_.get()](Descriptor socket, std::shared_ptr<HandshakePace::Slot> slot) {
    // Without TLS no object takes the slot. It ends here, because there is no handshake to compute.
    const TlsConnectionScope scope(socket.get(), std::move(slot));
    // From here on gRPC owns the socket. It takes sockets while the server runs, and the acceptor stops before that
    // ends.
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = -1;
    connection.fd = socket.Release();
    hand_over->HandleNewConnection(&connection);
  });
  return Status::Ok();
}

RpcServer::~RpcServer() {
  Shutdown(runtime_.Now());
  executor_->Stop();
}

void RpcServer::SetServing(bool serving) { health_.SetServing(serving); }

void RpcServer::Shutdown(Deadline deadline) {
  if (server_ == nullptr) return;
  acceptor_->StopAccepting();
  health_.BeginStop();
  server_->Shutdown(ToRpcTime(runtime_, deadline));
  server_->Wait();
  health_.Stop();
  executor_->AwaitNoCalls();
  server_.reset();
}

}  // namespace deut
