// A store that is a static object ends in order when the process exits, and loses nothing.
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/status.h"
#include "gtest/gtest.h"
#include "integration/product/embedded/embedded.h"
#include "tc/client/retry.h"

namespace deut {
namespace {

std::unique_ptr<Embedded> global;  // constructed before every object that a store uses, so it is destroyed after them

std::unique_ptr<Embedded> Open(const std::string& directory) {
  EmbeddedOptions options;
  options.data_dir = directory;
  options.tc.log.segment_bytes = 16 << 20;
  options.tc.log.ring_bytes = 16 << 20;
  Result<std::unique_ptr<Embedded>> opened = Embedded::Open(options);
  if (!opened.ok()) FailStop(opened.status().ToString());
  return *std::move(opened);
}

// Commits a write that may still be buffered, on the thread that ends the process.
void Use(Embedded& store) {
  const Result<TableId> made = store.client().CreateTable("t");
  const TableId table = made.ok() ? *made : store.client().OpenTable("t").value();
  RetryOptions options;
  options.transaction.durability = Durability::kBuffered;
  const Status written =
      RunTransaction(store.client(), options, [&](Transaction& t) { return t.Put(table, "key", "value"); });
  if (!written.ok()) FailStop(written.ToString());
}

bool Holds(const std::string& directory) {
  const std::unique_ptr<Embedded> store = Open(directory);
  const TableId table = store->client().OpenTable("t").value();
  std::optional<std::string> value;
  const Status read = RunTransaction(store->client(), {}, [&](Transaction& t) -> Status {
    DEUT_ASSIGN_OR_RETURN(value, t.Get(table, "key"));
    return Status::Ok();
  });
  return read.ok() && value == "value";
}

TEST(StaticStoreTest, AGlobalOneEndsWithTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string directory = ::testing::TempDir() + "/global_store";  // both processes use this directory
  const auto run = [&] {
    global = Open(directory);
    Use(*global);
    std::exit(0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
  EXPECT_TRUE(Holds(directory));
}

TEST(StaticStoreTest, ALocalOneEndsWithTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string directory = ::testing::TempDir() + "/local_store";
  const auto run = [&] {
    static const std::unique_ptr<Embedded> store = Open(directory);
    Use(*store);
    std::exit(0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
  EXPECT_TRUE(Holds(directory));
}

}  // namespace
}  // namespace deut
