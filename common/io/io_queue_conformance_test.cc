// The promises of Storage for queues, tested on every implementation, and those of the queues of the system only.
#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/io/aligned_buffer.h"
#include "common/io/shortage.h"
#include "common/io/storage.h"
#include "common/io/storage_conformance_fixture.h"
#include "common/io/transfer.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

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
