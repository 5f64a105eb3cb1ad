#include "common/io/shortage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/recorded_log.h"
#include "common/testing/temp_dir.h"

namespace deut {
namespace {

// While an object of this class lives, the process has no free descriptor.
class NoDescriptors {
 public:
  NoDescriptors() {
    rlimit low{};
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    low = before_;
    low.rlim_cur = 64;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (int taken; (taken = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken_.push_back(taken);
    EXPECT_EQ(errno, EMFILE);
  }
  ~NoDescriptors() {
    for (const int taken : taken_) close(taken);
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

  void GiveBackOne() {
    close(taken_.back());
    taken_.pop_back();
  }

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

class ShortageTest : public ::testing::TestWithParam<IoKind> {
 protected:
  const ::deut::testing::TempDir directory_;
  const std::unique_ptr<Storage> storage_ = *NewSystemStorage(GetParam(), RealRuntime());
  ::deut::testing::RecordedLog log_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, ShortageTest, ::testing::Values(IoKind::kAuto, IoKind::kPosix));

TEST_P(ShortageTest, OpenWaitsForADescriptorAndCountsTheFailures) {
  const uint64_t before = ShortageCount();
  const std::string path = Concat(directory_.path(), "/file");
  NoDescriptors none;
  std::atomic<bool> opened{false};
  Status status;
  const auto thread = RealRuntime().StartThread("opens", [&] {
    status = storage_->Open(path, {.create = true, .exclusive = true, .writable = true}).status();
    opened.store(true);
  });
  while (ShortageCount() < before + 3) RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(100));
  EXPECT_FALSE(opened.load());
  none.GiveBackOne();
  thread->Join();
  EXPECT_EQ(status.ToString(), "OK");
  EXPECT_LE(log_.Count("Too many open files; retrying"), 1u) << "one line a second";
}

TEST_P(ShortageTest, ALastingShortageIsResourceExhaustedAndNamesTheFile) {
  const std::string path = Concat(directory_.path(), "/file");
  const NoDescriptors none;
  const Status status = storage_->Open(path, {.create = true, .writable = true}).status();
  EXPECT_EQ(status, ErrorCode::kResourceExhausted);
  EXPECT_EQ(status.message(), Concat("open ", path, ": Too many open files"));
  EXPECT_EQ(storage_->List(directory_.path()).status(), ErrorCode::kResourceExhausted);
}

TEST_P(ShortageTest, AnOpenThatIsToBeTriedOnceAnswersAtOnceAndIsCounted) {
  const uint64_t before = ShortageCount();
  const NoDescriptors none;
  const Status status =
      storage_->Open(Concat(directory_.path(), "/file"), {.create = true, .writable = true, .once = true}).status();
  EXPECT_EQ(status, ErrorCode::kResourceExhausted);
  EXPECT_EQ(ShortageCount(), before + 1);
}

TEST_P(ShortageTest, TheDirectoryOfALockIsSyncedWithoutAFreeDescriptor) {
  const auto lock = storage_->Lock(Concat(directory_.path(), "/lock"));
  ASSERT_TRUE(lock.ok());
  const std::string made = Concat(directory_.path(), "/made");
  ASSERT_TRUE(storage_->CreateDirectory(made).ok());
  const NoDescriptors none;
  EXPECT_EQ(storage_->SyncDirectory(directory_.path()).ToString(), "OK");
  EXPECT_EQ(storage_->SyncDirectory(made).ToString(), "OK");
}

TEST_P(ShortageTest, ADirectoryThatWasReplacedIsSyncedAnew) {
  const std::string made = Concat(directory_.path(), "/made");
  ASSERT_TRUE(storage_->CreateDirectory(made).ok());
  ASSERT_TRUE(storage_->SyncDirectory(made).ok());
  ASSERT_TRUE(storage_->Remove(made).ok());
  EXPECT_EQ(storage_->SyncDirectory(made), ErrorCode::kNotFound);
  ASSERT_TRUE(storage_->CreateDirectory(made).ok());
  EXPECT_EQ(storage_->SyncDirectory(made).ToString(), "OK");
}

TEST(Shortage, ErrorsThatDoNotPassAreReturnedAtOnce) {
  int attempts = 0;
  const int result = RetryShortage(RealRuntime(), "open", "x", [&] {
    ++attempts;
    errno = EACCES;
    return -1;
  });
  EXPECT_EQ(result, -1);
  EXPECT_EQ(errno, EACCES);
  EXPECT_EQ(attempts, 1);
}

}  // namespace
}  // namespace deut
