#include "common/io/faulty_disk.h"

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/io/aligned_buffer.h"
#include "common/io/disk_fault.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

using Action = DiskFault::Action;

constexpr OpenOptions kRead{};
constexpr OpenOptions kCreate{.create = true, .writable = true};
constexpr OpenOptions kCreateSynchronous{.create = true, .writable = true, .sync_writes = true};
constexpr uint64_t kSeeds = 120;

std::unique_ptr<File> Open(Storage& storage, const std::string& path, const OpenOptions& options) {
  auto file = storage.Open(path, options);
  EXPECT_TRUE(file.ok()) << file.status().ToString();
  return file.ok() ? std::move(file).value() : nullptr;
}

Status Put(File& file, uint64_t offset, const std::string& content) {
  return file.Write(offset, content.data(), content.size());
}

// "(absent)" if there is no such file.
std::string Get(Storage& storage, const std::string& path) {
  auto file = storage.Open(path, kRead);
  if (!file.ok()) return "(absent)";
  std::string content(*(*file)->Size(), '?');
  EXPECT_EQ(*(*file)->Read(0, content.data(), content.size()), content.size());
  return content;
}

// A file "f" whose name and `content` are durable.
void PutDurable(FaultyDisk& disk, const std::string& content) {
  auto storage = disk.Mount();
  auto file = Open(*storage, "f", kCreate);
  ASSERT_TRUE(Put(*file, 0, content).ok());
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(storage->SyncDirectory("").ok());
}

// What "f" holds after a crash, for many seeds.
template <typename Scenario>
std::set<std::string> OutcomesOf(const Scenario& scenario) {
  std::set<std::string> outcomes;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FaultyDisk disk(RealRuntime(), seed);
    scenario(disk);
    disk.Crash(seed);
    auto storage = disk.Mount();
    outcomes.insert(Get(*storage, "f"));
  }
  return outcomes;
}

std::string Sectors(const std::string& letters) {
  std::string content;
  for (const char letter : letters) content += std::string(512, letter);
  return content;
}

TEST(FaultyDisk, WhatIsSyncedIsThereAfterEveryCrash) {
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
    // Neither knows of the other.
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

// Submits requests to a queue, in order; reaps all when `reap`.
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
  // A write in flight when the sync begins is not covered, nor one that begins later.
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
  // What was covered is not lost again by a later write of the same sector: never the 'a' before it.
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
  lock.reset();  // the old holder's end does not release the new one's lock
  EXPECT_EQ(next->Lock("LOCK").status(), ErrorCode::kUnavailable);
}

// A small log: blocks of one sector, each with its number, acknowledged when durable. After a crash at any of its operations,
// every acknowledged block must be there.
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

TEST(FaultyDisk, AFailedSyncIsNotMadeGoodByTheNext) {
  const auto outcomes = OutcomesOf([](FaultyDisk& disk) {
    PutDurable(disk, Sectors("aa"));
    auto storage = disk.Mount();
    auto file = Open(*storage, "f", kCreate);
    ASSERT_TRUE(Put(*file, 0, Sectors("bb")).ok());
    const int fault = disk.AddFault({.kinds = kDiskSync, .count = 1});
    ASSERT_EQ(file->Sync(), ErrorCode::kIoError);
    EXPECT_EQ(disk.hits(fault), 1u);
    ASSERT_TRUE(Put(*file, 512, Sectors("c")).ok());  // written again: this one can be covered
    ASSERT_TRUE(file->Sync().ok());
  });
  EXPECT_EQ(outcomes, (std::set<std::string>{Sectors("ac"), Sectors("bc")}));
}

TEST(FaultyDisk, AFailedWriteLeavesAnyPart) {
  const auto outcomes = OutcomesOf([](FaultyDisk& disk) {
    PutDurable(disk, Sectors("aa"));
    auto storage = disk.Mount();
    auto file = Open(*storage, "f", kCreate);
    disk.AddFault({.kinds = kDiskWrite, .count = 1});
    ASSERT_EQ(Put(*file, 0, Sectors("bb")), ErrorCode::kIoError);
    ASSERT_TRUE(file->Sync().ok());
  });
  EXPECT_EQ(outcomes, (std::set<std::string>{Sectors("aa"), Sectors("ab"), Sectors("ba"), Sectors("bb")}));
}

TEST(FaultyDisk, FaultsStrikeWhatTheyMatch) {
  FaultyDisk disk(RealRuntime(), 1);
  auto storage = disk.Mount();
  auto log = Open(*storage, "log-1", kCreate), other = Open(*storage, "other", kCreate);
  const std::string data(1000, 'd');

  const int third = disk.AddFault({.kinds = kDiskWrite, .path_contains = "log", .skip = 2, .count = 1});
  EXPECT_TRUE(Put(*log, 0, data).ok());
  EXPECT_TRUE(Put(*other, 0, data).ok());
  EXPECT_TRUE(Put(*log, 0, data).ok());
  EXPECT_EQ(Put(*log, 0, data), ErrorCode::kIoError);
  EXPECT_TRUE(Put(*log, 0, data).ok());
  EXPECT_EQ(disk.hits(third), 1u);

  const int range = disk.AddFault({.kinds = kDiskRead, .offset_from = 100, .offset_to = 200});
  char bytes[300];
  EXPECT_TRUE(log->Read(0, bytes, 100).ok());
  EXPECT_TRUE(log->Read(200, bytes, 100).ok());
  EXPECT_EQ(log->Read(50, bytes, 51).status(), ErrorCode::kIoError);
  disk.RemoveFault(range);
  EXPECT_TRUE(log->Read(50, bytes, 51).ok());
  EXPECT_EQ(disk.hits(range), 1u);

  disk.AddFault({.predicate = [](const DiskOperation& operation) { return operation.bytes == 7; }});
  EXPECT_EQ(log->Read(0, bytes, 7).status(), ErrorCode::kIoError);
  EXPECT_TRUE(log->Read(0, bytes, 8).ok());

  disk.AddFault({.kinds = kDiskName, .path_contains = "log"});
  EXPECT_EQ(storage->Rename("log-1", "log-2"), ErrorCode::kIoError);
  EXPECT_EQ(storage->Open("log-3", kCreate).status(), ErrorCode::kIoError);
  EXPECT_TRUE(storage->Open("log-1", kRead).ok());
  EXPECT_TRUE(storage->Open("new", kCreate).ok());
  disk.AddFault({.kinds = kDiskSyncDirectory});
  EXPECT_EQ(storage->SyncDirectory(""), ErrorCode::kIoError);
  disk.AddFault({.action = Action::kNoSpace, .kinds = kDiskAllocate});
  EXPECT_EQ(log->Allocate(5000), ErrorCode::kResourceExhausted);
  EXPECT_EQ(*log->Size(), 1000u);
  disk.RemoveAllFaults();
  EXPECT_TRUE(storage->Rename("log-1", "log-2").ok());
}

TEST(FaultyDisk, ShortTransfersAndFlippedBits) {
  FaultyDisk disk(RealRuntime(), 1);
  auto storage = disk.Mount();
  auto file = Open(*storage, "f", kCreate);
  const std::string data(2048, 'd');
  disk.AddFault({.action = Action::kShort, .count = 2});
  EXPECT_EQ(Put(*file, 0, data), ErrorCode::kIoError);
  EXPECT_EQ(*file->Size(), 1024u);
  char bytes[1024];
  EXPECT_EQ(*file->Read(0, bytes, 1024), 512u);

  const auto flipped_bits = [&](const char* read) {
    int bits = 0;
    for (int i = 0; i < 1024; ++i) bits += __builtin_popcount(static_cast<uint8_t>(read[i] ^ 'd'));
    return bits;
  };
  disk.AddFault({.action = Action::kFlipBit, .kinds = kDiskRead, .count = 1});
  ASSERT_EQ(*file->Read(0, bytes, 1024), 1024u);
  EXPECT_EQ(flipped_bits(bytes), 1);
  ASSERT_EQ(*file->Read(0, bytes, 1024), 1024u);
  EXPECT_EQ(flipped_bits(bytes), 0);
  disk.AddFault({.action = Action::kFlipBit, .kinds = kDiskWrite, .count = 1});
  ASSERT_TRUE(Put(*file, 0, data).ok());
  ASSERT_TRUE(Put(*file, 1024, data).ok());
  std::string all = Get(*storage, "f");
  EXPECT_EQ(flipped_bits(all.data()) + flipped_bits(all.data() + 1024), 1);

  ASSERT_TRUE(Put(*file, 0, data).ok());
  ASSERT_TRUE(disk.FlipBit("f", 700, 3).ok());
  all = Get(*storage, "f");
  EXPECT_EQ(all[700], 'd' ^ 8);
  EXPECT_EQ(disk.FlipBit("f", all.size(), 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(disk.FlipBit("g", 0, 0), ErrorCode::kNotFound);
}

TEST(FaultyDisk, AFlippedBitSurvivesACrash) {
  const auto outcomes = OutcomesOf([](FaultyDisk& disk) {
    PutDurable(disk, Sectors("a"));
    auto storage = disk.Mount();
    ASSERT_TRUE(Put(*Open(*storage, "f", kCreate), 0, Sectors("b")).ok());
    ASSERT_TRUE(disk.FlipBit("f", 0, 2).ok());
  });
  std::string a = Sectors("a"), b = Sectors("b");
  a[0] = 'a' ^ 4;
  b[0] = 'b' ^ 4;
  EXPECT_EQ(outcomes, (std::set<std::string>{a, b}));
}

TEST(FaultyDisk, AFullDiskRefusesGrowthOnlyAndRecovers) {
  constexpr uint64_t kBlock = 4096;
  FaultyDisk disk(RealRuntime(), 1);
  disk.SetFreeBytes(10 * kBlock);
  auto storage = disk.Mount();
  auto big = Open(*storage, "big", kCreate), small = Open(*storage, "small", kCreate);
  ASSERT_TRUE(big->Allocate(9 * kBlock).ok());
  ASSERT_TRUE(Put(*small, 0, "x").ok());
  EXPECT_EQ(*storage->FreeBytes(""), 0u);
  const Status full = Put(*small, 0, std::string(4097, 'x'));
  EXPECT_EQ(full, ErrorCode::kResourceExhausted);
  EXPECT_NE(full.message().find("0 bytes free"), std::string_view::npos) << full.ToString();
  EXPECT_EQ(small->Allocate(5000), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(Put(*big, 0, std::string(9 * kBlock, 'y')).ok());  // inside what was allocated
  EXPECT_TRUE(Put(*small, 4095, "z").ok());
  ASSERT_TRUE(storage->Remove("big").ok());
  EXPECT_EQ(*storage->FreeBytes(""), 9 * kBlock);
  EXPECT_TRUE(Put(*small, 0, std::string(4097, 'x')).ok());
  ASSERT_TRUE(small->Truncate(0).ok());
  EXPECT_EQ(*storage->FreeBytes(""), 10 * kBlock);
}

TEST(FaultyDisk, HeldCompletionsComeWhenReleased) {
  Runtime& runtime = RealRuntime();
  FaultyDisk disk(runtime, 1);
  auto storage = disk.Mount();
  auto file = Open(*storage, "f", kCreate);
  auto queue = std::move(storage->NewQueue(2)).value();
  char byte = 'x';
  IoRequest request{.kind = IoRequest::Kind::kWrite, .file = file.get(), .offset = 0, .data = &byte, .bytes = 1};
  disk.HoldCompletions(true);
  ASSERT_TRUE(queue->Submit(&request).ok());
  std::vector<IoRequest*> completed;
  const Deadline deadline = runtime.Now() + milliseconds(3);
  queue->Reap(&completed, deadline);
  EXPECT_GE(runtime.Now(), deadline);
  EXPECT_TRUE(completed.empty());
  auto waker = runtime.StartThread("waker", [&] { queue->Wake(); });
  queue->Reap(&completed, kNoDeadline);
  waker->Join();
  EXPECT_TRUE(completed.empty());
  auto releaser = runtime.StartThread("releaser", [&] { disk.HoldCompletions(false); });
  queue->Reap(&completed, kNoDeadline);
  releaser->Join();
  EXPECT_EQ(completed.size(), 1u);

  disk.HoldCompletions(true);
  ASSERT_TRUE(queue->Submit(&request).ok());
  auto crasher = runtime.StartThread("crasher", [&] { disk.Crash(1); });
  queue->Reap(&completed, kNoDeadline);
  crasher->Join();
  EXPECT_EQ(completed.size(), 2u);
  EXPECT_EQ(request.status, ErrorCode::kIoError);
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
  // Writers on many threads while the disk crashes again and again: every operation ends with OK or an error.
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
