#include "common/sync/reclamation.h"

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

using Guard = ReclamationDomain::Guard;

std::unique_ptr<Thread> Start(std::function<void()> body) { return RealRuntime().StartThread("test", std::move(body)); }

void Await(Event& event) { ASSERT_TRUE(event.Wait(RealRuntime(), RealRuntime().Now() + seconds(60))); }

// Counts the living objects of its kind.
struct Counted {
  explicit Counted(std::atomic<int>* count) : alive(count) { alive->fetch_add(1); }
  ~Counted() { alive->fetch_sub(1); }
  std::atomic<int>* alive;
};

void RetireOne(ReclamationDomain& domain, std::atomic<int>* alive) {
  Guard guard(domain);
  domain.RetireObject(new Counted(alive));
}

TEST(Reclamation, FreesOnceNoGuardIsHeld) {
  std::atomic<int> alive{0};
  ReclamationDomain domain;
  RetireOne(domain, &alive);
  EXPECT_EQ(alive.load(), 1);
  EXPECT_EQ(domain.pending_bytes(), sizeof(Counted));
  domain.Collect();
  EXPECT_EQ(alive.load(), 0);
  EXPECT_EQ(domain.pending_bytes(), 0u);
}

TEST(Reclamation, KeepsWhatAnOlderGuardMaySee) {
  std::atomic<int> alive{0};
  ReclamationDomain domain;
  Event inside, leave;
  auto reader = Start([&] {
    Guard guard(domain);
    inside.Signal(RealRuntime());
    Await(leave);
  });
  Await(inside);
  for (int i = 0; i < 1000; ++i) RetireOne(domain, &alive);
  domain.Collect();
  EXPECT_EQ(alive.load(), 1000);
  EXPECT_EQ(domain.pending_bytes(), 1000 * sizeof(Counted));
  leave.Signal(RealRuntime());
  reader->Join();
  domain.Collect();
  EXPECT_EQ(alive.load(), 0);
}

TEST(Reclamation, AGuardEnteredAfterTheRetirementHoldsNothingBack) {
  std::atomic<int> alive{0};
  ReclamationDomain domain;
  RetireOne(domain, &alive);
  domain.Collect();  // seals, and so raises the epoch
  RetireOne(domain, &alive);
  {
    Guard late(domain);
    EXPECT_EQ(alive.load(), 1);
  }
  Event inside, leave;
  for (int i = 0; i < 200; ++i) RetireOne(domain, &alive);
  domain.Collect();
  auto reader = Start([&] {
    Guard guard(domain);
    inside.Signal(RealRuntime());
    Await(leave);
  });
  Await(inside);
  domain.Collect();
  EXPECT_EQ(alive.load(), 0);
  leave.Signal(RealRuntime());
  reader->Join();
}

TEST(Reclamation, GuardsNest) {
  std::atomic<int> alive{0};
  ReclamationDomain domain;
  EXPECT_FALSE(domain.guard_held());
  {
    Guard outer(domain);
    {
      Guard inner(domain);
      domain.RetireObject(new Counted(&alive));
    }
    EXPECT_TRUE(domain.guard_held());
    domain.Collect();
    EXPECT_EQ(alive.load(), 1);  // the outer guard still protects it
  }
  EXPECT_FALSE(domain.guard_held());
  domain.Collect();
  EXPECT_EQ(alive.load(), 0);
}

TEST(Reclamation, ManyRetirementsInOneGuardAreFreedAfterIt) {
  std::atomic<int> alive{0};
  ReclamationDomain domain;
  {
    Guard guard(domain);
    for (int i = 0; i < 10000; ++i) domain.RetireObject(new Counted(&alive));
    EXPECT_EQ(alive.load(), 10000);
  }
  EXPECT_LT(alive.load(), static_cast<int>(ReclamationDomain::kBatchObjects));
}

TEST(Reclamation, GarbageOfASteadyLoadIsBounded) {
  ReclamationDomain domain;
  size_t largest = 0;
  for (int i = 0; i < 20000; ++i) {
    Guard guard(domain);
    domain.RetireObject(new std::array<char, 256>);
    largest = std::max(largest, domain.pending_bytes());
  }
  EXPECT_LE(largest, 4 * ReclamationDomain::kBatchObjects * 256);
  // Large objects fill a batch by bytes.
  largest = 0;
  for (int i = 0; i < 200; ++i) {
    Guard guard(domain);
    domain.RetireObject(new std::array<char, 32 << 10>);
    largest = std::max(largest, domain.pending_bytes());
  }
  EXPECT_LE(largest, 4 * ReclamationDomain::kBatchBytes);
}

TEST(Reclamation, CollectReachesIdleThreadsAndEndedThreads) {
  std::atomic<int> alive{0};
  ReclamationDomain domain;
  Event retired, end;
  auto idle = Start([&] {
    RetireOne(domain, &alive);
    retired.Signal(RealRuntime());
    Await(end);
    RetireOne(domain, &alive);  // a collector took its garbage, so it starts new garbage
  });
  Await(retired);
  Start([&] { RetireOne(domain, &alive); })->Join();
  EXPECT_EQ(alive.load(), 2);
  domain.Collect();
  EXPECT_EQ(alive.load(), 0);
  end.Signal(RealRuntime());
  idle->Join();
  EXPECT_EQ(alive.load(), 1);
  domain.Collect();
  EXPECT_EQ(alive.load(), 0);
}

TEST(Reclamation, GarbageOfEndedThreadsIsFreedByWorkingOnes) {
  std::atomic<int> alive{0}, other{0};
  ReclamationDomain domain;
  Start([&] {
    for (int i = 0; i < 10; ++i) RetireOne(domain, &alive);
  })->Join();
  EXPECT_EQ(alive.load(), 10);
  for (int i = 0; i < 100 * static_cast<int>(ReclamationDomain::kBatchObjects); ++i) RetireOne(domain, &other);
  EXPECT_EQ(alive.load(), 0);
}

TEST(Reclamation, TheDomainMayEndBeforeItsThreadsAndFreesAll) {
  std::atomic<int> alive{0};
  auto domain = std::make_unique<ReclamationDomain>();
  Event retired, end;
  auto thread = Start([&] {
    for (int i = 0; i < 100; ++i) RetireOne(*domain, &alive);
    retired.Signal(RealRuntime());
    Await(end);
    // A new domain, perhaps at the same address, is not mistaken for the old one.
    ReclamationDomain next;
    RetireOne(next, &alive);
    next.Collect();
  });
  Await(retired);
  domain.reset();
  EXPECT_EQ(alive.load(), 0);
  end.Signal(RealRuntime());
  thread->Join();
  EXPECT_EQ(alive.load(), 0);
}

TEST(Reclamation, TheDomainMayEndAfterItsThreads) {
  std::atomic<int> alive{0};
  {
    ReclamationDomain domain;
    for (int i = 0; i < 8; ++i) Start([&] { RetireOne(domain, &alive); })->Join();
    EXPECT_EQ(alive.load(), 8);
  }
  EXPECT_EQ(alive.load(), 0);
}

TEST(Reclamation, DomainsAreIndependent) {
  std::atomic<int> alive{0};
  constexpr size_t kDomains = 40;  // more than a thread's cache holds
  std::vector<std::unique_ptr<ReclamationDomain>> domains;
  for (size_t i = 0; i < kDomains; ++i) domains.push_back(std::make_unique<ReclamationDomain>());
  for (int round = 0; round < 3; ++round) {
    for (auto& domain : domains) RetireOne(*domain, &alive);
  }
  EXPECT_EQ(alive.load(), static_cast<int>(3 * kDomains));
  domains[0]->Collect();
  Guard elsewhere(*domains[0]);
  RetireOne(*domains[0], &alive);
  for (auto& domain : domains) domain->Collect();
  EXPECT_EQ(alive.load(), 1);
  EXPECT_TRUE(domains[0]->guard_held());
  EXPECT_FALSE(domains[1]->guard_held());
  while (domains.size() > 1) domains.pop_back();
  EXPECT_EQ(alive.load(), 1);
}

struct Node {
  ReclamationDomain* domain;
  Node* child;
  std::atomic<int>* alive;
};

void FreeNodeAndRetireChild(void* object) {
  Node* node = static_cast<Node*>(object);
  if (node->child != nullptr) {
    Guard guard(*node->domain);
    node->domain->Retire(node->child, FreeNodeAndRetireChild, ReclamationDomain::kBatchBytes);
  }
  node->alive->fetch_sub(1);
  delete node;
}

TEST(Reclamation, DeletersMayRetireMore) {
  std::atomic<int> alive{0};
  for (const bool by_destructor : {false, true}) {
    ReclamationDomain domain;
    Node* root = nullptr;
    for (int i = 0; i < 50; ++i) {
      root = new Node{&domain, root, &alive};
      alive.fetch_add(1);
    }
    {
      Guard guard(domain);
      domain.Retire(root, FreeNodeAndRetireChild, ReclamationDomain::kBatchBytes);
    }
    if (by_destructor) continue;
    for (int i = 0; i < 60 && alive.load() != 0; ++i) domain.Collect();
    EXPECT_EQ(alive.load(), 0);
  }
  EXPECT_EQ(alive.load(), 0);
}

TEST(ReclamationDeathTest, RetiringWithoutAGuardEndsTheProcess) {
  ReclamationDomain domain;
  std::atomic<int> alive{0};
  EXPECT_DEATH(domain.RetireObject(new Counted(&alive)), "depth != 0");
}

// Cells that writers replace and readers look into. A freed object reads as dead (and ASan reports it).
struct Cell {
  static constexpr uint64_t kAlive = 0xA11CEull;
  explicit Cell(uint64_t n) : number(n) {}
  uint64_t magic = kAlive;
  uint64_t number;
};

void KillCell(void* object) {
  Cell* cell = static_cast<Cell*>(object);
  cell->magic = 0;
  delete cell;
}

class Cells {
 public:
  explicit Cells(ReclamationDomain& domain) : domain_(domain) {
    for (auto& cell : cells_) cell.store(new Cell(0));
  }
  ~Cells() {
    for (auto& cell : cells_) KillCell(cell.load());
  }

  // One operation on cell `index`: look, or replace and retire.
  void Operate(uint64_t index, bool replace) {
    Guard guard(domain_);
    std::atomic<Cell*>& cell = cells_[index % cells_.size()];
    Cell* seen = cell.load(std::memory_order_acquire);
    ASSERT_EQ(seen->magic, Cell::kAlive);
    if (!replace) return;
    auto* next = new Cell(seen->number + 1);
    if (cell.compare_exchange_strong(seen, next, std::memory_order_acq_rel)) {
      domain_.Retire(seen, KillCell, sizeof(Cell));
    } else {
      ASSERT_EQ(seen->magic, Cell::kAlive);
      delete next;
    }
  }

 private:
  ReclamationDomain& domain_;
  std::array<std::atomic<Cell*>, 4> cells_;
};

TEST(ReclamationStress, NothingIsFreedWhileSeen) {
  ReclamationDomain domain;
  {
    Cells cells(domain);
    std::vector<std::unique_ptr<Thread>> threads;
    for (uint64_t t = 0; t < 6; ++t) {
      threads.push_back(Start([&cells, &domain, t] {
        for (uint64_t i = 0; i < 60000; ++i) {
          cells.Operate(i * (t + 1), /*replace=*/t % 2 == 0 || i % 8 == 0);
          if (t == 5 && i % 1000 == 0) domain.Collect();
        }
      }));
    }
    for (auto& thread : threads) thread->Join();
  }
  domain.Collect();
  EXPECT_EQ(domain.pending_bytes(), 0u);
}

TEST(ReclamationStress, ThreadsComeAndGo) {
  ReclamationDomain domain;
  {
    Cells cells(domain);
    std::vector<std::unique_ptr<Thread>> threads;
    for (uint64_t t = 0; t < 3; ++t) {
      threads.push_back(Start([&cells, t] {
        for (uint64_t life = 0; life < 150; ++life) {
          Start([&] {
            for (uint64_t i = 0; i < 100; ++i) cells.Operate(i + t, /*replace=*/true);
          })->Join();
        }
      }));
    }
    threads.push_back(Start([&domain] {
      for (int i = 0; i < 500; ++i) domain.Collect();
    }));
    for (auto& thread : threads) thread->Join();
  }
  domain.Collect();
  EXPECT_EQ(domain.pending_bytes(), 0u);
}

TEST(ReclamationProgress, AThreadStoppedInsideAGuardBlocksNobody) {
  ReclamationDomain domain;
  Event inside, leave;
  auto stopped = Start([&] {
    Guard guard(domain);
    inside.Signal(RealRuntime());
    Await(leave);
  });
  Await(inside);
  {
    Cells cells(domain);
    std::vector<std::unique_ptr<Thread>> threads;
    for (uint64_t t = 0; t < 2; ++t) {
      threads.push_back(Start([&cells, &domain] {
        for (uint64_t i = 0; i < 100000; ++i) cells.Operate(0, /*replace=*/true);
        domain.Collect();
      }));
    }
    for (auto& thread : threads) thread->Join();
  }
  EXPECT_GT(domain.pending_bytes(), 50000 * sizeof(Cell));
  leave.Signal(RealRuntime());
  stopped->Join();
  domain.Collect();
  EXPECT_EQ(domain.pending_bytes(), 0u);
}

#ifdef DEUT_TEST_POINTS

TEST(ReclamationProgress, AThreadStoppedAtAnyPointBlocksNobody) {
  for (const std::string point :
       {"reclamation.enter.before_store", "reclamation.enter.before_second_look", "reclamation.retire.garbage_out",
        "reclamation.before_seal", "reclamation.sweep.taken", "reclamation.leftovers.before_cas",
        "reclamation.register.before_cas"}) {
    SCOPED_TRACE(point);
    ReclamationDomain domain;
    Event at_point, resume;
    std::atomic<bool> armed{true};
    static thread_local bool is_victim = false;
    testing::SetPointHandler([&](std::string_view name) {
      if (name != point || !is_victim || !armed.exchange(false)) return;
      at_point.Signal(RealRuntime());
      Await(resume);
    });
    {
      Cells cells(domain);
      auto victim = Start([&] {
        is_victim = true;
        for (uint64_t i = 0; armed.load(); ++i) {
          cells.Operate(0, /*replace=*/true);
          if (i % 16 == 0) {
            Guard guard(domain);  // so that something is left over
            domain.Collect();
          }
        }
      });
      Await(at_point);
      std::vector<std::unique_ptr<Thread>> threads;
      for (uint64_t t = 0; t < 2; ++t) {
        threads.push_back(Start([&] {
          for (uint64_t i = 0; i < 100000; ++i) cells.Operate(0, /*replace=*/true);
          domain.Collect();
        }));
      }
      for (auto& thread : threads) thread->Join();
      resume.Signal(RealRuntime());
      victim->Join();
    }
    testing::SetPointHandler({});
    domain.Collect();
    EXPECT_EQ(domain.pending_bytes(), 0u);
  }
}

TEST(ReclamationProgress, EveryCompareAndSwapMayFailOnce) {
  for (const std::string cas : {"reclamation.acquire.cas", "reclamation.register.cas", "reclamation.leftovers.cas"}) {
    SCOPED_TRACE(cas);
    std::atomic<int> alive{0}, failures{0};
    ReclamationDomain domain;
    testing::SetCasHandler([&](std::string_view name) { return name == cas && failures.fetch_add(1) == 0; });
    for (int i = 0; i < 3; ++i) {
      Start([&] {
        RetireOne(domain, &alive);
        Guard guard(domain);
        domain.RetireObject(new Counted(&alive));
        domain.Collect();
      })->Join();
    }
    testing::SetCasHandler({});
    EXPECT_GT(failures.load(), 0);
    domain.Collect();
    EXPECT_EQ(alive.load(), 0);
  }
}

// The race of Enter against Free, step by step. The reader has loaded the epoch but not stored it yet while other
// threads retire, seal and free. Every object that the reader finds afterwards is alive.
TEST(ReclamationRace, AReaderThatEntersWithAnOldEpoch) {
  for (const std::string point : {"reclamation.enter.before_store", "reclamation.enter.before_second_look"}) {
    SCOPED_TRACE(point);
    ReclamationDomain domain;
    Cells cells(domain);
    Event at_point, resume;
    static thread_local bool is_reader = false;
    std::atomic<bool> armed{true};
    testing::SetPointHandler([&](std::string_view name) {
      if (!is_reader || name != point || !armed.exchange(false)) return;
      at_point.Signal(RealRuntime());
      Await(resume);
    });
    auto reader = Start([&] {
      is_reader = true;
      cells.Operate(0, /*replace=*/false);
    });
    Await(at_point);
    for (int i = 0; i < 1000; ++i) cells.Operate(0, /*replace=*/true);
    domain.Collect();
    resume.Signal(RealRuntime());
    reader->Join();
    testing::SetPointHandler({});
  }
}

#endif  // DEUT_TEST_POINTS

}  // namespace
}  // namespace deut
