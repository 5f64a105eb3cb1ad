#include "protocol/prefetch.h"

#include <utility>

#include "common/base/check.h"

namespace deut {
namespace {

// The begun transactions for which there is room from the first one on. Few messages bring more.
constexpr size_t kExpectedBegun = 32;

}  // namespace

PrefetchNotes::PrefetchNotes(std::unique_ptr<TransactionSession> session)
    : session_(std::move(session)), steps_(session_ == nullptr ? nullptr : session_->prefetch_steps()) {}

bool PrefetchNotes::Note(absl::Span<const Operation> operations) {
  return steps_ != nullptr && steps_->NotePrefetch(PrefetchSteps::Token(), operations);
}

bool PrefetchNotes::Begin(const TransactionOptions& options, absl::Span<const Operation> operations, size_t tag) {
  if (steps_ == nullptr) return false;
  std::unique_ptr<BegunOneShot> begun = steps_->BeginForPrefetch(PrefetchSteps::Token(), options, operations);
  if (begun == nullptr) return false;
  if (begun_.empty()) begun_.reserve(kExpectedBegun);
  begun_.push_back({.tag = tag, .transaction = std::move(begun)});
  return true;
}

PendingPrefetch PrefetchNotes::Start() && {
  const bool sent = steps_ != nullptr && steps_->StartPrefetch(PrefetchSteps::Token());
  if (!sent) begun_.clear();
  return {std::move(begun_), std::move(session_), sent};
}

PendingPrefetch::PendingPrefetch(std::vector<EndedPrefetch::Begun> begun, std::unique_ptr<TransactionSession> session,
                                 bool sent)
    : begun_(std::move(begun)), session_(std::move(session)), sent_(sent) {}

EndedPrefetch PendingPrefetch::Await(Deadline deadline) && {
  DEUT_DCHECK(!sent_ || session_ != nullptr);  // neither moved from nor awaited
  const bool all = !sent_ || session_->prefetch_steps()->AwaitPrefetch(PrefetchSteps::Token(), deadline);
  return {.session = std::move(session_), .all_answered = all, .begun = std::move(begun_)};
}

}  // namespace deut
