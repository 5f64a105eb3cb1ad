// Faults on demand: failed, short and flipped transfers, a full disk, a device that hangs.
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/io/faulty_disk_fixture.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

using Action = DiskFault::Action;

TEST(FaultyDiskFaults, AFailedSyncIsNotMadeGoodByTheNext) {
  const auto outcomes = OutcomesOf([](FaultyDisk& disk) {
    PutDurable(disk, Sectors("aa"));
    auto storage = disk.Mount();
    auto file = Open(*storage, "f", kCreate);
    ASSERT_TRUE(Put(*file, 0, Sectors("bb")).ok());
    const int fault = disk.AddFault({.kinds = kDiskSync, .count = 1});
    ASSERT_EQ(file->Sync(), ErrorCode::kIoError);
    EXPECT_EQ(disk.hits(fault), 1u);
    ASSERT_TRUE(Put(*file, 512, Sectors("c")).ok());  // the sectors are written again, so they can be covered
    ASSERT_TRUE(file->Sync().ok());
  });
  EXPECT_EQ(outcomes, (std::set<std::string>{Sectors("ac"), Sectors("bc")}));
}

TEST(FaultyDiskFaults, AFailedWriteLeavesAnyPart) {
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

TEST(FaultyDiskFaults, FaultsHitMatchingOperations) {
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
  disk.RemoveAllFaults();
  disk.AddFault({.action = Action::kNoSpace, .kinds = kDiskSync | kDiskSyncDirectory});
  EXPECT_EQ(storage->SyncDirectory(""), ErrorCode::kIoError);
  EXPECT_EQ(log->Sync(), ErrorCode::kIoError);
  disk.AddFault({.action = Action::kNoSpace, .kinds = kDiskAllocate});
  EXPECT_EQ(log->Allocate(5000), ErrorCode::kResourceExhausted);
  EXPECT_EQ(*log->Size(), 1000u);
  disk.RemoveAllFaults();
  EXPECT_TRUE(storage->Rename("log-1", "log-2").ok());
}

TEST(FaultyDiskFaults, ShortTransfersAndFlippedBits) {
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

TEST(FaultyDiskFaults, AFlippedBitSurvivesACrash) {
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

TEST(FaultyDiskFaults, AFullDiskRefusesGrowthOnlyAndRecovers) {
  constexpr uint64_t kBlock = 4096;
  FaultyDisk disk(RealRuntime(), 1);
  disk.SetFreeBytes(10 * kBlock);
  auto storage = disk.Mount();
  auto big = Open(*storage, "big", kCreate), small = Open(*storage, "small", kCreate);
  ASSERT_TRUE(big->Allocate(9 * kBlock).ok());
  ASSERT_TRUE(Put(*small, 0, "x").ok());
  EXPECT_EQ(*storage->FreeBytes(""), 0u);
  EXPECT_EQ(*storage->CapacityBytes(""), 10 * kBlock);
  const Status full = Put(*small, 0, std::string(4097, 'x'));
  EXPECT_EQ(full, ErrorCode::kResourceExhausted);
  EXPECT_NE(full.message().find("0 bytes free"), std::string_view::npos) << full.ToString();
  EXPECT_EQ(small->Allocate(5000), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(Put(*big, 0, std::string(9 * kBlock, 'y')).ok());  // within the allocated space
  EXPECT_TRUE(Put(*small, 4095, "z").ok());
  ASSERT_TRUE(storage->Remove("big").ok());
  EXPECT_EQ(*storage->FreeBytes(""), 9 * kBlock);
  EXPECT_TRUE(Put(*small, 0, std::string(4097, 'x')).ok());
  ASSERT_TRUE(small->Truncate(0).ok());
  EXPECT_EQ(*storage->FreeBytes(""), 10 * kBlock);
}

TEST(FaultyDiskFaults, AHoldOfReadsLeavesTheOtherRequestsOfAQueueAlone) {
  FaultyDisk disk(RealRuntime(), 1);
  auto storage = disk.Mount();
  auto file = Open(*storage, "f", kCreate);
  ASSERT_TRUE(Put(*file, 0, "abcd").ok());
  auto queue = std::move(*storage->NewQueue(8));
  char bytes[4] = {};
  char written = 'x';
  IoRequest reads[4];
  for (int i = 0; i < 4; ++i) {
    reads[i] = {.file = file.get(), .offset = uint64_t(i), .data = &bytes[i], .bytes = 1};
    ASSERT_TRUE(queue->Submit(&reads[i]).ok());
  }
  IoRequest write{.kind = IoRequest::Kind::kWrite, .file = file.get(), .offset = 4, .data = &written, .bytes = 1};
  ASSERT_TRUE(queue->Submit(&write).ok());
  disk.HoldOperations(kDiskRead);
  std::vector<IoRequest*> completed;
  queue->Reap(&completed, kNoDeadline);
  EXPECT_EQ(completed, std::vector<IoRequest*>{&write});
  queue->Reap(&completed, RealRuntime().Now() + milliseconds(1));
  EXPECT_EQ(completed.size(), 1u);
  EXPECT_EQ(disk.held_operations(), 0u);
  const auto releaser = RealRuntime().StartThread("releaser", [&] {
    while (disk.held_operations() < 4) RealRuntime().Yield();
    disk.HoldOperations(0);
  });
  while (queue->in_flight() > 0) queue->Reap(&completed, kNoDeadline);
  EXPECT_EQ(completed.size(), 5u);
  EXPECT_EQ(std::string(bytes, 4), "abcd");
}

TEST(FaultyDiskFaults, HeldCompletionsComeWhenReleased) {
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
}  // namespace
}  // namespace deut
