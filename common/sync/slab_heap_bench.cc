// The time of an allocation and a free, beside the program's heap: a block at a time, and blocks that live for a while.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/sync/slab_heap.h"

namespace deut {
namespace {

// Shared by the threads of one benchmark.
SlabHeap& Heap() {
  static SlabHeap* const heap = SlabHeap::Create({}).release();
  return *heap;
}

struct OfSlabs {
  static void* Allocate(size_t bytes) { return Heap().Allocate(bytes, &cache); }
  static void Free(void* block) { Heap().Free(block, &cache); }
  static inline constinit thread_local SlabHeap::Cache cache = {};
};

struct OfHeap {
  static void* Allocate(size_t bytes) { return ::operator new(bytes); }
  static void Free(void* block) { ::operator delete(block); }
};

template <typename From>
void OneAtATime(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    void* const block = From::Allocate(bytes);
    benchmark::DoNotOptimize(block);
    From::Free(block);
  }
}

// Each round replaces one of 4,096 blocks by one of another size, between `bytes` and twice that.
template <typename From>
void Replacing(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  std::vector<void*> blocks(4096);
  uint64_t seed = 88172645463325252u + static_cast<uint64_t>(state.thread_index());
  const auto next = [&seed] {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
  };
  for (void*& block : blocks) block = From::Allocate(bytes + next() % bytes);
  for (auto _ : state) {
    void*& block = blocks[next() % blocks.size()];
    From::Free(block);
    block = From::Allocate(bytes + next() % bytes);
    *static_cast<uint64_t*>(block) = seed;
  }
  for (void* const block : blocks) From::Free(block);
}

BENCHMARK(OneAtATime<OfSlabs>)->Arg(200)->Arg(1500)->Arg(20'000)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(OneAtATime<OfHeap>)->Arg(200)->Arg(1500)->Arg(20'000)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(Replacing<OfSlabs>)->Arg(200)->Arg(1000)->Arg(16'000)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(Replacing<OfHeap>)->Arg(200)->Arg(1000)->Arg(16'000)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
}  // namespace deut
