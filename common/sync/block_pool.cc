#include "common/sync/block_pool.h"

#include <atomic>
#include <new>
#include <utility>

#include "common/sync/magazine_stack.h"

namespace deut {
namespace {

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
constexpr bool kEnabled = false;
#else
constexpr bool kEnabled = true;
#endif

constexpr size_t kClasses = BlockPool::kMaxBytes / BlockPool::kClassBytes;

constexpr size_t ClassOf(size_t bytes) { return bytes == 0 ? 0 : (bytes - 1) / BlockPool::kClassBytes; }
constexpr size_t BlockBytes(size_t size_class) { return (size_class + 1) * BlockPool::kClassBytes; }

struct alignas(128) Depot {
  MagazineStack full;
  std::atomic<size_t> full_count{0};
  alignas(64) MagazineStack empty;
};
constinit Depot depots[kClasses];

// The magazines of one thread for one class. Blocks come from and go to `loaded`. `other` is full or empty, or is the
// magazine that was loaded before.
struct Local {
  Magazine* loaded;
  Magazine* other;
};
constinit thread_local Local locals[kClasses] = {};
constinit thread_local bool ended = false;

void GiveBackBlocks(Magazine* magazine, size_t size_class) {
  while (!magazine->empty()) ::operator delete(magazine->blocks[--magazine->count], BlockBytes(size_class));
}

// Takes a magazine that holds blocks. True: the depot has kept it, and it no longer belongs to the caller. False: the
// depot is full, so the blocks went back to the heap and the caller keeps the empty magazine.
bool Store(Magazine* magazine, size_t size_class) {
  Depot& depot = depots[size_class];
  constexpr size_t kMaxDepotBlockBytes = BlockPool::kDepotBytes / Magazine::kBlocks;
  if (depot.full_count.load(std::memory_order_relaxed) * BlockBytes(size_class) >= kMaxDepotBlockBytes) {
    GiveBackBlocks(magazine, size_class);
    return false;
  }
  depot.full_count.fetch_add(1, std::memory_order_relaxed);
  depot.full.Push(magazine);
  return true;
}

// When its thread ends, the destructor moves the thread's magazines to the depots.
struct ThreadExitHook {
  ~ThreadExitHook() {
    ended = true;
    for (size_t c = 0; c < kClasses; ++c) {
      for (Magazine* const magazine : {locals[c].loaded, locals[c].other}) {
        if (magazine == nullptr) continue;
        if (magazine->empty() || !Store(magazine, c)) depots[c].empty.Push(magazine);
      }
      locals[c] = {};
    }
  }
  // The first call constructs this thread-local object, so that its destructor runs at the end of the calling thread.
  void Arm() {}
};
thread_local ThreadExitHook thread_exit_hook;

__attribute__((noinline)) void* AllocateSlowly(size_t size_class) {
  Local& local = locals[size_class];
  if (local.other != nullptr && !local.other->empty()) {
    std::swap(local.loaded, local.other);
  } else if (Magazine* const full = ended ? nullptr : depots[size_class].full.Pop(); full != nullptr) {
    thread_exit_hook.Arm();
    depots[size_class].full_count.fetch_sub(1, std::memory_order_relaxed);
    if (local.other != nullptr) depots[size_class].empty.Push(local.other);
    local.other = std::exchange(local.loaded, full);
  } else {
    return ::operator new(BlockBytes(size_class));
  }
  return local.loaded->blocks[--local.loaded->count];
}

__attribute__((noinline)) void FreeSlowly(void* block, size_t size_class) {
  if (ended) return ::operator delete(block, BlockBytes(size_class));
  thread_exit_hook.Arm();
  Local& local = locals[size_class];
  if (local.other == nullptr || local.other->full()) {
    Magazine* empty = nullptr;
    if (local.other != nullptr && !Store(local.other, size_class)) empty = local.other;
    if (empty == nullptr) empty = depots[size_class].empty.Pop();
    if (empty == nullptr) empty = new Magazine;
    local.other = std::exchange(local.loaded, empty);
  } else {
    std::swap(local.loaded, local.other);
  }
  local.loaded->blocks[local.loaded->count++] = block;
}

}  // namespace

bool BlockPool::enabled() { return kEnabled; }

void* BlockPool::Allocate(size_t bytes) {
  if (!kEnabled || bytes > kMaxBytes) return ::operator new(bytes);
  const size_t size_class = ClassOf(bytes);
  Magazine* const loaded = locals[size_class].loaded;
  if (loaded == nullptr || loaded->empty()) [[unlikely]]
    return AllocateSlowly(size_class);
  void* const block = loaded->blocks[--loaded->count];
  // The thread that freed the next block touched it last, so its cache line is probably not here.
  if (!loaded->empty()) __builtin_prefetch(loaded->blocks[loaded->count - 1], 1);
  return block;
}

void BlockPool::Free(void* block, size_t bytes) {
  if (!kEnabled || bytes > kMaxBytes) return ::operator delete(block, bytes);
  const size_t size_class = ClassOf(bytes);
  Magazine* const loaded = locals[size_class].loaded;
  if (loaded == nullptr || loaded->full()) [[unlikely]]
    return FreeSlowly(block, size_class);
  loaded->blocks[loaded->count++] = block;
}

size_t BlockPool::DepotMagazines(size_t bytes) {
  return depots[ClassOf(bytes)].full_count.load(std::memory_order_relaxed);
}

size_t BlockPool::DepotBytes() {
  size_t bytes = 0;
  for (size_t c = 0; c < kClasses; ++c)
    bytes += depots[c].full_count.load(std::memory_order_relaxed) * Magazine::kBlocks * BlockBytes(c);
  return bytes;
}

}  // namespace deut
