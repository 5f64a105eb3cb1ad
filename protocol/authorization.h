// Authorization: which calls and tables the names of a peer's certificate give a right to.
//
// A role is what a peer is to this daemon. A name may have several; its rights are those of all of them. Names are the URIs and DNS names of the
// certificate, or its common name if it has no alternative name (PeerNames of rpc_server.h), compared byte by byte.
//   at tcd: reader   reads and scans tables
//           client   reads and writes tables
//           admin    makes and drops tables, status, DropCaches
//   at dcd: tc       everything that a transaction component calls
//           admin    counters
// Everybody with a role may ask for health. A reader, client or admin may be limited to tables whose names begin with one of some prefixes.
//
// Where roles come from: the flags --tls_clients=A,B and so on, and lines of a rights file (--tls_rights):
//   NAME ROLE [TABLE_PREFIX...]     # a comment, which begins with a word
// Both may change while the daemon runs (AccessControl::Replace): what begins afterwards goes by the new ones, and so do the next operations of open
// sessions. Streams of a transaction component go by those of their begin; dcd closes all connections when a right is taken away (daemon.h).
// Thread-safety: values; AccessControl from any thread.
#ifndef PROTOCOL_AUTHORIZATION_H_
#define PROTOCOL_AUTHORIZATION_H_

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

// What is done with a table.
enum class TableAccess : uint8_t { kRead, kWrite, kMake };

struct Grant {
  std::string name;
  Role role = Role::kReader;
  std::vector<std::string> prefixes = {};  // of table names; none: all tables
  friend bool operator==(const Grant& a, const Grant& b) = default;
};

// The rights of one peer.
class Principal {
 public:
  Principal() = default;
  explicit Principal(std::vector<Grant> grants) : grants_(std::move(grants)) {}

  // For messages: the name that has the first of its roles; empty: it has none.
  std::string name() const { return grants_.empty() ? std::string() : grants_.front().name; }
  bool has_any() const { return !grants_.empty(); }
  bool Has(Role role) const;
  bool May(TableAccess access, std::string_view table) const;
  // May for every table there is, and will be.
  bool MayEverywhere(TableAccess access) const;

 private:
  std::vector<Grant> grants_;
};

// One state of the rights; constant.
class Authorizer {
 public:
  // `roles` are those of this daemon. INVALID_ARGUMENT for a line or a role that is none, with its number.
  static Result<std::vector<Grant>> ParseRights(const std::string& path, std::string_view text,
                                                const std::vector<Role>& roles);

  explicit Authorizer(std::vector<Grant> grants) : grants_(std::move(grants)) {}

  bool empty() const { return grants_.empty(); }
  // Has each grant of the other. (A grant that a wider one covers counts as missing.)
  bool GivesAllOf(const Authorizer& other) const;
  Principal Find(const std::vector<std::string>& names) const;

  // `path` is that of the call, "/deut.wire.TransactionService/Session". PERMISSION_DENIED, "certificate refused: ..." if no name has a role, or none
  // has one that the call takes. Calls that no service has are let through: gRPC says so.
  Status CheckCall(std::string_view path, const std::vector<std::string>& names) const;

 private:
  std::vector<Grant> grants_;
};

// The roles of which a peer needs one for a call of this path; empty: not a call of these services.
std::vector<Role> RolesForCall(std::string_view path);

// The rights that hold now.
class AccessControl {
 public:
  AccessControl(Runtime& runtime, Authorizer first)
      : mutex_(runtime), current_(std::make_shared<const Authorizer>(std::move(first))) {}

  std::shared_ptr<const Authorizer> current() const {
    const MutexLock lock(mutex_);
    return current_;
  }
  // Changes with each Replace; a principal found before it is to be found again.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  // How often a Replace has taken a right away.
  uint64_t losses() const { return losses_.load(std::memory_order_acquire); }
  void Replace(Authorizer next) {
    const MutexLock lock(mutex_);
    if (!next.GivesAllOf(*current_)) losses_.fetch_add(1, std::memory_order_release);
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

#endif  // PROTOCOL_AUTHORIZATION_H_
