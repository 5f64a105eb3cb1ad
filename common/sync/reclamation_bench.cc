#include "benchmark/benchmark.h"
#include "common/sync/reclamation.h"

namespace deut {
namespace {

// Shared by the threads of one benchmark.
ReclamationDomain& Domain() {
  static auto* domain = new ReclamationDomain;
  return *domain;
}

void Guarding(benchmark::State& state) {
  for (auto _ : state) {
    ReclamationDomain::Guard guard(Domain());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(Guarding)->Threads(1)->Threads(2)->UseRealTime();

void RetiringWithoutDeletion(benchmark::State& state) {
  int object = 0;
  for (auto _ : state) {
    ReclamationDomain::Guard guard(Domain());
    Domain().Retire(&object, [](void*) {}, sizeof(object));
  }
}
BENCHMARK(RetiringWithoutDeletion)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
}  // namespace deut
