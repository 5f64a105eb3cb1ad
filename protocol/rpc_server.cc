#include "protocol/rpc_server.h"

#include <string>
#include <utility>

#include "common/base/concat.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "protocol/limits.h"
#include "protocol/rpc_limits.h"
#include "protocol/rpc_status.h"

namespace deut {

// Compares the names of the client's certificate, whose chain gRPC has verified already, with the allow-list.
class RpcServer::NameCheck final : public grpc::AuthMetadataProcessor {
 public:
  explicit NameCheck(std::shared_ptr<const TlsIdentity> tls) : tls_(std::move(tls)) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata&, grpc::AuthContext* context, OutputMetadata*, OutputMetadata*) override {
    std::vector<std::string> names;
    for (const char* property : {"x509_subject_alternative_name", "x509_common_name"}) {
      for (const grpc::string_ref& name : context->FindPropertyValues(property))
        names.emplace_back(name.data(), name.size());
    }
    return ToRpcStatus(CheckPeerNames(*tls_, "the client", names));
  }

 private:
  const std::shared_ptr<const TlsIdentity> tls_;
};

Result<std::unique_ptr<RpcServer>> RpcServer::Start(Runtime& runtime, const RpcServerOptions& options,
                                                    const std::vector<grpc::Service*>& services) {
  DEUT_RETURN_IF_ERROR(CheckTransport("--listen", options.listen, options.tls != nullptr, options.insecure));
  // gRPC takes a living process's unix socket away from it; look first.
  if (options.listen.is_unix()) DEUT_RETURN_IF_ERROR(DiagnoseListen(options.listen));

  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (options.tls != nullptr) {
    grpc::SslServerCredentialsOptions ssl(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    ssl.pem_root_certs = options.tls->ca_pem;
    ssl.pem_key_cert_pairs.push_back({options.tls->key_pem, options.tls->cert_pem});
    credentials = grpc::SslServerCredentials(ssl);
    credentials->SetAuthMetadataProcessor(std::make_shared<NameCheck>(options.tls));
  }

  // "localhost" may mean two addresses, of which one may be taken; nobody would notice.
  const bool localhost = options.listen.host() == "localhost";
  const std::string target = options.listen.is_unix() ? options.listen.ToString()
                             : localhost              ? Concat("127.0.0.1:", options.listen.port())
                                                      : options.listen.ToString();
  int port = 0;
  std::unique_ptr<RpcServer> server(new RpcServer(runtime, options.listen));
  grpc::ServerBuilder builder;
  builder.AddListeningPort(target, credentials, &port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  server->health_.AddTo(builder);
  builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxMessageBytes));
  builder.SetMaxSendMessageSize(static_cast<int>(kMaxControlAnswerBytes));
  // By default two processes may listen at one port, and each gets some of the connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
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
  quota.Resize(options.memory_bytes).SetMaxThreads(options.max_threads);
  builder.SetResourceQuota(quota);

  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || (!options.listen.is_unix() && port == 0)) {
    DEUT_RETURN_IF_ERROR(DiagnoseListen(options.listen));
    return DEUT_ERROR(kInvalidArgument, "cannot listen at ", options.listen.ToString(),
                      options.tls == nullptr ? "; choose another address with --listen"
                                             : "; gRPC refuses the address or the TLS files");
  }
  if (!options.listen.is_unix()) server->address_ = options.listen.WithPort(static_cast<uint16_t>(port));
  server->health_.Serve();
  return server;
}

RpcServer::~RpcServer() { Shutdown(runtime_.Now()); }

void RpcServer::SetServing(bool serving) { health_.SetServing(serving); }

void RpcServer::Shutdown(Deadline deadline) {
  if (server_ == nullptr) return;
  health_.BeginStop();
  server_->Shutdown(ToRpcTime(runtime_, deadline));
  server_->Wait();
  health_.Stop();
  server_.reset();
}

}  // namespace deut
