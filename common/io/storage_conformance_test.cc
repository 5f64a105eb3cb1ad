// The promises of Storage, tested on every implementation.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/io/aligned_buffer.h"
#include "common/io/faulty_disk.h"
#include "common/io/shortage.h"
#include "common/io/storage.h"
#include "common/io/transfer.h"
#include "common/io/watched_storage.h"
#include "common/runtime/random.h"
#include "common/testing/temp_dir.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

constexpr OpenOptions kRead{};
constexpr OpenOptions kReadWrite{.writable = true};
constexpr OpenOptions kCreate{.create = true, .writable = true};
constexpr OpenOptions kCreateDirect{.create = true, .writable = true, .direct = true, .sync_writes = true};

class StorageConformanceTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string kind = GetParam();
    if (kind == "memory") {
      storage_ = NewMemoryStorage(runtime_);
    } else if (kind == "faulty") {
      disk_ = std::make_unique<FaultyDisk>(runtime_, 1);
      storage_ = disk_->Mount();
    } else if (kind == "watched") {
      disk_ = std::make_unique<FaultyDisk>(runtime_, 1);
      behind_ = disk_->Mount();
      storage_ = std::make_unique<WatchedStorage>(runtime_, *behind_, DiskWatchOptions());
    } else {
      auto storage = NewSystemStorage(kind == "uring" ? IoKind::kUring : IoKind::kPosix, runtime_);
      ASSERT_TRUE(storage.ok()) << storage.status().ToString();
      storage_ = std::move(storage).value();
    }
    ASSERT_TRUE(storage_->CreateDirectory(folder_.path()).ok());
  }

  std::string Path(const std::string& name) const { return folder_.Sub(name); }

  std::unique_ptr<File> Open(const std::string& name, const OpenOptions& options) {
    auto file = storage_->Open(Path(name), options);
    EXPECT_TRUE(file.ok()) << file.status().ToString();
    return file.ok() ? std::move(file).value() : nullptr;
  }
  std::unique_ptr<IoQueue> Queue(size_t depth) {
    auto queue = storage_->NewQueue(depth);
    EXPECT_TRUE(queue.ok()) << queue.status().ToString();
    return queue.ok() ? std::move(queue).value() : nullptr;
  }
  void Put(const std::string& name, const std::string& content) {
    auto file = Open(name, kCreate);
    ASSERT_NE(file, nullptr);
    ASSERT_TRUE(file->Write(0, content.data(), content.size()).ok());
  }
  std::string Get(const std::string& name) {
    auto file = Open(name, kRead);
    if (file == nullptr) return "";
    std::string content(*file->Size() + 10, '?');
    content.resize(*file->Read(0, content.data(), content.size()));
    return content;
  }
  // Reaps until nothing is in flight.
  static std::vector<IoRequest*> ReapAll(IoQueue& queue) {
    std::vector<IoRequest*> completed;
    while (queue.in_flight() > 0) queue.Reap(&completed, RealRuntime().Now() + seconds(30));
    return completed;
  }

  Runtime& runtime_ = RealRuntime();
  testing::TempDir folder_;
  std::unique_ptr<FaultyDisk> disk_;
  std::unique_ptr<Storage> behind_;
  std::unique_ptr<Storage> storage_;
};

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

TEST_P(StorageConformanceTest, QueueTransfersManyRequestsInAnyOrder) {
  constexpr size_t kDepth = 16, kBlocks = 200;
  auto file = Open("f", kCreateDirect);
  ASSERT_TRUE(file->Allocate(kBlocks * kIoAlignment).ok());
  auto queue = Queue(kDepth);
  std::vector<AlignedBuffer> buffers;
  std::vector<IoRequest> requests(kDepth);
  std::vector<IoRequest*> idle;
  for (size_t i = 0; i < kDepth; ++i) {
    buffers.emplace_back(kIoAlignment);
    requests[i].context = buffers[i].data();
    idle.push_back(&requests[i]);
  }
  for (const IoRequest::Kind kind : {IoRequest::Kind::kWrite, IoRequest::Kind::kRead}) {
    std::set<uint64_t> seen;
    const auto settle = [&](IoRequest* request) {
      ASSERT_TRUE(request->status.ok()) << request->status.ToString();
      ASSERT_EQ(request->transferred, kIoAlignment);
      ASSERT_EQ(request->context, request->data);
      ASSERT_TRUE(seen.insert(request->offset).second);
      if (kind == IoRequest::Kind::kRead) {
        uint64_t number;
        std::memcpy(&number, request->data, sizeof(number));
        ASSERT_EQ(number, request->offset);
      }
      idle.push_back(request);
    };
    for (uint64_t block = 0; block < kBlocks; ++block) {
      if (idle.empty()) {
        EXPECT_EQ(queue->in_flight(), kDepth);
        std::vector<IoRequest*> completed;
        queue->Reap(&completed, kNoDeadline);
        ASSERT_FALSE(completed.empty());
        for (IoRequest* request : completed) settle(request);
      }
      IoRequest* request = idle.back();
      idle.pop_back();
      request->kind = kind;
      request->file = file.get();
      request->offset = block * kIoAlignment;
      request->data = request->context;
      request->bytes = kIoAlignment;
      if (kind == IoRequest::Kind::kWrite) std::memcpy(request->data, &request->offset, sizeof(request->offset));
      ASSERT_TRUE(queue->Submit(request).ok());
    }
    for (IoRequest* request : ReapAll(*queue)) settle(request);
    EXPECT_EQ(seen.size(), kBlocks);
  }
}

TEST_P(StorageConformanceTest, ARequestSubmittedForLaterCompletesWithoutAnotherSubmit) {
  auto file = Open("f", kCreate);
  auto queue = Queue(4);
  char bytes[4] = {'a', 'b', 'c', 'd'};
  IoRequest requests[4];
  for (int i = 0; i < 4; ++i) {
    requests[i] = {
        .kind = IoRequest::Kind::kWrite, .file = file.get(), .offset = uint64_t(i), .data = &bytes[i], .bytes = 1};
    ASSERT_TRUE(queue->SubmitLater(&requests[i]).ok());
    EXPECT_EQ(queue->in_flight(), size_t(i) + 1);
  }
  // Not a copy of a request in flight, whose fields are the queue's.
  IoRequest one_more{.kind = IoRequest::Kind::kWrite, .file = file.get(), .offset = 4, .data = bytes, .bytes = 1};
  EXPECT_EQ(queue->SubmitLater(&one_more), ErrorCode::kResourceExhausted);
  EXPECT_EQ(one_more.file, file.get());
  EXPECT_EQ(ReapAll(*queue).size(), 4u);
  for (const IoRequest& request : requests) EXPECT_TRUE(request.status.ok()) << request.status.ToString();
  EXPECT_EQ(Get("f"), "abcd");
}

TEST_P(StorageConformanceTest, QueueRefusesMoreThanItsDepth) {
  auto file = Open("f", kCreate);
  auto queue = Queue(2);
  char bytes[3] = {'a', 'b', 'c'};
  IoRequest requests[3];
  for (int i = 0; i < 3; ++i) {
    requests[i] = {
        .kind = IoRequest::Kind::kWrite, .file = file.get(), .offset = uint64_t(i), .data = &bytes[i], .bytes = 1};
  }
  ASSERT_TRUE(queue->Submit(&requests[0]).ok());
  ASSERT_TRUE(queue->Submit(&requests[1]).ok());
  EXPECT_EQ(queue->Submit(&requests[2]), ErrorCode::kResourceExhausted);
  EXPECT_EQ(ReapAll(*queue).size(), 2u);
  ASSERT_TRUE(queue->Submit(&requests[2]).ok());
  EXPECT_EQ(ReapAll(*queue).size(), 1u);
  EXPECT_EQ(Get("f"), "abc");
}

TEST_P(StorageConformanceTest, QueueSyncsAndReportsTheEndOfAFile) {
  auto file = Open("f", kCreate);
  auto queue = Queue(4);
  std::string text = "twelve bytes";
  IoRequest write{.kind = IoRequest::Kind::kWrite, .file = file.get(), .offset = 0, .data = text.data(), .bytes = 12};
  ASSERT_TRUE(queue->Submit(&write).ok());
  ReapAll(*queue);
  IoRequest sync{.kind = IoRequest::Kind::kSync, .file = file.get()};
  ASSERT_TRUE(queue->Submit(&sync).ok());
  ReapAll(*queue);
  EXPECT_TRUE(sync.status.ok()) << sync.status.ToString();
  char bytes[32];
  IoRequest read{.kind = IoRequest::Kind::kRead, .file = file.get(), .offset = 4, .data = bytes, .bytes = 32};
  IoRequest beyond{.kind = IoRequest::Kind::kRead, .file = file.get(), .offset = 100, .data = bytes, .bytes = 0};
  ASSERT_TRUE(queue->Submit(&read).ok());
  ASSERT_TRUE(queue->Submit(&beyond).ok());
  EXPECT_EQ(ReapAll(*queue).size(), 2u);
  EXPECT_TRUE(read.status.ok());
  EXPECT_EQ(read.transferred, 8u);
  EXPECT_EQ(beyond.transferred, 0u);
}

TEST_P(StorageConformanceTest, QueueWithNothingInFlightReturnsAtOnce) {
  auto queue = Queue(1);
  std::vector<IoRequest*> completed;
  queue->Reap(&completed, kNoDeadline);
  queue->Wake();
  queue->Reap(&completed, kNoDeadline);
  EXPECT_TRUE(completed.empty());
}

TEST_P(StorageConformanceTest, AReapWhoseTimeIsLongPastDoesNotWait) {
  auto file = Open("f", kCreate);
  auto queue = Queue(2);
  char byte = 'a';
  IoRequest write{.kind = IoRequest::Kind::kWrite, .file = file.get(), .offset = 0, .data = &byte, .bytes = 1};
  ASSERT_TRUE(queue->Submit(&write).ok());
  std::vector<IoRequest*> completed;
  while (queue->in_flight() > 0) queue->Reap(&completed, MonotonicTime::min());
  EXPECT_EQ(completed.size(), 1u);
  EXPECT_EQ(Get("f"), "a");
}

TEST_P(StorageConformanceTest, QueueMayEndWithRequestsInFlight) {
  auto file = Open("f", kCreate);
  std::string text(100000, 't');
  std::vector<IoRequest> requests(8);
  {
    auto queue = Queue(8);
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i] = {.kind = IoRequest::Kind::kWrite,
                     .file = file.get(),
                     .offset = i * text.size(),
                     .data = text.data(),
                     .bytes = text.size()};
      ASSERT_TRUE(queue->Submit(&requests[i]).ok());
    }
  }
  EXPECT_EQ(Get("f"), std::string(800000, 't'));
}

TEST_P(StorageConformanceTest, WakesDoNotLoseCompletions) {
  auto file = Open("f", kCreate);
  auto queue = Queue(4);
  std::atomic<bool> stop{false};
  auto waker = runtime_.StartThread("waker", [&] {
    while (!stop.load()) {
      queue->Wake();
      runtime_.Yield();
    }
  });
  char bytes[4] = {'a', 'b', 'c', 'd'};
  for (int round = 0; round < 200; ++round) {
    IoRequest requests[4];
    for (int i = 0; i < 4; ++i) {
      requests[i] = {
          .kind = IoRequest::Kind::kWrite, .file = file.get(), .offset = uint64_t(i), .data = &bytes[i], .bytes = 1};
      ASSERT_TRUE(queue->Submit(&requests[i]).ok());
    }
    std::vector<IoRequest*> completed;
    while (queue->in_flight() > 0) queue->Reap(&completed, kNoDeadline);
    ASSERT_EQ(completed.size(), 4u);
  }
  stop = true;
  waker->Join();
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

// A read of an empty pipe is a request that stays in flight.
TEST(SystemStorage, UringReapEndsByDeadlineWakeOrCompletion) {
  Runtime& runtime = RealRuntime();
  testing::TempDir folder;
  auto storage = NewSystemStorage(IoKind::kUring, runtime);
  ASSERT_TRUE(storage.ok()) << storage.status().ToString();
  ASSERT_EQ(mkfifo(folder.Sub("pipe").c_str(), 0600), 0);
  auto pipe = (*storage)->Open(folder.Sub("pipe"), kReadWrite);
  ASSERT_TRUE(pipe.ok()) << pipe.status().ToString();
  auto queue = (*storage)->NewQueue(1);
  char byte = 0;
  IoRequest request{.kind = IoRequest::Kind::kRead, .file = pipe->get(), .data = &byte, .bytes = 1};
  ASSERT_TRUE((*queue)->Submit(&request).ok());
  std::vector<IoRequest*> completed;

  const Deadline deadline = runtime.Now() + milliseconds(5);
  (*queue)->Reap(&completed, deadline);
  EXPECT_GE(runtime.Now(), deadline);
  EXPECT_TRUE(completed.empty());

  for (int i = 0; i < 100; ++i) {
    auto waker = runtime.StartThread("waker", [&] { (*queue)->Wake(); });
    (*queue)->Reap(&completed, kNoDeadline);
    waker->Join();
    EXPECT_TRUE(completed.empty());
  }

  auto writer = runtime.StartThread("writer", [&] {
    FILE* stream = fopen(folder.Sub("pipe").c_str(), "w");
    fputc('p', stream);
    fclose(stream);
  });
  while (completed.empty()) (*queue)->Reap(&completed, kNoDeadline);
  writer->Join();
  EXPECT_EQ(byte, 'p');
}

#ifdef DEUT_TEST_POINTS
// The kernel has no memory for a transfer, for a while. A transfer that retries 10,000 times at once, which takes
// milliseconds, and then fails is the bug that this test excludes.
TEST(SystemStorage, TransfersWaitOutAShortageWithPauses) {
  constexpr uint32_t kFailures = 12;
  const Duration pauses = milliseconds(1 + 2 + 4 + 8 + 16 + 32) + (kFailures - 6) * kLongestPause;
  Runtime& runtime = RealRuntime();
  testing::TempDir folder;
  for (const IoKind kind : {IoKind::kPosix, IoKind::kUring}) {
    auto storage = NewSystemStorage(kind, runtime);
    ASSERT_TRUE(storage.ok()) << storage.status().ToString();
    auto file = (*storage)->Open(folder.Sub("file"), kCreate);
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    auto queue = (*storage)->NewQueue(1);
    ASSERT_TRUE(queue.ok()) << queue.status().ToString();
    char byte = 'x';
    IoRequest request{.kind = IoRequest::Kind::kWrite, .file = file->get(), .data = &byte, .bytes = 1};

    std::atomic<uint32_t> attempts{0};
    testing::SetCasHandler(
        [&](std::string_view name) { return name == "transfer.shortage" && attempts.fetch_add(1) < kFailures; });
    const uint64_t counted = ShortageCount();
    const MonotonicTime begin = runtime.Now();
    ASSERT_TRUE((*queue)->Submit(&request).ok());
    std::vector<IoRequest*> completed;
    while (completed.empty()) (*queue)->Reap(&completed, kNoDeadline);
    testing::SetCasHandler({});

    EXPECT_TRUE(request.status.ok()) << request.status.ToString();
    EXPECT_EQ(attempts, kFailures + 1);
    EXPECT_GE(runtime.Now() - begin, pauses);
    EXPECT_EQ(ShortageCount() - counted, kFailures);
  }
}
// A kernel may grant a first ring and refuse later ones.
TEST(SystemStorage, AQueueWhoseRingIsRefusedUsesPreadAndPwrite) {
  testing::TempDir folder;
  auto storage = NewSystemStorage(IoKind::kAuto, RealRuntime());
  ASSERT_TRUE(storage.ok());
  testing::SetCasHandler([](std::string_view name) { return name == "uring.create"; });
  auto queue = (*storage)->NewQueue(4);
  testing::SetCasHandler({});
  ASSERT_TRUE(queue.ok()) << queue.status().ToString();
  auto file = (*storage)->Open(folder.Sub("file"), kCreate);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  std::string bytes = "bytes";
  IoRequest request{
      .kind = IoRequest::Kind::kWrite, .file = file->get(), .offset = 0, .data = bytes.data(), .bytes = bytes.size()};
  ASSERT_TRUE((*queue)->Submit(&request).ok());
  std::vector<IoRequest*> completed;
  while (completed.empty()) (*queue)->Reap(&completed, kNoDeadline);
  EXPECT_TRUE(request.status.ok()) << request.status.ToString();
  EXPECT_EQ(request.transferred, bytes.size());
}
#endif

}  // namespace
}  // namespace deut
