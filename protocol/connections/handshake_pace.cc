#include "protocol/connections/handshake_pace.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace deut {
namespace {

bool PeerHasClosed(const Descriptor& socket) {
  pollfd about{.fd = socket.get(), .events = POLLRDHUP, .revents = 0};
  return poll(&about, 1, 0) == 1;
}

// Whether the whole first TLS record has arrived: one byte of type, two of version, two of length, then that many
// bytes.
bool HasFirstRecord(const Descriptor& socket) {
  unsigned char head[5];
  if (recv(socket.get(), head, sizeof(head), MSG_PEEK | MSG_DONTWAIT) != sizeof(head)) return false;
  int bytes = 0;
  if (ioctl(socket.get(), FIONREAD, &bytes) != 0) return false;
  return static_cast<size_t>(bytes) >= sizeof(head) + (size_t{head[3]} << 8 | head[4]);
}

// Shuts the socket down before it closes it, because the watcher of its duplicate sees only a shutdown.
void EndConnection(Descriptor socket) { shutdown(socket.get(), SHUT_RDWR); }

}  // namespace

std::shared_ptr<HandshakePace> HandshakePace::Create(Runtime& runtime, Duration slot_time_for_peer) {
  return std::shared_ptr<HandshakePace>(new HandshakePace(runtime, slot_time_for_peer));
}

void HandshakePace::Arrive(const PeerKey& peer, int number, Descriptor socket) {
  const MutexLock lock(mutex_);
  const uint64_t ticket = ++last_ticket_;
  const auto [found, is_new] = by_peer_.try_emplace(peer);
  if (is_new) found->second = peers_.insert(peers_.end(), PeerQueue{.peer = peer, .waiting = {}});
  found->second->waiting.emplace(ticket, Waiting{.number = number, .socket = std::move(socket)});
  by_number_[number] = QueuePosition{.peer_queue = found->second, .ticket = ticket};
  changed_.NotifyOne(runtime_);
}

HandshakePace::Waiting HandshakePace::EraseLocked(Peers::iterator peer_queue,
                                                  std::map<uint64_t, Waiting>::iterator at) {
  Waiting taken = std::move(at->second);
  by_number_.erase(taken.number);
  peer_queue->waiting.erase(at);
  if (peer_queue->waiting.empty()) {
    by_peer_.erase(peer_queue->peer);
    peers_.erase(peer_queue);
  }
  return taken;
}

bool HandshakePace::Withdraw(int number) {
  Waiting withdrawn;  // closed outside the mutex
  const MutexLock lock(mutex_);
  const auto found = by_number_.find(number);
  if (found == by_number_.end()) return false;
  const QueuePosition position = found->second;
  withdrawn = EraseLocked(position.peer_queue, position.peer_queue->waiting.find(position.ticket));
  return true;
}

std::pair<uint64_t, HandshakePace::Waiting> HandshakePace::PopLocked() {
  // The address moves to the end before its connection is taken, because that may remove the address.
  peers_.splice(peers_.end(), peers_, peers_.begin());
  const auto peer_queue = std::prev(peers_.end());
  const uint64_t ticket = peer_queue->waiting.begin()->first;
  return {ticket, EraseLocked(peer_queue, peer_queue->waiting.begin())};
}

Deadline HandshakePace::ExpireLocked() {
  const MonotonicTime now = runtime_.Now();
  Deadline first = kNoDeadline;
  std::erase_if(slots_, [&](const auto& slot) { return slot.second <= now; });
  for (const auto& [ticket, until] : slots_) first = std::min(first, until);
  return first;
}

std::optional<HandshakePace::Next> HandshakePace::AwaitNext() {
  const MutexLock lock(mutex_);
  for (;;) {
    if (stopped_) return std::nullopt;
    const Deadline expiry = ExpireLocked();
    if (peers_.empty() || slots_.size() >= kMaxHandshakesInFlight) {
      changed_.WaitUntil(mutex_, peers_.empty() ? kNoDeadline : expiry);
      continue;
    }
    auto [ticket, next] = PopLocked();
    if (PeerHasClosed(next.socket)) {
      // Its client has given up, so a handshake would be wasted.
      EndConnection(std::move(next.socket));
      continue;
    }
    const Duration slot_time = HasFirstRecord(next.socket) ? kSlotTimeWhileServerIsAwaited : slot_time_for_peer_;
    slots_.emplace(ticket, runtime_.Now() + slot_time);
    return Next{.socket = std::move(next.socket), .slot = std::make_shared<Slot>(shared_from_this(), ticket)};
  }
}

void HandshakePace::End(uint64_t ticket) {
  const MutexLock lock(mutex_);
  if (slots_.erase(ticket) != 0 && !peers_.empty()) changed_.NotifyOne(runtime_);
}

void HandshakePace::PeerIsAwaited(uint64_t ticket) {
  const MutexLock lock(mutex_);
  const auto slot = slots_.find(ticket);
  if (slot == slots_.end()) return;
  slot->second = runtime_.Now() + slot_time_for_peer_;
  if (!peers_.empty()) changed_.NotifyOne(runtime_);
}

void HandshakePace::Stop() {
  Peers ended;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    ended.swap(peers_);
    by_peer_.clear();
    by_number_.clear();
    changed_.NotifyAll(runtime_);
  }
  for (PeerQueue& peer_queue : ended) {
    for (auto& [ticket, one] : peer_queue.waiting) EndConnection(std::move(one.socket));
  }
}

size_t HandshakePace::waiting() const {
  const MutexLock lock(mutex_);
  return by_number_.size();
}

}  // namespace deut
