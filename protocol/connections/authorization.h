// Authorization: the calls and tables that a peer may use, given by the names in its certificate.
//
// A role says what a peer is to this daemon. A name may have several roles, and then has the rights of all of them.
// Names are the URIs and DNS names of the certificate, or its common name if it has no alternative name (PeerNames of
// rpc_server.h). They are compared byte by byte.
//   at tcd: reader   reads and scans tables
//           client   reads and writes tables
//           admin    creates and drops tables, asks for status, calls DropCaches
//   at dcd: tc       calls everything that a transaction component needs
//           admin    reads counters
// Any peer with a role may ask for health. A reader, client or admin may be limited to tables whose names begin with
// one of some prefixes.
//
// Roles come from the flags --tls_clients=A,B and so on, and from lines of a rights file (--tls_rights):
//   NAME ROLE [TABLE_PREFIX...]     # a comment; # must begin a word
// Both may change while the daemon runs (AccessControl::Replace). New calls, and the next operations of open sessions,
// use the new rights. A transaction component's streams keep the rights that they began with, but dcd closes all
// connections when a right is taken away (daemon.h).
// Thread-safety: values; any thread may use an AccessControl.
#ifndef PROTOCOL_CONNECTIONS_AUTHORIZATION_H_
#define PROTOCOL_CONNECTIONS_AUTHORIZATION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut {

enum class Role : uint8_t { kReader, kClient, kAdmin, kTc };
std::string_view NameOf(Role role);

// The kind of access to a table. kMake: to create or drop it.
enum class TableAccess : uint8_t { kRead, kWrite, kMake };

struct Grant {
  std::string name;
  Role role = Role::kReader;
  std::vector<std::string> prefixes = {};  // of table names; empty: all tables
  friend bool operator==(const Grant& a, const Grant& b) = default;
};

// The rights of one peer.
class Principal {
 public:
  Principal() = default;
  explicit Principal(std::vector<Grant> grants) : grants_(std::move(grants)) {}

  // For messages: the name that has the peer's first role; empty if it has none.
  std::string name() const { return grants_.empty() ? std::string() : grants_.front().name; }
  bool has_any() const { return !grants_.empty(); }
  bool Has(Role role) const;
  bool May(TableAccess access, std::string_view table) const;
  // Whether the peer has this access to every table, present and future.
  bool MayEverywhere(TableAccess access) const;

 private:
  std::vector<Grant> grants_;
};

// One immutable state of the rights.
class Authorizer {
 public:
  // `roles` are the roles of this daemon. INVALID_ARGUMENT, with the line's number, for an invalid line or an unknown
  // role.
  static Result<std::vector<Grant>> ParseRights(const std::string& path, std::string_view text,
                                                const std::vector<Role>& roles);

  explicit Authorizer(std::vector<Grant> grants) : grants_(std::move(grants)) {}

  bool empty() const { return grants_.empty(); }
  // Whether it has each grant of `other`. (A grant that a wider one covers counts as missing.)
  bool Covers(const Authorizer& other) const;
  Principal Find(const std::vector<std::string>& names) const;

  // `path` is the call's path, such as "/deuteronomy.v1.TransactionService/Session". PERMISSION_DENIED, "certificate
  // refused: ...", if no name has a role, or no name has a role that the call accepts. A call that no service has
  // passes this check, and gRPC refuses it.
  Status CheckCall(std::string_view path, const std::vector<std::string>& names) const;

 private:
  std::vector<Grant> grants_;
};

// A peer needs one of the returned roles for a call of this path. Empty: the path is no call of these services.
std::vector<Role> RolesForCall(std::string_view path);

// The rights that are in force now.
class AccessControl {
 public:
  AccessControl(Runtime& runtime, Authorizer first)
      : mutex_(runtime), current_(std::make_shared<const Authorizer>(std::move(first))) {}

  std::shared_ptr<const Authorizer> current() const {
    const MutexLock lock(mutex_);
    return current_;
  }
  // Changes with each Replace. A caller must then find its principal again.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  // How often a Replace has taken a right away.
  uint64_t losses() const { return losses_.load(std::memory_order_acquire); }
  void Replace(Authorizer next) {
    const MutexLock lock(mutex_);
    if (!next.Covers(*current_)) losses_.fetch_add(1, std::memory_order_release);
    current_ = std::make_shared<const Authorizer>(std::move(next));
    generation_.fetch_add(1, std::memory_order_release);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const Authorizer> current_ DEUT_GUARDED_BY(mutex_);
  std::atomic<uint64_t> generation_{1};
  std::atomic<uint64_t> losses_{0};
};

}  // namespace deut

#endif  // PROTOCOL_CONNECTIONS_AUTHORIZATION_H_
