#include "tc/redo_log/file_read_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/aligned_buffer.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"

namespace deut::tc {
namespace {

constexpr size_t kPiece = 2 * kIoAlignment;
constexpr size_t kDepth = 3;

struct Seen {
  size_t submitted = 0, most_in_flight = 0;
  uint64_t highest = 0;          // end of the highest read
  uint64_t broken = UINT64_MAX;  // a read of this offset fails
};

// Completes only the request that is waited for, the latest first.
class SlowQueue final : public IoQueue {
 public:
  explicit SlowQueue(Seen& seen) : seen_(seen) {}
  Status Submit(IoRequest* request) override {
    waiting_.push_back(request);
    ++seen_.submitted;
    seen_.most_in_flight = std::max(seen_.most_in_flight, waiting_.size());
    seen_.highest = std::max(seen_.highest, request->offset + request->bytes);
    return Status::Ok();
  }
  void Reap(std::vector<IoRequest*>* completed, Deadline) override {
    ASSERT_FALSE(waiting_.empty());
    IoRequest* const request = waiting_.back();
    waiting_.pop_back();
    if (request->offset == seen_.broken) {
      request->status = DEUT_ERROR(kIoError, "broken at ", request->offset);
    } else {
      Result<size_t> read = request->file->Read(request->offset, request->data, request->bytes);
      request->status = read.status();
      if (read.ok()) request->transferred = *read;
    }
    completed->push_back(request);
  }
  void Wake() override {}
  size_t in_flight() const override { return waiting_.size(); }

 private:
  Seen& seen_;
  std::vector<IoRequest*> waiting_;
};

class FileReadAheadTest : public ::testing::Test {
 protected:
  std::unique_ptr<File> Make(const std::string& path, size_t blocks) {
    auto file = storage_->Open(path, OpenOptions{.create = true, .writable = true, .direct = true});
    EXPECT_TRUE(file.ok());
    AlignedBuffer block(kIoAlignment);
    for (size_t i = 0; i < blocks; ++i) {
      std::fill_n(block.data(), kIoAlignment, static_cast<char>('a' + i));
      EXPECT_TRUE((*file)->Write(i * kIoAlignment, block.data(), kIoAlignment).ok());
    }
    return std::move(*file);
  }
  // Returns the letters of the blocks that were read.
  std::string Read(File& file, uint64_t block, size_t blocks, uint64_t limit) {
    AlignedBuffer data(blocks * kIoAlignment);
    const Result<size_t> read =
        ahead_.Read(file, block * kIoAlignment, data.data(), blocks * kIoAlignment, limit * kIoAlignment);
    if (!read.ok()) return std::string(read.status().message());
    std::string letters;
    for (size_t i = 0; i < *read; i += kIoAlignment) {
      EXPECT_EQ(data.data()[i], data.data()[i + kIoAlignment - 1]);
      letters.push_back(data.data()[i]);
    }
    return letters;
  }

  Seen seen_;
  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  std::unique_ptr<File> file_ = Make("/a", 20);
  std::unique_ptr<File> other_ = Make("/b", 20);
  FileReadAhead ahead_{std::make_unique<SlowQueue>(seen_), kPiece, kDepth};
};

TEST_F(FileReadAheadTest, InOrderWithSeveralInFlight) {
  EXPECT_EQ(Read(*file_, 0, 2, 20), "ab");
  EXPECT_EQ(seen_.submitted, 0u) << "who reads once may want no more";
  EXPECT_EQ(Read(*file_, 2, 1, 20), "c");
  EXPECT_EQ(seen_.most_in_flight, kDepth);
  std::string rest;
  for (uint64_t block = 3; block < 20; ++block) rest += Read(*file_, block, 1, 20);
  EXPECT_EQ(rest, "defghijklmnopqrst");
  EXPECT_EQ(seen_.submitted, 9u) << "nothing is read twice";
  EXPECT_EQ(seen_.highest, 20 * kIoAlignment);
}

TEST_F(FileReadAheadTest, RereadBytesAreStillBuffered) {
  EXPECT_EQ(Read(*file_, 0, 3, 20), "abc");
  // A block that was cut off by the end of one read begins the next one.
  EXPECT_EQ(Read(*file_, 2, 3, 20), "cde");
  EXPECT_EQ(Read(*file_, 4, 3, 20), "efg");
  EXPECT_EQ(Read(*file_, 5, 7, 20), "fghijkl") << "more than is in flight at once";
  EXPECT_EQ(Read(*file_, 8, 1, 20), "i") << "back";
  EXPECT_EQ(Read(*file_, 9, 2, 20), "jk");
}

TEST_F(FileReadAheadTest, NothingBeyondTheLimit) {
  EXPECT_EQ(Read(*file_, 0, 1, 7), "a");
  EXPECT_EQ(Read(*file_, 1, 2, 7), "bc");
  EXPECT_EQ(Read(*file_, 3, 4, 7), "defg");
  EXPECT_EQ(seen_.highest, 7 * kIoAlignment);
}

TEST_F(FileReadAheadTest, TheFileEnds) {
  EXPECT_EQ(Read(*file_, 15, 2, 40), "pq");
  EXPECT_EQ(Read(*file_, 17, 2, 40), "rs");
  EXPECT_EQ(Read(*file_, 19, 4, 40), "t");
  EXPECT_EQ(Read(*file_, 23, 4, 40), "");
}

TEST_F(FileReadAheadTest, OtherFilesAndJumps) {
  EXPECT_EQ(Read(*file_, 0, 1, 20), "a");
  EXPECT_EQ(Read(*file_, 1, 1, 20), "b");
  EXPECT_EQ(Read(*other_, 2, 1, 20), "c");
  EXPECT_EQ(Read(*other_, 3, 1, 20), "d");
  EXPECT_EQ(Read(*other_, 12, 1, 20), "m");
  EXPECT_EQ(Read(*file_, 2, 1, 20), "c");
  // The file is overwritten after the read-ahead, and Clear drops the pieces.
  EXPECT_EQ(Read(*file_, 3, 1, 20), "d");
  AlignedBuffer block(kIoAlignment);
  std::fill_n(block.data(), kIoAlignment, 'X');
  ASSERT_TRUE(file_->Write(4 * kIoAlignment, block.data(), kIoAlignment).ok());
  ahead_.Clear();
  EXPECT_EQ(Read(*file_, 4, 2, 20), "Xf");
}

TEST_F(FileReadAheadTest, AFailureComesWhenItsBytesAreAskedFor) {
  seen_.broken = 5 * kIoAlignment;
  EXPECT_EQ(Read(*file_, 0, 1, 20), "a");
  EXPECT_EQ(Read(*file_, 1, 2, 20), "bc");
  EXPECT_EQ(Read(*file_, 3, 2, 20), "de");
  EXPECT_EQ(Read(*file_, 5, 1, 20), "broken at 20480");
  ahead_.Clear();
  EXPECT_EQ(Read(*file_, 5, 1, 20), "f");
}

}  // namespace
}  // namespace deut::tc
