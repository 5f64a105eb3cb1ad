#include "protocol/connections/stream_quota.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "grpcpp/security/auth_context.h"
#include "protocol/connections/peer_key.h"

namespace deut {
namespace {

// The reserved part, if it is large enough, has room for at least this many peers with few requests at work.
constexpr size_t kMinPeersInReserve = 8;

std::string By(const std::string& flag) { return Concat(" (", flag, ")"); }

}  // namespace

StreamQuota::StreamQuota(Runtime& runtime, Options options)
    : options_(std::move(options)), runtime_(runtime), mutex_(runtime) {}

StreamQuota::Slot::~Slot() {
  if (quota_ != nullptr) quota_->Leave(peer_);
}

std::string StreamQuota::PeerOf(const grpc::ServerContextBase& context) {
  const auto authenticated = context.auth_context();
  if (authenticated != nullptr) {
    for (const char* property : {"x509_subject_alternative_name", "x509_common_name"}) {
      const std::vector<grpc::string_ref> names = authenticated->FindPropertyValues(property);
      if (!names.empty()) return Concat("certificate ", std::string(names.front().data(), names.front().size()));
    }
  }
  return PeerKey::OfRpc(context.peer()).ToString();
}

Status StreamQuota::Enter(const grpc::ServerContextBase& context, Slot* slot) { return Enter(PeerOf(context), slot); }

Status StreamQuota::Enter(const std::string& peer, Slot* slot) {
  DEUT_CHECK(slot->quota_ == nullptr);
  MutexLock lock(mutex_);
  if (open_ >= options_.in_all) {
    return DEUT_ERROR(kResourceExhausted, open_, " ", options_.what, " of all peers are open, the most there may be",
                      By(options_.in_all_flag), "; close some, or try again later");
  }
  std::unique_ptr<Peer>& of_peer = peers_[peer];
  if (of_peer == nullptr) of_peer = std::make_unique<Peer>(runtime_, peer);
  if (of_peer->open >= options_.per_peer) {
    return DEUT_ERROR(kResourceExhausted, of_peer->open, " ", options_.what, " of ", peer,
                      " are open, the most that one peer may have", By(options_.per_peer_flag),
                      "; close some, or try again later");
  }
  const size_t share = ShareOf(options_.in_all, open_, options_.in_all / kReservedDivisor, kGuaranteedPerPeer);
  if (of_peer->open >= share) {
    return DEUT_ERROR(kResourceExhausted, of_peer->open, " ", options_.what, " of ", peer, " are open, and ", open_,
                      " of all peers; while only ", options_.in_all - open_, " of ", options_.in_all, " are free",
                      By(options_.in_all_flag), ", one peer may have ", share, "; close some, or try again later");
  }
  ++of_peer->open;
  ++open_;
  slot->quota_ = this;
  slot->peer_ = of_peer.get();
  return Status::Ok();
}

size_t StreamQuota::ShareOf(size_t in_all, size_t taken, size_t reserved, size_t guaranteed) {
  const size_t free = in_all > taken ? in_all - taken : 0;
  if (free <= reserved) return guaranteed;
  return std::max(guaranteed, std::min(free, SIZE_MAX / kShareOfFree) * kShareOfFree);
}

size_t StreamQuota::WorkShare(size_t working) const {
  // A server may have as few as a dozen threads. Even then the last ones are shared by several peers.
  const size_t reserved = std::max<size_t>(1, options_.work_in_all / kReservedDivisor);
  const size_t guaranteed = std::clamp<size_t>(reserved / kMinPeersInReserve, 1, kGuaranteedPerPeer);
  return std::min(options_.work_per_peer, ShareOf(options_.work_in_all, working, reserved, guaranteed));
}

void StreamQuota::Leave(Peer* peer) {
  MutexLock lock(mutex_);
  --open_;
  if (--peer->open == 0) DEUT_CHECK(peers_.erase(std::string(peer->name)) == 1);
}

bool StreamQuota::Slot::TryBeginWorkLocked() {
  size_t working = quota_->working_.load(std::memory_order_relaxed);
  do {
    if (peer_->working >= quota_->WorkShare(working)) return false;
  } while (!quota_->working_.compare_exchange_weak(working, working + 1, std::memory_order_relaxed));
  ++peer_->working;
  return true;
}

bool StreamQuota::Slot::TryBeginWork() {
  MutexLock lock(peer_->mutex);
  return TryBeginWorkLocked();
}

bool StreamQuota::Slot::BeginWork(std::function<void()> resume) {
  MutexLock lock(peer_->mutex);
  if (TryBeginWorkLocked()) return true;
  peer_->waiting.push_back(std::move(resume));
  return false;
}

// Resumes the requests that have waited longest first.
void StreamQuota::Slot::EndWork() {
  std::array<std::function<void()>, kMaxResumedPerEnd> resumed;
  size_t count = 0;
  {
    MutexLock lock(peer_->mutex);
    --peer_->working;
    quota_->working_.fetch_sub(1, std::memory_order_relaxed);
    while (count < kMaxResumedPerEnd && !peer_->waiting.empty() && TryBeginWorkLocked()) {
      resumed[count++] = std::move(peer_->waiting.front());
      peer_->waiting.pop_front();
    }
  }
  for (size_t i = 0; i < count; ++i) resumed[i]();
}

size_t StreamQuota::open() {
  MutexLock lock(mutex_);
  return open_;
}

}  // namespace deut
