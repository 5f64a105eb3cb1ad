#include "protocol/stream_quota.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "grpcpp/security/auth_context.h"

namespace deut {
namespace {

std::string By(const std::string& flag) { return Concat(" (", flag, ")"); }

}  // namespace

StreamQuota::StreamQuota(Runtime& runtime, Options options)
    : options_(std::move(options)), runtime_(runtime), mutex_(runtime) {}

StreamQuota::Place::~Place() {
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
  // With the port of the connection.
  return context.peer();
}

Status StreamQuota::Enter(const grpc::ServerContextBase& context, Place* place) {
  return Enter(PeerOf(context), place);
}

Status StreamQuota::Enter(std::string peer, Place* place) {
  DEUT_CHECK(place->quota_ == nullptr);
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
  if (const size_t share = ShareLocked(); of_peer->open >= share) {
    return DEUT_ERROR(kResourceExhausted, of_peer->open, " ", options_.what, " of ", peer, " are open, and ", open_,
                      " of all peers; while only ", options_.in_all - open_, " of ", options_.in_all, " are free",
                      By(options_.in_all_flag), ", one peer may have ", share, "; close some, or try again later");
  }
  ++of_peer->open;
  ++open_;
  place->quota_ = this;
  place->peer_ = of_peer.get();
  return Status::Ok();
}

size_t StreamQuota::ShareLocked() const {
  const size_t free = options_.in_all - open_;
  if (free <= options_.in_all / kKeptPart) return kFew;
  return std::max(kFew, kShareOfFree * free);
}

void StreamQuota::Leave(Peer* peer) {
  MutexLock lock(mutex_);
  --open_;
  if (--peer->open == 0) DEUT_CHECK(peers_.erase(std::string(peer->name)) == 1);
}

bool StreamQuota::Place::TryBeginWork() {
  MutexLock lock(peer_->mutex);
  if (peer_->working >= quota_->options_.work_per_peer) return false;
  ++peer_->working;
  return true;
}

bool StreamQuota::Place::BeginWork(std::function<void()> resume) {
  MutexLock lock(peer_->mutex);
  if (peer_->working >= quota_->options_.work_per_peer) {
    peer_->waiting.push_back(std::move(resume));
    return false;
  }
  ++peer_->working;
  return true;
}

// The place for work passes to the one that has waited longest.
void StreamQuota::Place::EndWork() {
  std::function<void()> resume;
  {
    MutexLock lock(peer_->mutex);
    if (peer_->waiting.empty()) {
      --peer_->working;
      return;
    }
    resume = std::move(peer_->waiting.front());
    peer_->waiting.pop_front();
  }
  resume();
}

size_t StreamQuota::open() {
  MutexLock lock(mutex_);
  return open_;
}

}  // namespace deut
