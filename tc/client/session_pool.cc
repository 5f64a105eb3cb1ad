#include "tc/client/session_pool.h"

#include "common/testing/test_points.h"

namespace deut {
namespace {

// A number per thread, so that a thread comes back to the slot it used last.
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

std::unique_ptr<ClientSession> SessionPool::Take() {
  const size_t first = ThreadNumber();
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[(first + i) % slots_.size()];
    // The load spares the exchange (which takes the line away from its thread) where there is nothing to be had.
    if (slot.session.load(std::memory_order_relaxed) == nullptr) continue;
    DEUT_POINT("client.session_pool.take");
    if (ClientSession* session = slot.session.exchange(nullptr, std::memory_order_acquire)) {
      return std::unique_ptr<ClientSession>(session);
    }
  }
  return nullptr;
}

void SessionPool::Return(std::unique_ptr<ClientSession> session) {
  const size_t first = ThreadNumber();
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[(first + i) % slots_.size()];
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
