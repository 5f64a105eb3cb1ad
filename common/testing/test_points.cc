#include "common/testing/test_points.h"

#include <atomic>
#include <cstdlib>

namespace deut::testing {

bool Omitted(std::string_view name) {
  static const char* const omitted = std::getenv("DEUT_OMIT");
  return omitted != nullptr && name == omitted;
}

#ifdef DEUT_TEST_POINTS
namespace {

// Handlers are never freed, because a thread may be inside one while the next is set. The chain from the newest keeps
// them reachable, so that a leak checker reports no leak.
template <typename Signature>
struct Handler {
  std::function<Signature> function;
  const Handler* older;
};

std::atomic<const Handler<void(std::string_view)>*> point_handler{nullptr};
std::atomic<const Handler<bool(std::string_view)>*> cas_handler{nullptr};

template <typename Signature>
void Replace(std::atomic<const Handler<Signature>*>* current, std::function<Signature> function) {
  auto* handler = new Handler<Signature>{std::move(function), current->load(std::memory_order_acquire)};
  while (!current->compare_exchange_weak(handler->older, handler, std::memory_order_acq_rel)) {
  }
}

}  // namespace

void PassPoint(const char* name) {
  const auto* handler = point_handler.load(std::memory_order_acquire);
  if (handler != nullptr && handler->function) handler->function(name);
}

bool CasFails(const char* name) {
  const auto* handler = cas_handler.load(std::memory_order_acquire);
  return handler != nullptr && handler->function && handler->function(name);
}

void SetPointHandler(std::function<void(std::string_view)> handler) { Replace(&point_handler, std::move(handler)); }

void SetCasHandler(std::function<bool(std::string_view)> handler) { Replace(&cas_handler, std::move(handler)); }
#endif

}  // namespace deut::testing
