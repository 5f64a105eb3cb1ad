#include "protocol/connections/peer_addresses.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut {
namespace {

constexpr size_t kMaxNamedAddresses = 3;

// A server's connection. It belongs to a TLS object.
struct Connection {
  std::string address;
  std::string certificate;                    // the digest of the peer's certificate; empty until the handshake is done
  std::shared_ptr<HandshakePace::Slot> slot;  // held until the handshake is done
};

// The connections whose handshakes are done, by the digests of their peers' certificates.
struct Table {
  Mutex mutex{RealRuntime()};
  absl::flat_hash_map<std::string, std::vector<const Connection*>> connections DEUT_GUARDED_BY(mutex);
};

// The table is never destroyed, because connections of gRPC end after main.
Table& TheTable() {
  static Table& table = *new Table;
  return table;
}

thread_local std::string scope_address;
thread_local std::shared_ptr<HandshakePace::Slot> scope_slot;
thread_local std::string last_handshake;

std::string AddressOf(int socket) {
  sockaddr_storage name{};
  socklen_t bytes = sizeof(name);
  char text[INET6_ADDRSTRLEN] = {};
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) return "an unknown address";
  if (name.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(name);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return Concat(text, ":", ntohs(v4.sin_port));
  }
  if (name.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(name);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    return Concat("[", text, "]:", ntohs(v6.sin6_port));
  }
  return "the Unix socket";
}

std::string DigestOf(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  if (certificate == nullptr || X509_digest(certificate, EVP_sha256(), digest, &bytes) != 1) return std::string();
  return std::string(reinterpret_cast<const char*>(digest), bytes);
}

int Index();

Connection* ConnectionOf(const SSL* ssl) { return static_cast<Connection*>(SSL_get_ex_data(ssl, Index())); }

// Called at the peer's last message of a handshake: its certificate is known by now.
void OnFinished(SSL* ssl, Connection* connection) {
  // Later messages do not matter here, and records of data need not call back.
  SSL_set_msg_callback(ssl, nullptr);
  connection->slot.reset();
  connection->certificate = DigestOf(SSL_get0_peer_certificate(ssl));
  if (connection->certificate.empty()) return;
  Table& table = TheTable();
  const MutexLock lock(table.mutex);
  table.connections[connection->certificate].push_back(connection);
}

int MessageType(std::string_view message) { return message.empty() ? -1 : static_cast<unsigned char>(message[0]); }

// Whether a server that has written this message waits for its peer. Such a message is the last one before the peer's certificate (Finished in
// TLS 1.3, ServerHelloDone in TLS 1.2), or the request for another key: a ServerHello with this random number (RFC 8446, 4.1.3) behind the type,
// the length and the version.
bool AwaitsPeer(std::string_view message) {
  constexpr std::string_view kRetryRandom =
      "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2"
      "\xc8\xa8\x33\x9c";
  switch (MessageType(message)) {
    case SSL3_MT_FINISHED:
    case SSL3_MT_SERVER_DONE:
      return true;
    case SSL3_MT_SERVER_HELLO:
      return message.size() > 6 && message.substr(6).starts_with(kRetryRandom);
    default:
      return false;
  }
}

// OpenSSL's message callback. `type` is the type of a record or of its content, and `bytes` are its first ones.
void OnMessage(int written, int, int type, const void* bytes, size_t count, SSL* ssl, void*) {
  Connection* connection = ConnectionOf(ssl);
  // A message of a client's connection only clears this, so that gRPC's next line is not ascribed to a server's connection.
  last_handshake = connection == nullptr ? std::string() : connection->address;
  if (connection == nullptr) return;
  if (type == SSL3_RT_ALERT && written != 0) {
    if (const long result = SSL_get_verify_result(ssl); result != X509_V_OK) {
      ConcatTo(&last_handshake, " (", X509_verify_cert_error_string(result), ")");
    }
  } else if (type == SSL3_RT_HANDSHAKE) {
    const std::string_view message(static_cast<const char*>(bytes), count);
    if (written == 0 && MessageType(message) == SSL3_MT_FINISHED) {
      OnFinished(ssl, connection);
    } else if (written != 0 && connection->slot != nullptr && AwaitsPeer(message)) {
      connection->slot->PeerIsAwaited();
    }
  }
}

void OnMade(void* ssl, void*, CRYPTO_EX_DATA* data, int index, long, void*) {
  if (!scope_address.empty())
    CRYPTO_set_ex_data(data, index,
                       new Connection{.address = scope_address, .certificate = {}, .slot = std::move(scope_slot)});
  SSL_set_msg_callback(static_cast<SSL*>(ssl), OnMessage);
}

int OnCopied(CRYPTO_EX_DATA*, const CRYPTO_EX_DATA*, void** value, int, long, void*) {
  *value = nullptr;  // a copy has no connection; gRPC makes none
  return 1;
}

void OnFreed(void*, void* value, CRYPTO_EX_DATA*, int, long, void*) {
  const std::unique_ptr<Connection> connection(static_cast<Connection*>(value));
  if (connection == nullptr || connection->certificate.empty()) return;
  Table& table = TheTable();
  const MutexLock lock(table.mutex);
  const auto found = table.connections.find(connection->certificate);
  if (found == table.connections.end()) return;
  std::erase(found->second, connection.get());
  if (found->second.empty()) table.connections.erase(found);
}

int Index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, OnMade, OnCopied, OnFreed);
  return index;
}

}  // namespace

void WatchTlsConnections() { Index(); }

TlsConnectionScope::TlsConnectionScope(int socket, std::shared_ptr<HandshakePace::Slot> slot) {
  scope_address = AddressOf(socket);
  scope_slot = std::move(slot);
}
TlsConnectionScope::~TlsConnectionScope() {
  scope_address.clear();
  scope_slot.reset();
}

std::string TakeLastHandshake() {
  std::string taken;
  taken.swap(last_handshake);
  return taken;
}

std::string PeerAddresses(std::string_view certificate_pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> pem(
      BIO_new_mem_buf(certificate_pem.data(), static_cast<int>(certificate_pem.size())), &BIO_free_all);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      pem == nullptr ? nullptr : PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr), &X509_free);
  ERR_clear_error();
  std::string named;
  Table& table = TheTable();
  const MutexLock lock(table.mutex);
  const auto found = table.connections.find(DigestOf(certificate.get()));
  if (found == table.connections.end()) return "an unknown address";
  // The newest connections are named, because a refused peer has usually just connected.
  const std::vector<const Connection*>& all = found->second;
  for (size_t i = 0; i < std::min(kMaxNamedAddresses, all.size()); ++i)
    ConcatTo(&named, i == 0 ? "" : ", ", all[all.size() - 1 - i]->address);
  return named;
}

}  // namespace deut
