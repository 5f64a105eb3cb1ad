#include "common/io/transfer.h"

#include <cerrno>
#include <memory>

#include "common/io/aligned_buffer.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

class AdvanceTransferTest : public ::testing::Test {
 protected:
  IoRequest Request(IoRequest::Kind kind, size_t bytes) {
    return {.kind = kind, .file = file_.get(), .offset = 8192, .data = nullptr, .bytes = bytes};
  }
  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  std::unique_ptr<File> file_ = std::move(storage_->Open("the-file", {.create = true, .writable = true})).value();
  TransferRetries retries_;
};

TEST_F(AdvanceTransferTest, ShortTransfersGoOn) {
  IoRequest request = Request(IoRequest::Kind::kWrite, 100);
  EXPECT_EQ(AdvanceTransfer(&request, false, 30, &retries_), TransferStep::kRetryNow);
  EXPECT_EQ(request.transferred, 30u);
  EXPECT_EQ(AdvanceTransfer(&request, false, -EINTR, &retries_), TransferStep::kRetryNow);
  EXPECT_EQ(AdvanceTransfer(&request, false, -EAGAIN, &retries_), TransferStep::kRetryAfterPause);
  EXPECT_EQ(AdvanceTransfer(&request, false, 70, &retries_), TransferStep::kDone);
  EXPECT_TRUE(request.status.ok());
  EXPECT_EQ(request.transferred, 100u);
}

TEST_F(AdvanceTransferTest, ADirectWriteGoesOnFromAWholeBlock) {
  IoRequest request = Request(IoRequest::Kind::kWrite, 3 * kIoAlignment);
  EXPECT_EQ(AdvanceTransfer(&request, true, kIoAlignment + 512, &retries_), TransferStep::kRetryNow);
  EXPECT_EQ(request.transferred, kIoAlignment);
  EXPECT_EQ(AdvanceTransfer(&request, true, 2 * kIoAlignment, &retries_), TransferStep::kDone);
  EXPECT_TRUE(request.status.ok());
}

TEST_F(AdvanceTransferTest, AReadEndsAtTheEndOfTheFile) {
  IoRequest plain = Request(IoRequest::Kind::kRead, 100);
  EXPECT_EQ(AdvanceTransfer(&plain, false, 40, &retries_), TransferStep::kRetryNow);
  EXPECT_EQ(AdvanceTransfer(&plain, false, 0, &retries_), TransferStep::kDone);
  EXPECT_TRUE(plain.status.ok());
  EXPECT_EQ(plain.transferred, 40u);
  IoRequest direct = Request(IoRequest::Kind::kRead, 2 * kIoAlignment);
  EXPECT_EQ(AdvanceTransfer(&direct, true, 700, &retries_), TransferStep::kDone);
  EXPECT_TRUE(direct.status.ok());
  EXPECT_EQ(direct.transferred, 700u);
}

TEST_F(AdvanceTransferTest, ErrorsNameFileAndOffset) {
  IoRequest write = Request(IoRequest::Kind::kWrite, 100);
  EXPECT_EQ(AdvanceTransfer(&write, false, -EIO, &retries_), TransferStep::kDone);
  EXPECT_EQ(write.status.ToString(), "IO_ERROR: write of 100 bytes at offset 8192 of the-file: Input/output error");
  IoRequest full = Request(IoRequest::Kind::kWrite, 100);
  EXPECT_EQ(AdvanceTransfer(&full, false, -ENOSPC, &retries_), TransferStep::kDone);
  EXPECT_EQ(full.status, ErrorCode::kResourceExhausted);
  IoRequest sync = Request(IoRequest::Kind::kSync, 0);
  EXPECT_EQ(AdvanceTransfer(&sync, false, -EIO, &retries_), TransferStep::kDone);
  EXPECT_EQ(sync.status, ErrorCode::kIoError);
  // A file system that reports a lack of space only at the sync has lost the written bytes, so a retry makes no
  // sense.
  for (const int error : {ENOSPC, EDQUOT}) {
    IoRequest lost = Request(IoRequest::Kind::kSync, 0);
    EXPECT_EQ(AdvanceTransfer(&lost, false, -error, &retries_), TransferStep::kDone);
    EXPECT_EQ(lost.status, ErrorCode::kIoError);
  }
  IoRequest good = Request(IoRequest::Kind::kSync, 0);
  EXPECT_EQ(AdvanceTransfer(&good, false, 0, &retries_), TransferStep::kDone);
  EXPECT_TRUE(good.status.ok());
}

TEST_F(AdvanceTransferTest, WithoutProgressItIsAnErrorInTheEnd) {
  IoRequest nothing = Request(IoRequest::Kind::kWrite, 100);
  EXPECT_EQ(AdvanceTransfer(&nothing, false, 0, &retries_), TransferStep::kDone);
  EXPECT_EQ(nothing.status, ErrorCode::kIoError);
  for (const int64_t result : {int64_t{-EINTR}, int64_t{100}}) {
    IoRequest request = Request(IoRequest::Kind::kWrite, kIoAlignment);
    retries_ = {};
    uint32_t steps = 0;
    while (AdvanceTransfer(&request, true, result, &retries_) == TransferStep::kRetryNow) ++steps;
    EXPECT_EQ(steps, kMaxRetries);
    EXPECT_EQ(request.status, ErrorCode::kIoError);
  }
}

// A shortage that lasts is not reported as a fault of the file.
TEST_F(AdvanceTransferTest, ShortagesAreWaitedOutForABoundedTime) {
  struct Case {
    IoRequest::Kind kind;
    Duration least, most;
  };
  for (const Case& one : {Case{IoRequest::Kind::kRead, milliseconds(900), milliseconds(1100)},
                          Case{IoRequest::Kind::kWrite, seconds(299), seconds(302)}}) {
    for (const int error : {ENOMEM, ENOBUFS, EAGAIN}) {
      IoRequest request = Request(one.kind, kIoAlignment);
      retries_ = {};
      Duration paused(0), last(0);
      while (AdvanceTransfer(&request, true, -error, &retries_) == TransferStep::kRetryAfterPause) {
        EXPECT_GE(RetryPause(retries_), last);
        last = RetryPause(retries_);
        paused += last;
      }
      EXPECT_GE(paused, one.least);
      EXPECT_LE(paused, one.most);
      EXPECT_EQ(request.status, ErrorCode::kResourceExhausted);
    }
  }
}

TEST_F(AdvanceTransferTest, AfterAShortageTheTransferGoesOnWhereItWas) {
  IoRequest request = Request(IoRequest::Kind::kWrite, 100);
  EXPECT_EQ(AdvanceTransfer(&request, false, 30, &retries_), TransferStep::kRetryNow);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(AdvanceTransfer(&request, false, -ENOMEM, &retries_), TransferStep::kRetryAfterPause);
  }
  EXPECT_EQ(RetryPause(retries_), kLongestPause);
  EXPECT_EQ(request.transferred, 30u);
  EXPECT_EQ(AdvanceTransfer(&request, false, 30, &retries_), TransferStep::kRetryNow);
  EXPECT_EQ(AdvanceTransfer(&request, false, -ENOMEM, &retries_), TransferStep::kRetryAfterPause);
  EXPECT_EQ(RetryPause(retries_), milliseconds(1)) << "it starts anew";
  EXPECT_EQ(AdvanceTransfer(&request, false, 40, &retries_), TransferStep::kDone);
  EXPECT_TRUE(request.status.ok());
}

TEST_F(AdvanceTransferTest, ASyncThatMayHaveLostSomethingIsNeverRepeated) {
  IoRequest not_started = Request(IoRequest::Kind::kSync, 0);
  EXPECT_EQ(AdvanceTransfer(&not_started, false, -EAGAIN, &retries_), TransferStep::kRetryAfterPause);
  EXPECT_EQ(AdvanceTransfer(&not_started, false, 0, &retries_), TransferStep::kDone);
  EXPECT_TRUE(not_started.status.ok());
  for (const int error : {ENOMEM, ENOBUFS}) {
    IoRequest lost = Request(IoRequest::Kind::kSync, 0);
    EXPECT_EQ(AdvanceTransfer(&lost, false, -error, &retries_), TransferStep::kDone);
    EXPECT_EQ(lost.status, ErrorCode::kIoError);
  }
}

TEST(CheckTransfer, KnowsTheLargestFile) {
  const OpenOptions options{.writable = true};
  EXPECT_TRUE(CheckTransfer(options, "f", IoRequest::Kind::kWrite, INT64_MAX - 1, nullptr, 1).ok());
  EXPECT_EQ(CheckTransfer(options, "f", IoRequest::Kind::kWrite, INT64_MAX, nullptr, 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CheckTransfer(options, "f", IoRequest::Kind::kRead, UINT64_MAX, nullptr, 1), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace deut
