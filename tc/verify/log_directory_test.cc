#include "tc/verify/log_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"

namespace deut::tc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LogDirectoryTest : public ::testing::Test {
 protected:
  LogDirectoryTest() { EXPECT_TRUE(storage_->CreateDirectory("/tc").ok()); }
  void Make(const std::string& name) {
    ASSERT_TRUE(storage_->Open(Concat("/tc/", name), {.create = true, .writable = true}).ok());
  }
  std::string Refusal(const std::string& directory, ErrorCode code) {
    const Status status = LogDirectory::Open(*storage_, directory).status();
    EXPECT_EQ(status.code(), code) << status.ToString();
    return status.ToString();
  }

  const std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
};

TEST_F(LogDirectoryTest, SegmentsInTheirOrderAndWhatIsStrange) {
  for (const uint64_t number : {12, 3, 100}) Make(SegmentName(number));
  Make("notes.txt");
  Make("spill");
  Make("log-12");  // no segment's name
  const Result<LogDirectory> opened = LogDirectory::Open(*storage_, "/tc");
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  EXPECT_THAT(opened->segments, ElementsAre(3u, 12u, 100u));
  EXPECT_THAT(opened->foreign_paths, ::testing::UnorderedElementsAre("/tc/notes.txt", "/tc/log-12"));
  EXPECT_EQ(opened->lock, nullptr) << "a copy without a lock file";
  EXPECT_FALSE(*storage_->Exists("/tc/LOCK")) << "none is made";
}

TEST_F(LogDirectoryTest, ItsLockIsHeldAsLongAsItIsOpen) {
  ASSERT_TRUE(storage_->Lock("/tc/LOCK").ok());  // and released at once
  {
    const Result<LogDirectory> opened = LogDirectory::Open(*storage_, "/tc");
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    EXPECT_NE(opened->lock, nullptr);
    EXPECT_THAT(opened->segments, IsEmpty());
    EXPECT_THAT(opened->foreign_paths, IsEmpty());
    EXPECT_THAT(Refusal("/tc", ErrorCode::kUnavailable), HasSubstr("stop the transaction component first"));
  }
  EXPECT_TRUE(LogDirectory::Open(*storage_, "/tc").ok());
}

TEST_F(LogDirectoryTest, OtherDirectoryIsRefused) {
  (void)Refusal("/nowhere", ErrorCode::kNotFound);
  EXPECT_THAT(Refusal("/tc", ErrorCode::kInvalidArgument), HasSubstr("not the directory of a transaction component"));
  ASSERT_TRUE(storage_->CreateDirectory("/store/tc").ok());
  EXPECT_THAT(Refusal("/store", ErrorCode::kInvalidArgument), HasSubstr("that of an embedded store is /store/tc"));
}

}  // namespace
}  // namespace deut::tc
