#include "protocol/connections/connection_table.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <utility>

#include "common/base/check.h"

namespace deut {
namespace {

// The table is almost full when less than this part of it is free.
constexpr size_t kFreePart = 8;
// The most connections that one call looks at.
constexpr size_t kMaxExamined = 64;

// Whether the peer has sent no byte. False also if the system does not know, as for a Unix socket.
bool HasSentNothing(int descriptor) {
  tcp_info about{};
  socklen_t bytes = sizeof(about);
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &about, &bytes) != 0) return false;
  return bytes >= offsetof(tcp_info, tcpi_bytes_received) + sizeof(about.tcpi_bytes_received) &&
         about.tcpi_bytes_received == 0;
}

}  // namespace

ConnectionTable::ConnectionTable(Runtime& runtime, ConnectionLimits limits)
    : runtime_(runtime), limits_(limits), mutex_(runtime) {}

ConnectionTable::Answer ConnectionTable::Admit(const PeerKey& peer) {
  const MutexLock lock(mutex_);
  if (open_ >= limits_.max_connections) return Answer::kTooMany;
  if (peer.counted) {
    size_t& of_peer = peers_[peer].open;
    if (of_peer >= limits_.max_connections_per_peer) return Answer::kTooManyOfPeer;
    ++of_peer;
  }
  ++open_;
  return Answer::kAdmitted;
}

void ConnectionTable::WithdrawLocked(const PeerKey& peer) {
  DEUT_CHECK(open_ > 0);
  --open_;
  if (!peer.counted) return;
  const auto found = peers_.find(peer);
  DEUT_CHECK(found != peers_.end());
  if (--found->second.open == 0) peers_.erase(found);
}

void ConnectionTable::Withdraw(const PeerKey& peer) {
  const MutexLock lock(mutex_);
  WithdrawLocked(peer);
}

int ConnectionTable::Add(const PeerKey& peer, Descriptor watched) {
  const int number = watched.get();
  const MutexLock lock(mutex_);
  const uint64_t unique = ++last_number_;
  if (peer.counted) {
    const UnprovenConnection newest{.watched = number, .number = unique, .since = runtime_.Now()};
    AddUnprovenLocked(&unproven_, newest);
    AddUnprovenLocked(&peers_[peer].unproven, newest);
  }
  connections_[number] = Connection{.peer = peer, .number = unique, .watched = std::move(watched)};
  return number;
}

// Up to two entries leave for each that is added, so the list stays short. Only a silent connection in front stops that, until its handshake times
// out.
void ConnectionTable::AddUnprovenLocked(UnprovenList* list, const UnprovenConnection& newest) {
  for (int i = 0; i < 2 && !list->empty() && list->front().since <= newest.since - kSilentGrace; ++i) {
    if (IsSilentLocked(list->front())) break;
    list->pop_front();
  }
  list->push_back(newest);
}

bool ConnectionTable::IsSilentLocked(const UnprovenConnection& unproven) const {
  const auto found = connections_.find(unproven.watched);
  return found != connections_.end() && found->second.number == unproven.number && HasSentNothing(unproven.watched);
}

bool ConnectionTable::Remove(int watched) {
  Descriptor descriptor;  // closed outside the mutex
  const MutexLock lock(mutex_);
  const auto found = connections_.find(watched);
  if (found == connections_.end()) return false;
  descriptor = std::move(found->second.watched);
  WithdrawLocked(found->second.peer);
  connections_.erase(found);
  return true;
}

size_t ConnectionTable::ShutDownSilent(const PeerKey& arriving) {
  const MutexLock lock(mutex_);
  const auto is_almost_full = [](size_t count, size_t limit) { return count + limit / kFreePart >= limit; };
  if (is_almost_full(open_, limits_.max_connections)) return ShutDownSilentLocked(&unproven_);
  const auto peer = peers_.find(arriving);
  if (peer == peers_.end() || !is_almost_full(peer->second.open, limits_.max_connections_per_peer)) return 0;
  return ShutDownSilentLocked(&peer->second.unproven);
}

size_t ConnectionTable::ShutDownSilentLocked(UnprovenList* list) {
  const MonotonicTime before = runtime_.Now() - kSilentGrace;
  size_t shut_down = 0;
  for (size_t looks = 0; looks < kMaxExamined && shut_down < kMaxShutDownPerCall && !list->empty(); ++looks) {
    const UnprovenConnection& oldest = list->front();
    if (oldest.since > before) break;
    if (IsSilentLocked(oldest)) {
      shutdown(oldest.watched, SHUT_RDWR);
      ++shut_down;
    }
    list->pop_front();
  }
  return shut_down;
}

void ConnectionTable::ShutDownAll() {
  const MutexLock lock(mutex_);
  for (const auto& [watched, connection] : connections_) shutdown(watched, SHUT_RDWR);
}

size_t ConnectionTable::open() const {
  const MutexLock lock(mutex_);
  return open_;
}

}  // namespace deut
