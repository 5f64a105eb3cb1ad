#include "tc/client/session_pool.h"

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut {
namespace {

// A number per thread, so that a thread returns to the slot that it used last.
size_t ThreadNumber() {
  static std::atomic<size_t> next{0};
  thread_local const size_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace

SessionPool::SessionPool(uint32_t capacity) : slots_(capacity) {}

SessionPool::~SessionPool() {
  for (Slot& slot : slots_) delete slot.session.load(std::memory_order_acquire);
}

size_t SessionPool::FirstSlot() const {
  const size_t number = ThreadNumber();
  return number < slots_.size() || slots_.empty() ? number : number % slots_.size();
}

std::unique_ptr<ClientSession> SessionPool::Take() {
  size_t at = FirstSlot();
  for (size_t i = 0; i < slots_.size(); ++i, at = at + 1 == slots_.size() ? 0 : at + 1) {
    Slot& slot = slots_[at];
    // Where there is nothing to take, the load avoids the exchange, which would take the cache line away from its
    // thread.
    if (slot.session.load(std::memory_order_relaxed) == nullptr) continue;
    DEUT_POINT("client.session_pool.take");
    if (ClientSession* session = slot.session.exchange(nullptr, std::memory_order_acquire)) {
      DEUT_DCHECK(session->calls != nullptr);
      return std::unique_ptr<ClientSession>(session);
    }
  }
  return nullptr;
}

void SessionPool::Return(std::unique_ptr<ClientSession> session) {
  DEUT_DCHECK(session->calls != nullptr);
  size_t at = FirstSlot();
  for (size_t i = 0; i < slots_.size(); ++i, at = at + 1 == slots_.size() ? 0 : at + 1) {
    Slot& slot = slots_[at];
    ClientSession* empty = nullptr;
    if (slot.session.load(std::memory_order_relaxed) != nullptr) continue;
    DEUT_POINT("client.session_pool.return");
    if (DEUT_CAS_FAILS("client.session_pool.return") ||
        !slot.session.compare_exchange_strong(empty, session.get(), std::memory_order_release,
                                              std::memory_order_relaxed)) {
      continue;
    }
    (void)session.release();  // NOLINT(bugprone-unused-return-value): the slot owns it now
    return;
  }
}

}  // namespace deut
