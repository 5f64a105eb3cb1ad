// All ways to scan read the same. A validated scan whose records change before it commits is repeated.
#include "integration/scans/direct_store.h"

#include <optional>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "tc/client/client.h"

namespace deut {
namespace {

DirectStoreOptions Small() {
  DirectStoreOptions options;
  options.records = 5000;
  options.value_bytes = 20;
  return options;
}

TEST(DirectStoreTest, AllWaysReadTheSame) {
  DirectStore store(Small());
  for (const uint64_t count : {1, 10, 4000}) {
    for (const uint64_t first : {0, 7, 1000}) {
      uint64_t repeated = 0;
      const DirectStore::Seen direct = store.ScanDirectly(first, count);
      EXPECT_EQ(direct.records, count);
      EXPECT_EQ(store.ScanSerializably(first, count), direct);
      EXPECT_EQ(store.ScanAndValidate(first, count, &repeated), direct);
      EXPECT_EQ(repeated, 0u);
    }
  }
  EXPECT_NE(store.ScanDirectly(0, 10), store.ScanDirectly(1, 10));
}

// While the scan's transaction is open, only commits of earlier transactions can reach the DC (S1).
TEST(DirectStoreTest, AValidatedScanThatMeetsAChangeIsRepeated) {
  DirectStore store(Small());
  const DirectStore::Seen before = store.ScanDirectly(0, 100);
  auto begun = store.client().Begin();
  DirectStore::OrDie(begun.status(), "begin");
  std::optional<Transaction> earlier(*std::move(begun));
  DirectStore::OrDie(earlier->Put(store.table(), DirectStore::KeyOf(50), "other"), "put");
  uint64_t repeated = 0;
  const DirectStore::Seen validated = store.ScanAndValidate(0, 100, &repeated, [&] {
    if (!earlier) return;
    DirectStore::OrDie(earlier->Commit().status(), "commit");
    earlier.reset();
    const Deadline end = RealRuntime().Now() + seconds(40);
    while (store.ScanDirectly(0, 100) == before && RealRuntime().Now() < end) {
    }
  });
  EXPECT_EQ(repeated, 1u);
  EXPECT_NE(validated, before);
  EXPECT_EQ(validated, store.ScanDirectly(0, 100));
  EXPECT_EQ(validated, store.ScanSerializably(0, 100));
}

}  // namespace
}  // namespace deut
