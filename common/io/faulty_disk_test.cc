// The content of a faulty disk after a crash, and the disk's own consistency.
#include "common/io/faulty_disk.h"

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/io/aligned_buffer.h"
#include "common/io/faulty_disk_fixture.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(FaultyDisk, SyncedContentSurvivesEveryCrash) {
  const auto outcomes = OutcomesOf([](FaultyDisk& disk) { PutDurable(disk, Sectors("abcdefgh")); });
  EXPECT_EQ(outcomes, std::set<std::string>{Sectors("abcdefgh")});
}

TEST(FaultyDisk, UnsyncedSectorsAreEachOldOrNew) {
  const auto outcomes = OutcomesOf([](FaultyDisk& disk) {
    PutDurable(disk, Sectors("aa"));
    auto storage = disk.Mount();
    auto file = Open(*storage, "f", kCreate);
    ASSERT_TRUE(Put(*file, 0, Sectors("bb")).ok());
  });
  EXPECT_EQ(outcomes, (std::set<std::string>{Sectors("aa"), Sectors("ab"), Sectors("ba"), Sectors("bb")}));
}

TEST(FaultyDisk, UnsyncedGrowthIsThereWhollyPartlyOrNot) {
  const auto outcomes = OutcomesOf([](FaultyDisk& disk) {
    PutDurable(disk, Sectors("a"));
    auto storage = disk.Mount();
    ASSERT_TRUE(Put(*Open(*storage, "f", kCreate), 512, Sectors("b")).ok());
  });
  EXPECT_TRUE(outcomes.contains(Sectors("a")));
  EXPECT_TRUE(outcomes.contains(Sectors("ab")));
  EXPECT_GT(outcomes.size(), 4u);  // sizes between
  for (const std::string& outcome : outcomes) {
    EXPECT_EQ(outcome.substr(0, 512), Sectors("a"));
    EXPECT_EQ(outcome.find_first_not_of(std::string("b\0", 2), 512), std::string::npos);
  }
}

TEST(FaultyDisk, ACopyIsWhatACrashWouldLeaveAndTheDiskGoesOn) {
  const std::string old = Sectors("ab"), fresh = Sectors("cd");
  std::set<std::string> outcomes;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FaultyDisk disk(RealRuntime(), seed);
    PutDurable(disk, old);
    auto storage = disk.Mount();
    auto file = Open(*storage, "f", {.writable = true});
    ASSERT_TRUE(Put(*file, 0, fresh).ok());
    const std::unique_ptr<FaultyDisk> copy = disk.CopyAfterCrash(seed);
    auto copied = copy->Mount();
    outcomes.insert(Get(*copied, "f"));
    // Neither disk is affected by the other.
    EXPECT_EQ(copy->crashes(), 0U);
    EXPECT_EQ(disk.crashes(), 0U);
    ASSERT_TRUE(Put(*file, 0, Sectors("x")).ok());
    EXPECT_EQ(Get(*storage, "f"), Sectors("xd"));
    EXPECT_NE(Get(*copied, "f").front(), 'x');
    ASSERT_TRUE(Put(*Open(*copied, "f", {.writable = true}), 0, Sectors("yy")).ok());
    EXPECT_EQ(Get(*storage, "f"), Sectors("xd"));
  }
  EXPECT_EQ(outcomes, (std::set<std::string>{old, fresh, Sectors("ad"), Sectors("cb")}));
}

TEST(FaultyDisk, CopiesFromTheMiddleOfChanges) {
  std::set<std::string> inside, between;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    FaultyDisk disk(RealRuntime(), seed);
    PutDurable(disk, Sectors("ab"));
    auto storage = disk.Mount();
    auto file = Open(*storage, "f", {.writable = true, .sync_writes = true});
    std::vector<std::unique_ptr<FaultyDisk>> copies;
    const uint64_t before = disk.counts().changing;
    disk.WatchChanges([&](const FaultyDisk::Copier& copy) { copies.push_back(copy(seed)); });
    ASSERT_TRUE(Put(*file, 0, Sectors("cd")).ok());
    ASSERT_TRUE(storage->Remove("f").ok());
    disk.WatchChanges({});
    ASSERT_TRUE(storage->SyncDirectory("").ok());
    EXPECT_EQ(disk.counts().changing, before + 3);
    ASSERT_EQ(copies.size(), 2U);
    inside.insert(Get(*copies[0]->Mount(), "f"));
    between.insert(Get(*copies[1]->Mount(), "f"));
  }
  EXPECT_EQ(inside, (std::set<std::string>{Sectors("ab"), Sectors("cd"), Sectors("ad"), Sectors("cb")}));
  EXPECT_EQ(between, std::set<std::string>{Sectors("cd")});
}

TEST(FaultyDisk, UnsyncedTruncationMayNotHaveHappened) {
  const auto outcomes = OutcomesOf([](FaultyDisk& disk) {
    PutDurable(disk, Sectors("ab"));
    auto storage = disk.Mount();
    ASSERT_TRUE(Open(*storage, "f", kCreate)->Truncate(512).ok());
  });
  EXPECT_TRUE(outcomes.contains(Sectors("ab")));
  EXPECT_TRUE(outcomes.contains(Sectors("a")));
  const auto synced = OutcomesOf([](FaultyDisk& disk) {
    PutDurable(disk, Sectors("ab"));
    auto storage = disk.Mount();
    auto file = Open(*storage, "f", kCreate);
    ASSERT_TRUE(file->Truncate(512).ok());
    ASSERT_TRUE(file->Sync().ok());
  });
  EXPECT_EQ(synced, std::set<std::string>{Sectors("a")});
}

TEST(FaultyDisk, SynchronousWritesCoverThemselvesAndTheSize) {
  const auto outcomes = OutcomesOf([](FaultyDisk& disk) {
    PutDurable(disk, Sectors("a"));
    auto storage = disk.Mount();
    ASSERT_TRUE(Put(*Open(*storage, "f", kCreateSynchronous), 512, Sectors("bc")).ok());
  });
  EXPECT_EQ(outcomes, std::set<std::string>{Sectors("abc")});
}

TEST(FaultyDisk, ASyncOfOneFileCoversNoOther) {
  const auto outcomes = OutcomesOf([](FaultyDisk& disk) {
    PutDurable(disk, Sectors("a"));
    auto storage = disk.Mount();
    ASSERT_TRUE(Put(*Open(*storage, "f", kCreate), 0, Sectors("b")).ok());
    ASSERT_TRUE(Open(*storage, "other", kCreate)->Sync().ok());
  });
  EXPECT_EQ(outcomes, (std::set<std::string>{Sectors("a"), Sectors("b")}));
}

// Submits requests to a queue, in order; reaps them all if `reap`.
void Submit(IoQueue& queue, std::vector<IoRequest>& requests, bool reap) {
  for (IoRequest& request : requests) ASSERT_TRUE(queue.Submit(&request).ok());
  std::vector<IoRequest*> completed;
  while (reap && queue.in_flight() > 0) queue.Reap(&completed, kNoDeadline);
}

TEST(FaultyDisk, AWriteCountsOnceItsCompletionIsReaped) {
  for (const bool reap : {false, true}) {
    std::string data = Sectors("b");
    const auto outcomes = OutcomesOf([&](FaultyDisk& disk) {
      PutDurable(disk, Sectors("a"));
      auto storage = disk.Mount();
      auto file = Open(*storage, "f", kCreateSynchronous);
      std::vector<IoRequest> requests = {
          {.kind = IoRequest::Kind::kWrite, .file = file.get(), .offset = 0, .data = data.data(), .bytes = 512}};
      auto queue = std::move(storage->NewQueue(4)).value();
      Submit(*queue, requests, reap);
    });
    EXPECT_EQ(outcomes.contains(Sectors("a")), !reap);
    EXPECT_TRUE(outcomes.contains(Sectors("b")));
  }
}

TEST(FaultyDisk, ASyncCoversWhatWasReapedBeforeItWasSubmitted) {
  std::string b = Sectors("b"), c = Sectors("c");
  // A sync does not cover a write that was in flight when it began, nor one that began later.
  for (const bool before : {true, false}) {
    const auto outcomes = OutcomesOf([&](FaultyDisk& disk) {
      PutDurable(disk, Sectors("aa"));
      auto storage = disk.Mount();
      auto file = Open(*storage, "f", kCreate);
      ASSERT_TRUE(Put(*file, 512, b).ok());
      auto queue = std::move(storage->NewQueue(4)).value();
      const IoRequest write{
          .kind = IoRequest::Kind::kWrite, .file = file.get(), .offset = 0, .data = b.data(), .bytes = 512};
      const IoRequest sync{.kind = IoRequest::Kind::kSync, .file = file.get()};
      std::vector<IoRequest> requests = before ? std::vector{write, sync} : std::vector{sync, write};
      Submit(*queue, requests, /*reap=*/true);
    });
    EXPECT_EQ(outcomes, (std::set<std::string>{Sectors("ab"), Sectors("bb")})) << before;
  }
  // A later write of the same sector does not uncover the covered content: a crash never brings back the 'a' before
  // it.
  const auto outcomes = OutcomesOf([&](FaultyDisk& disk) {
    PutDurable(disk, Sectors("a"));
    auto storage = disk.Mount();
    auto file = Open(*storage, "f", kCreate);
    ASSERT_TRUE(Put(*file, 0, b).ok());
    auto queue = std::move(storage->NewQueue(4)).value();
    std::vector<IoRequest> requests = {
        {.kind = IoRequest::Kind::kSync, .file = file.get()},
        {.kind = IoRequest::Kind::kWrite, .file = file.get(), .offset = 0, .data = c.data(), .bytes = 512}};
    Submit(*queue, requests, /*reap=*/true);
  });
  EXPECT_EQ(outcomes, (std::set<std::string>{Sectors("b"), Sectors("c")}));
}

TEST(FaultyDisk, NamesNeedASyncOfTheirDirectory) {
  for (const bool sync : {false, true}) {
    const auto outcomes = OutcomesOf([&](FaultyDisk& disk) {
      auto storage = disk.Mount();
      ASSERT_TRUE(Put(*Open(*storage, "f", kCreateSynchronous), 0, "new").ok());
      if (sync) ASSERT_TRUE(storage->SyncDirectory("/").ok());
    });
    EXPECT_TRUE(outcomes.contains("new"));
    EXPECT_EQ(outcomes.contains("(absent)"), !sync);
    EXPECT_EQ(outcomes.size(), sync ? 1u : 2u);
  }
}

TEST(FaultyDisk, ARenameHappensOrDoesNot) {
  for (const bool sync : {false, true}) {
    const auto outcomes = OutcomesOf([&](FaultyDisk& disk) {
      PutDurable(disk, "old");
      auto storage = disk.Mount();
      ASSERT_TRUE(Put(*Open(*storage, "t", kCreateSynchronous), 0, "new").ok());
      ASSERT_TRUE(storage->Rename("t", "f").ok());
      if (sync) ASSERT_TRUE(storage->SyncDirectory("").ok());
    });
    EXPECT_EQ(outcomes, sync ? std::set<std::string>{"new"} : (std::set<std::string>{"old", "new"}));
  }
}

TEST(FaultyDisk, ADurableFileIsNotLostByUnsyncedRenames) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FaultyDisk disk(RealRuntime(), seed);
    PutDurable(disk, "precious");
    auto storage = disk.Mount();
    ASSERT_TRUE(storage->Rename("f", "g").ok());
    ASSERT_TRUE(Put(*Open(*storage, "f", kCreateSynchronous), 0, "other").ok());
    disk.Crash(seed);
    storage = disk.Mount();
    EXPECT_TRUE(Get(*storage, "f") == "precious" || Get(*storage, "g") == "precious") << seed;
  }
}

TEST(FaultyDisk, AnUnsyncedRemoveMayComeBack) {
  const auto outcomes = OutcomesOf([](FaultyDisk& disk) {
    PutDurable(disk, "x");
    auto storage = disk.Mount();
    ASSERT_TRUE(storage->Remove("f").ok());
  });
  EXPECT_EQ(outcomes, (std::set<std::string>{"x", "(absent)"}));
}

TEST(FaultyDisk, DirectoriesAndAllocationsAreDurableAtOnce) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FaultyDisk disk(RealRuntime(), seed);
    auto storage = disk.Mount();
    ASSERT_TRUE(storage->CreateDirectory("/data/log").ok());
    auto file = Open(*storage, "/data/log/1", kCreate);
    ASSERT_TRUE(file->Allocate(100000).ok());
    ASSERT_TRUE(storage->SyncDirectory("/data/log").ok());
    disk.Crash(seed);
    storage = disk.Mount();
    EXPECT_EQ(Get(*storage, "/data/log/1"), std::string(100000, '\0'));
  }
}

TEST(FaultyDisk, ACrashEndsEveryHandle) {
  FaultyDisk disk(RealRuntime(), 1);
  auto storage = disk.Mount();
  auto file = Open(*storage, "f", kCreate);
  auto lock = std::move(storage->Lock("LOCK")).value();
  auto queue = std::move(storage->NewQueue(2)).value();
  char byte = 'x';
  IoRequest request{.kind = IoRequest::Kind::kWrite, .file = file.get(), .offset = 0, .data = &byte, .bytes = 1};
  ASSERT_TRUE(queue->Submit(&request).ok());
  disk.Crash(1);
  std::vector<IoRequest*> completed;
  while (queue->in_flight() > 0) queue->Reap(&completed, kNoDeadline);
  EXPECT_EQ(request.status, ErrorCode::kIoError);
  EXPECT_EQ(file->Write(0, &byte, 1), ErrorCode::kIoError);
  EXPECT_EQ(file->Sync(), ErrorCode::kIoError);
  EXPECT_EQ(file->Size().status(), ErrorCode::kIoError);
  EXPECT_EQ(file->Allocate(10), ErrorCode::kIoError);
  EXPECT_EQ(storage->Open("g", kCreate).status(), ErrorCode::kIoError);
  EXPECT_EQ(storage->List("").status(), ErrorCode::kIoError);
  EXPECT_EQ(storage->Lock("LOCK").status(), ErrorCode::kIoError);
  EXPECT_EQ(disk.crashes(), 1u);

  auto next = disk.Mount();
  auto held = next->Lock("LOCK");
  EXPECT_TRUE(held.ok());
  lock.reset();  // the end of the old holder does not release the new holder's lock
  EXPECT_EQ(next->Lock("LOCK").status(), ErrorCode::kUnavailable);
}

// A small log: blocks of one sector, each with its number, acknowledged when durable. After a crash at any of its
// operations every acknowledged block must be there.
struct LogRun {
  uint64_t acknowledged = 0;
  Status status;
};

LogRun AppendBlocks(Storage& storage, uint64_t blocks) {
  LogRun run;
  run.status = [&]() -> Status {
    DEUT_RETURN_IF_ERROR(storage.CreateDirectory("log"));
    DEUT_ASSIGN_OR_RETURN(auto file, storage.Open("log/tmp", kCreateSynchronous));
    DEUT_RETURN_IF_ERROR(file->Allocate(blocks * 512));
    DEUT_RETURN_IF_ERROR(storage.Rename("log/tmp", "log/1"));
    DEUT_RETURN_IF_ERROR(storage.SyncDirectory("log"));
    for (uint64_t number = 1; number <= blocks; ++number) {
      DEUT_RETURN_IF_ERROR(Put(*file, (number - 1) * 512, std::string(512, static_cast<char>(number))));
      run.acknowledged = number;
    }
    return Status::Ok();
  }();
  return run;
}

bool AcknowledgedAreThere(Storage& storage, uint64_t acknowledged) {
  const std::string content = Get(storage, "log/1");
  if (acknowledged > 0 && content == "(absent)") return false;
  for (uint64_t number = 1; number <= acknowledged; ++number) {
    if (content.size() < number * 512) return false;
    if (content.substr((number - 1) * 512, 512) != std::string(512, static_cast<char>(number))) return false;
  }
  return true;
}

TEST(FaultyDisk, CrashAfterStrikesAtEveryOperationAndTheOracleNeedsTheSyncs) {
  constexpr uint64_t kBlocks = 10;
  uint64_t operations;
  {
    FaultyDisk disk(RealRuntime(), 1);
    auto storage = disk.Mount();
    ASSERT_TRUE(AppendBlocks(*storage, kBlocks).status.ok());
    operations = disk.counts().changing;
    EXPECT_EQ(operations, 5 + kBlocks);
  }
  for (const bool ignore_sync : {false, true}) {
    int lost = 0;
    std::set<uint64_t> acknowledged;
    for (uint64_t seed = 0; seed < 10; ++seed) {
      for (uint64_t at = 1; at <= operations; ++at) {
        FaultyDisk disk(RealRuntime(), seed * 1000 + at);
        disk.SetIgnoreSync(ignore_sync);
        disk.CrashAfter(at);
        auto storage = disk.Mount();
        const LogRun run = AppendBlocks(*storage, kBlocks);
        EXPECT_EQ(run.status, ErrorCode::kIoError);
        EXPECT_EQ(disk.crashes(), 1u);
        acknowledged.insert(run.acknowledged);
        storage = disk.Mount();
        lost += !AcknowledgedAreThere(*storage, run.acknowledged);
      }
    }
    EXPECT_EQ(acknowledged.size(), kBlocks);
    if (ignore_sync) {
      EXPECT_GT(lost, 20);
    } else {
      EXPECT_EQ(lost, 0);
    }
  }
}

TEST(FaultyDisk, TheSameSeedGivesTheSameDisk) {
  const auto run = [](uint64_t seed) {
    FaultyDisk disk(RealRuntime(), seed);
    auto storage = disk.Mount();
    Random random(seed);
    for (int i = 0; i < 50; ++i) {
      auto file = Open(*storage, "f" + std::to_string(random.Below(5)), kCreate);
      EXPECT_TRUE(
          Put(*file, random.Below(20000), std::string(random.Below(5000), static_cast<char>('a' + i % 26))).ok());
      if (random.OneIn(5)) EXPECT_TRUE(file->Sync().ok());
      if (random.OneIn(9)) EXPECT_TRUE(storage->SyncDirectory("").ok());
    }
    disk.Crash(seed);
    storage = disk.Mount();
    std::string all;
    for (int i = 0; i < 5; ++i) all += Get(*storage, "f" + std::to_string(i)) + "|";
    return all;
  };
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5), run(6));
}

TEST(FaultyDisk, SurvivesItsThreads) {
  // Many threads write while the disk crashes again and again: every operation ends with OK or an error.
  Runtime& runtime = RealRuntime();
  FaultyDisk disk(runtime, 3);
  std::vector<std::unique_ptr<Thread>> threads;
  std::atomic<bool> stop{false};
  for (int t = 0; t < 3; ++t) {
    threads.push_back(runtime.StartThread("writer", [&disk, &stop, t] {
      AlignedBuffer buffer(kIoAlignment);
      while (!stop.load()) {
        auto storage = disk.Mount();
        auto file = storage->Open("f" + std::to_string(t), {.create = true, .writable = true, .direct = true});
        auto queue = storage->NewQueue(4);
        if (!file.ok() || !queue.ok()) continue;
        IoRequest requests[4];
        for (auto& request : requests) {
          request = {.kind = IoRequest::Kind::kWrite,
                     .file = file->get(),
                     .offset = 0,
                     .data = buffer.data(),
                     .bytes = buffer.size()};
          EXPECT_TRUE((*queue)->Submit(&request).ok());
        }
        std::vector<IoRequest*> completed;
        while ((*queue)->in_flight() > 0) (*queue)->Reap(&completed, kNoDeadline);
        EXPECT_EQ(completed.size(), 4u);
        RealRuntime().Yield();  // the disk's mutex is not fair
      }
    }));
  }
  for (uint64_t seed = 0; seed < 30; ++seed) {
    disk.Crash(seed);
    runtime.Yield();
  }
  stop = true;
  for (auto& thread : threads) thread->Join();
  EXPECT_EQ(disk.crashes(), 30u);
}

}  // namespace
}  // namespace deut
