// The promises of Storage for files, names and locks, tested on every implementation. Those for queues are in
// io_queue_conformance_test.cc.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/io/aligned_buffer.h"
#include "common/io/storage.h"
#include "common/io/storage_conformance_fixture.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

INSTANTIATE_TEST_SUITE_P(All, StorageConformanceTest,
                         ::testing::Values("uring", "posix", "memory", "faulty", "watched"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(StorageConformanceTest, OpensAndCreates) {
  EXPECT_EQ(storage_->Open(Path("f"), kRead).status(), ErrorCode::kNotFound);
  EXPECT_EQ(storage_->Open(Path("no/f"), kCreate).status(), ErrorCode::kNotFound);
  EXPECT_EQ(storage_->Open(Path("f"), {.create = true}).status(), ErrorCode::kInvalidArgument);
  Put("f", "content");
  EXPECT_EQ(storage_->Open(Path("f"), {.create = true, .exclusive = true, .writable = true}).status(),
            ErrorCode::kAlreadyExists);
  EXPECT_EQ(Get("f"), "content");
  EXPECT_NE(Open("new", {.create = true, .exclusive = true, .writable = true}), nullptr);
  EXPECT_EQ(Open("f", kRead)->path(), Path("f"));
}

TEST_P(StorageConformanceTest, ErrorsNameThePath) {
  const Status status = storage_->Open(Path("absent"), kRead).status();
  EXPECT_NE(status.message().find(Path("absent")), std::string_view::npos) << status.ToString();
}

TEST_P(StorageConformanceTest, ReadsWhatWasWritten) {
  auto file = Open("f", kCreate);
  ASSERT_TRUE(file->Write(0, "abcdef", 6).ok());
  ASSERT_TRUE(file->Write(3, "XY", 2).ok());
  ASSERT_TRUE(file->Write(10000, "end", 3).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(*file->Size(), 10003u);
  char bytes[16] = {};
  EXPECT_EQ(*file->Read(0, bytes, 6), 6u);
  EXPECT_EQ(std::string(bytes, 6), "abcXYf");
  EXPECT_EQ(*file->Read(5000, bytes, 4), 4u);
  EXPECT_EQ(std::string(bytes, 4), std::string(4, '\0'));
  EXPECT_EQ(*file->Read(10001, bytes, 16), 2u);  // short at the end
  EXPECT_EQ(std::string(bytes, 2), "nd");
  EXPECT_EQ(*file->Read(10003, bytes, 16), 0u);
  EXPECT_EQ(*file->Read(99999, bytes, 16), 0u);
  EXPECT_EQ(*file->Read(0, bytes, 0), 0u);
}

TEST_P(StorageConformanceTest, AFileOpenedForReadingRefusesChanges) {
  Put("f", "content");
  auto file = Open("f", kRead);
  EXPECT_EQ(file->Write(0, "x", 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(file->Truncate(1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(file->Allocate(100), ErrorCode::kInvalidArgument);
  auto queue = Queue(1);
  char byte = 'x';
  IoRequest request{.kind = IoRequest::Kind::kWrite, .file = file.get(), .data = &byte, .bytes = 1};
  EXPECT_EQ(queue->Submit(&request), ErrorCode::kInvalidArgument);
  EXPECT_EQ(queue->in_flight(), 0u);
  EXPECT_EQ(Get("f"), "content");
}

TEST_P(StorageConformanceTest, DirectTransfersMustBeAligned) {
  auto file = Open("f", kCreateDirect);
  AlignedBuffer buffer(2 * kIoAlignment);
  const Status offset = file->Write(512, buffer.data(), kIoAlignment);
  EXPECT_EQ(offset, ErrorCode::kInvalidArgument);
  EXPECT_NE(offset.message().find("multiples of 4096"), std::string_view::npos) << offset.ToString();
  EXPECT_EQ(file->Write(0, buffer.data(), 100), ErrorCode::kInvalidArgument);
  EXPECT_EQ(file->Write(0, buffer.data() + 512, kIoAlignment), ErrorCode::kInvalidArgument);
  EXPECT_EQ(file->Read(0, buffer.data() + 8, kIoAlignment).status(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(file->Write(kIoAlignment, buffer.data(), kIoAlignment).ok());
  auto queue = Queue(1);
  IoRequest request{
      .kind = IoRequest::Kind::kRead, .file = file.get(), .data = buffer.data() + 1, .bytes = kIoAlignment};
  EXPECT_EQ(queue->Submit(&request), ErrorCode::kInvalidArgument);
}

TEST_P(StorageConformanceTest, OffsetsBeyondTheLargestFileAreRefused) {
  auto file = Open("f", kCreate);
  char byte = 'x';
  EXPECT_EQ(file->Write(UINT64_MAX - 5, &byte, 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(file->Write(INT64_MAX, &byte, 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(file->Truncate(UINT64_MAX), ErrorCode::kInvalidArgument);
}

TEST_P(StorageConformanceTest, DirectReadsStopAtAnUnalignedEnd) {
  Put("f", std::string(5000, 'e'));
  auto file = Open("f", {.direct = true});
  AlignedBuffer buffer(3 * kIoAlignment);
  EXPECT_EQ(*file->Read(0, buffer.data(), buffer.size()), 5000u);
  EXPECT_EQ(buffer.data()[4999], 'e');
  auto queue = Queue(2);
  IoRequest request{.kind = IoRequest::Kind::kRead,
                    .file = file.get(),
                    .offset = kIoAlignment,
                    .data = buffer.data(),
                    .bytes = buffer.size()};
  ASSERT_TRUE(queue->Submit(&request).ok());
  ReapAll(*queue);
  EXPECT_TRUE(request.status.ok());
  EXPECT_EQ(request.transferred, 5000 - kIoAlignment);
}

TEST_P(StorageConformanceTest, TruncateShrinksAndGrows) {
  auto file = Open("f", kCreate);
  const std::string content(10000, 'c');
  ASSERT_TRUE(file->Write(0, content.data(), content.size()).ok());
  ASSERT_TRUE(file->Truncate(700).ok());
  EXPECT_EQ(*file->Size(), 700u);
  ASSERT_TRUE(file->Truncate(2000).ok());
  EXPECT_EQ(Get("f"), std::string(700, 'c') + std::string(1300, '\0'));
}

TEST_P(StorageConformanceTest, AllocateGrowsWithZerosAndKeepsContent) {
  for (const OpenOptions& options : {kCreate, kCreateDirect}) {
    const std::string name = options.direct ? "direct" : "plain";
    Put(name, "begin");
    auto file = Open(name, options);
    ASSERT_TRUE(file->Allocate(3'000'001).ok());
    EXPECT_EQ(*file->Size(), 3'000'001u);
    ASSERT_TRUE(file->Allocate(10).ok());
    EXPECT_EQ(*file->Size(), 3'000'001u);
    const std::string content = Get(name);
    EXPECT_EQ(content.substr(0, 5), "begin");
    EXPECT_EQ(content.find_first_not_of('\0', 5), std::string::npos);
  }
}

TEST_P(StorageConformanceTest, Names) {
  ASSERT_TRUE(storage_->CreateDirectory(Path("a/b/c")).ok());
  ASSERT_TRUE(storage_->CreateDirectory(Path("a/b/c/")).ok());
  Put("a/two", "2");
  Put("a/one", "1");
  EXPECT_EQ(*storage_->List(Path("a")), (std::vector<std::string>{"b", "one", "two"}));
  ASSERT_TRUE(storage_->Rename(Path("a/one"), Path("a/two")).ok());
  EXPECT_EQ(Get("a/two"), "1");
  EXPECT_FALSE(*storage_->Exists(Path("a/one")));
  EXPECT_TRUE(*storage_->Exists(Path("a/b")));
  EXPECT_EQ(storage_->Rename(Path("a/one"), Path("a/three")), ErrorCode::kNotFound);
  EXPECT_EQ(storage_->Rename(Path("a/two"), Path("no/two")), ErrorCode::kNotFound);
  EXPECT_EQ(storage_->Remove(Path("a/one")), ErrorCode::kNotFound);
  EXPECT_EQ(storage_->Remove(Path("a/b")), ErrorCode::kIoError);  // not empty
  EXPECT_TRUE(storage_->Remove(Path("a/b/c")).ok());
  EXPECT_TRUE(storage_->Remove(Path("a/two")).ok());
  EXPECT_TRUE(storage_->SyncDirectory(Path("a")).ok());
  EXPECT_EQ(*storage_->List(Path("a")), std::vector<std::string>{"b"});
  EXPECT_EQ(storage_->List(Path("nothing")).status(), ErrorCode::kNotFound);
  EXPECT_EQ(storage_->SyncDirectory(Path("nothing")), ErrorCode::kNotFound);
  Put("file", "");
  EXPECT_FALSE(storage_->CreateDirectory(Path("file")).ok());
  EXPECT_FALSE(storage_->CreateDirectory(Path("file/below")).ok());
  EXPECT_FALSE(storage_->Open(Path("a"), kReadWrite).ok());
}

TEST_P(StorageConformanceTest, ARemovedFileStaysReadableByItsHandle) {
  Put("f", "still there");
  auto file = Open("f", kRead);
  ASSERT_TRUE(storage_->Remove(Path("f")).ok());
  char bytes[16];
  EXPECT_EQ(*file->Read(0, bytes, 16), 11u);
}

TEST_P(StorageConformanceTest, LocksAreExclusiveAlsoWithinOneProcess) {
  auto first = storage_->Lock(Path("LOCK"));
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  const Status second = storage_->Lock(Path("LOCK")).status();
  EXPECT_EQ(second, ErrorCode::kUnavailable);
  EXPECT_NE(second.message().find("this process"), std::string_view::npos) << second.ToString();
  EXPECT_TRUE(storage_->Lock(Path("OTHER")).ok());
  {
    auto released = std::move(first).value();
  }
  EXPECT_TRUE(storage_->Lock(Path("LOCK")).ok());
}

TEST_P(StorageConformanceTest, AReleasedLockRemovesItsFileOnlyIfItCreatedItAndTheCallerAsksForIt) {
  {
    auto lock = storage_->Lock(Path("LOCK"));
    ASSERT_TRUE(lock.ok()) << lock.status().ToString();
    (*lock)->RemoveWhenReleased(true);
    EXPECT_TRUE(*storage_->Exists(Path("LOCK")));
    EXPECT_EQ(storage_->Lock(Path("LOCK")).status(), ErrorCode::kUnavailable);
  }
  EXPECT_FALSE(*storage_->Exists(Path("LOCK")));
  {
    auto lock = storage_->Lock(Path("LOCK"));
    ASSERT_TRUE(lock.ok()) << lock.status().ToString();
    (*lock)->RemoveWhenReleased(true);
    (*lock)->RemoveWhenReleased(false);
  }
  EXPECT_TRUE(*storage_->Exists(Path("LOCK")));
  {
    auto lock = storage_->Lock(Path("LOCK"));
    ASSERT_TRUE(lock.ok()) << lock.status().ToString();
    (*lock)->RemoveWhenReleased(true);
  }
  EXPECT_TRUE(*storage_->Exists(Path("LOCK"))) << "it was there before";
}

// Each thread takes the lock again and again, and removes its file. Two that held it at once would have locked different files.
TEST_P(StorageConformanceTest, LocksThatRemoveTheirFileStayExclusive) {
  constexpr int kThreads = 4, kTaken = 200;
  std::atomic<int> holders{0}, most{0};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(RealRuntime().StartThread("locker", [&] {
      for (int taken = 0; taken < kTaken;) {
        auto lock = storage_->Lock(Path("LOCK"));
        if (!lock.ok()) {
          EXPECT_EQ(lock.status(), ErrorCode::kUnavailable) << lock.status().ToString();
          RealRuntime().Yield();
          continue;
        }
        (*lock)->RemoveWhenReleased(true);
        const int now = ++holders;
        if (now > most) most = now;
        RealRuntime().Yield();
        --holders;
        ++taken;
      }
    }));
  }
  threads.clear();
  EXPECT_EQ(most, 1);
  EXPECT_FALSE(*storage_->Exists(Path("LOCK")));
}

TEST_P(StorageConformanceTest, FreeBytes) {
  EXPECT_GT(*storage_->FreeBytes(folder_.path()), 0u);
  EXPECT_EQ(storage_->FreeBytes(Path("nothing")).status(), ErrorCode::kNotFound);
  EXPECT_GE(*storage_->CapacityBytes(folder_.path()), *storage_->FreeBytes(folder_.path()));
  EXPECT_EQ(storage_->CapacityBytes(Path("nothing")).status(), ErrorCode::kNotFound);
  EXPECT_FALSE(storage_->name().empty());
}

TEST_P(StorageConformanceTest, FilesMayBeUsedByManyThreads) {
  auto file = Open("f", kCreate);
  std::vector<std::unique_ptr<Thread>> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.push_back(runtime_.StartThread("user", [&file, t] {
      std::string mine(1000, static_cast<char>('a' + t)), back(1000, ' ');
      for (uint64_t i = 0; i < 50; ++i) {
        const uint64_t offset = (i * 4 + t) * 1000;
        ASSERT_TRUE(file->Write(offset, mine.data(), mine.size()).ok());
        ASSERT_EQ(*file->Read(offset, back.data(), back.size()), 1000u);
        ASSERT_EQ(back, mine);
      }
    }));
  }
  for (auto& thread : threads) thread->Join();
  EXPECT_EQ(*file->Size(), 200000u);
}

TEST_P(StorageConformanceTest, RandomTransfersAgreeWithAString) {
  Random random(4711);
  auto file = Open("f", kCreate);
  std::string expected;
  for (int i = 0; i < 300; ++i) {
    const uint64_t offset = random.Below(200'000), bytes = random.Below(30'000);
    if (random.OneIn(20)) {
      ASSERT_TRUE(file->Truncate(offset).ok());
      expected.resize(offset, '\0');
    } else if (random.OneIn(2)) {
      const std::string data(bytes, static_cast<char>('a' + i % 26));
      ASSERT_TRUE(file->Write(offset, data.data(), bytes).ok());
      if (bytes > 0 && expected.size() < offset + bytes) expected.resize(offset + bytes, '\0');
      expected.replace(std::min<size_t>(offset, expected.size()), bytes, data);
    } else {
      std::string data(bytes, '?');
      data.resize(*file->Read(offset, data.data(), bytes));
      ASSERT_EQ(data, offset < expected.size() ? expected.substr(offset, bytes) : "");
    }
  }
}

TEST(SystemStorage, NamesItsChoice) {
  EXPECT_EQ((*NewSystemStorage(IoKind::kPosix, RealRuntime()))->name(), "pread/pwrite");
  const std::string automatic = (*NewSystemStorage(IoKind::kAuto, RealRuntime()))->name();
  EXPECT_TRUE(automatic == "io_uring" || automatic.starts_with("pread/pwrite (io_uring refused"));
}

}  // namespace
}  // namespace deut
