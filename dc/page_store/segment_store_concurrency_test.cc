// All operations at once: appenders, readers, scans, accounting, checkpoints, removal, with a low limit of open files
// and lost races of the threads that open them.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"
#include "dc/page_store/open_files.h"
#include "dc/page_store/segment_table.h"
#include "dc/page_store/store_fixture.h"

namespace deut::dc {
namespace {

constexpr uint32_t kPages = 64;

class SegmentStoreConcurrencyTest : public ::testing::Test {
 protected:
  SegmentStoreConcurrencyTest() {
#ifdef DEUT_TEST_POINTS
    testing::SetCasHandler([](std::string_view) {
      thread_local Random random(1);
      return random.OneIn(4);
    });
#endif
  }
  ~SegmentStoreConcurrencyTest() override {
#ifdef DEUT_TEST_POINTS
    testing::SetCasHandler({});
#endif
  }

  // A payload that can be verified: its salt, and bytes derived from page and salt.
  static std::string Payload(PageId page, uint64_t salt, size_t bytes) {
    std::string payload = PayloadOf(page, salt, sizeof(salt) + bytes);
    std::memcpy(payload.data(), &salt, sizeof(salt));
    return payload;
  }
  static bool IsRight(const PartView& part) {
    uint64_t salt;
    std::memcpy(&salt, part.payload.data(), sizeof(salt));
    return part.payload == Payload(part.header.page, salt, part.payload.size() - sizeof(salt));
  }

  // Writes pages until it is told to stop. The thread that takes an address out of a page's word marks it dead.
  void Write(uint64_t seed, SegmentStore& store) {
    Random random(seed);
    auto appender = std::move(*store.NewAppender(SegmentKind::kBase));
    while (!stop_.load()) {
      std::vector<std::pair<PageId, PageAddress>> batch;
      for (uint64_t i = 0; i < 1 + random.Below(8); ++i) {
        const PageId page(1 + static_cast<uint32_t>(random.Below(kPages)));
        const auto address = appender->Append(
            BaseHeader(page), Payload(page, random.Next(), random.OneIn(50) ? 70'000 : random.Below(2000)));
        if (!address.ok()) return Fail(address.status());
        batch.emplace_back(page, *address);
      }
      if (const Status status = appender->Write(); !status.ok()) return Fail(status);
      for (const auto& [page, address] : batch) {
        const uint64_t old = images_[page.value - 1].exchange(address.raw());
        if (old != 0) store.MarkDead(PageAddress::FromRaw(old));
      }
      writes_.fetch_add(batch.size());
    }
  }

  void Read(uint64_t seed, SegmentStore& store) {
    Random random(seed);
    PartBuffer buffer;
    while (!stop_.load()) {
      const PageId page(1 + static_cast<uint32_t>(random.Below(kPages)));
      std::atomic<uint64_t>& image = images_[page.value - 1];
      const uint64_t raw = image.load();
      if (raw == 0) continue;
      const Status status = store.Read(PageAddress::FromRaw(raw), page, &buffer);
      if (status == ErrorCode::kNotFound && image.load() != raw) {
        overtaken_.fetch_add(1);
        continue;
      }
      if (!status.ok()) return Fail(status);
      if (!IsRight(buffer.part())) return Fail(DEUT_ERROR(kInternal, "a wrong payload"));
      reads_.fetch_add(1);
    }
  }

  void Scan(uint64_t seed, SegmentStore& store) {
    Random random(seed);
    while (!stop_.load()) {
      const std::vector<SegmentUsage> usages = store.usage();
      if (usages.empty()) continue;
      const Status status = store.ForEachPart(usages[random.Below(usages.size())].number, [](const PartView& part) {
        return IsRight(part) ? Status::Ok() : DEUT_ERROR(kInternal, "a wrong payload");
      });
      if (!status.ok() && status != ErrorCode::kNotFound) return Fail(status);
      scans_.fetch_add(1);
    }
  }

  // Captures the list of addresses as the images; each stays readable until two more checkpoints were taken.
  void Checkpoint(SegmentStore& store) {
    std::array<std::vector<uint64_t>, 2> kept;
    PartBuffer buffer;
    for (uint64_t k = 1; !stop_.load() || k < 5; ++k) {
      store.BeginCheckpoint(CheckpointNumber(k));
      std::vector<uint64_t> looked;
      for (const std::atomic<uint64_t>& image : images_) looked.push_back(image.load());
      const auto extents = store.SyncAll(CheckpointNumber(k));
      if (!extents.ok()) return Fail(extents.status());
      kept[k % 2] = looked;
      for (const uint64_t raw : looked) {
        if (raw != 0 && !Names(*extents, PageAddress::FromRaw(raw))) {
          return Fail(DEUT_ERROR(kInternal, "checkpoint ", k, " does not name all its images"));
        }
      }
      const auto removed = store.RemoveDeadSegments(CheckpointNumber(k > 1 ? k - 1 : k));
      if (!removed.ok()) return Fail(removed.status());
      for (const std::vector<uint64_t>& generation : kept) {
        for (size_t i = 0; i < generation.size(); ++i) {
          if (generation[i] == 0) continue;
          const Status status =
              store.Read(PageAddress::FromRaw(generation[i]), PageId(1 + static_cast<uint32_t>(i)), &buffer);
          if (!status.ok()) return Fail(status);
        }
      }
      checkpoints_.store(k);
    }
  }

  static bool Names(const std::vector<SegmentExtent>& extents, PageAddress address) {
    for (const SegmentExtent& extent : extents) {
      if (extent.number == address.segment()) return address.offset() < extent.written_bytes;
    }
    return false;
  }

  void Fail(const Status& status) {
    ADD_FAILURE() << status.ToString();
    stop_.store(true);
  }

  std::array<std::atomic<uint64_t>, kPages> images_{};
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> writes_{0}, reads_{0}, overtaken_{0}, scans_{0}, checkpoints_{0};
};

TEST_F(SegmentStoreConcurrencyTest, EverythingAtOnce) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  SegmentStoreOptions options = SmallSegments();
  options.segments_before_growth = 8;
  const std::unique_ptr<SegmentStore> store =
      std::move(*SegmentStore::Create(*storage, RealRuntime(), kTestPages, kTestDc, options));
  {
    std::vector<std::unique_ptr<Thread>> threads;
    const auto start = [&](const char* name, auto body) { threads.push_back(RealRuntime().StartThread(name, body)); };
    for (uint64_t i = 0; i < 2; ++i) start("write", [&, i] { Write(i, *store); });
    for (uint64_t i = 0; i < 3; ++i) start("read", [&, i] { Read(10 + i, *store); });
    start("scan", [&] { Scan(20, *store); });
    start("checkpoint", [&] { Checkpoint(*store); });
    // Runs until each kind of operation has happened often enough.
    while (!stop_.load() && (writes_.load() < 3000 || reads_.load() < 3000 || scans_.load() < 50 ||
                             checkpoints_.load() < 20 || store->totals().segments_removed < 50)) {
      RealRuntime().Yield();
    }
    stop_.store(true);
  }
  // The accounting is exact, and dead segments are removed.
  uint64_t live = 0;
  for (const std::atomic<uint64_t>& image : images_) {
    if (image.load() != 0) live += PageAddress::FromRaw(image.load()).length_bound();
  }
  EXPECT_EQ(store->totals().live_bytes, live);
  const uint64_t k = checkpoints_.load();
  for (uint64_t more = 1; more <= 2; ++more) {
    store->BeginCheckpoint(CheckpointNumber(k + more));
    ASSERT_TRUE(store->RemoveDeadSegments(CheckpointNumber(k + more)).ok());
  }
  for (const SegmentUsage& usage : store->usage()) EXPECT_GT(usage.live_bytes, 0u) << usage.number;
  const auto names = storage->List(kTestPages);
  EXPECT_EQ(names->size(), store->totals().segments);
}

// Adds and removes numbers far apart while other threads look them up.
TEST(SegmentTableTest, FindsWhatIsThereWhileOthersComeAndGo) {
  ReclamationDomain domain;
  SegmentTable table(domain);
  const auto add = [&](uint64_t number) {
    table.Add(std::make_shared<Segment>(SegmentKind::kBase, number, "path", number * 4096));
  };
  const std::vector<uint64_t> stay = {1, 255, 256, 70'000, uint64_t{1} << 35};
  for (const uint64_t number : stay) add(number);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> looks{0};
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (int i = 0; i < 3; ++i) {
      threads.push_back(RealRuntime().StartThread("find", [&] {
        while (!stop.load()) {
          for (const uint64_t number : stay) {
            const auto segment = table.Find(number);
            EXPECT_TRUE(segment != nullptr && segment->number == number);
          }
          if (const auto segment = table.Find(5000)) EXPECT_EQ(segment->written_bytes.load(), 5000u * 4096);
          uint64_t last = 0;
          size_t seen = 0;
          table.ForEach([&](const std::shared_ptr<Segment>& segment) {
            EXPECT_GT(segment->number, last);
            last = segment->number;
            ++seen;
          });
          EXPECT_GE(seen, stay.size());
          looks.fetch_add(1);
        }
      }));
    }
    for (int round = 0; round < 500 || looks.load() < 500; ++round) {
      for (const uint64_t number : {uint64_t{2}, uint64_t{5000}, uint64_t{1} << 30}) add(number);
      for (const uint64_t number : {uint64_t{5000}, uint64_t{2}, uint64_t{1} << 30}) EXPECT_TRUE(table.Remove(number));
      EXPECT_FALSE(table.Remove(5000));
    }
    stop.store(true);
  }
  EXPECT_EQ(table.Snapshot().size(), stay.size());
  EXPECT_EQ(table.Find(3), nullptr);
}

// However many segments are read, the number of open files stays within the limit.
TEST(OpenFilesTest, TheLimitHoldsAndEverySegmentIsRead) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  ASSERT_TRUE(storage->CreateDirectory("/f").ok());
  ReclamationDomain domain;
  std::atomic<size_t> open{0};
  {
    SegmentTable table(domain);
    for (uint64_t number = 1; number <= 100; ++number) {
      const std::string path = "/f/" + std::to_string(number);
      ASSERT_TRUE(storage->Open(path, {.create = true, .writable = true}).ok());
      table.Add(std::make_shared<Segment>(SegmentKind::kBase, number, path, 4096));
    }
    OpenFiles files(*storage, domain, table, open, 10);
    Random random(1);
    for (int i = 0; i < 2000; ++i) {
      // Some segments are read more often.
      const uint64_t number = random.OneIn(2) ? 1 + random.Below(5) : 1 + random.Below(100);
      const auto segment = table.Find(number);
      const auto file = files.Get(*segment);
      ASSERT_TRUE(file.ok());
      EXPECT_EQ((*file)->path(), "/f/" + std::to_string(number));
      EXPECT_LE(files.open(), 11u);
    }
    EXPECT_GE(files.open(), 8u);
    const auto segment = table.Find(1);
    ASSERT_TRUE(files.Get(*segment).ok());
    files.Close(*segment);
    EXPECT_EQ(segment->file.load(), nullptr);
    ASSERT_TRUE(storage->Remove("/f/1").ok());
    EXPECT_EQ(files.Get(*segment).status().code(), ErrorCode::kNotFound);
  }
  domain.Collect();
  EXPECT_EQ(open.load(), 0u);
}

// Files that a guard keeps after they were closed do not count. Otherwise each miss meanwhile closes an eighth of the
// limit, until hardly any file is left open.
TEST(OpenFilesTest, FilesStayOpenThoughAGuardKeepsTheClosedOnes) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  ASSERT_TRUE(storage->CreateDirectory("/f").ok());
  ReclamationDomain domain;
  std::atomic<size_t> open{0};
  {
    SegmentTable table(domain);
    for (uint64_t number = 1; number <= 100; ++number) {
      const std::string path = "/f/" + std::to_string(number);
      ASSERT_TRUE(storage->Open(path, {.create = true, .writable = true}).ok());
      table.Add(std::make_shared<Segment>(SegmentKind::kBase, number, path, 4096));
    }
    OpenFiles files(*storage, domain, table, open, 16);
    {
      const ReclamationDomain::Guard guard(domain);
      for (uint64_t number = 1; number <= 100; ++number) {
        ASSERT_TRUE(files.Get(*table.Find(number)).ok());
        EXPECT_LE(files.open(), 16u);
      }
    }
    size_t kept = 0;
    table.ForEach([&](const std::shared_ptr<Segment>& segment) { kept += segment->file.load() != nullptr ? 1 : 0; });
    EXPECT_GE(kept, 14u);
    EXPECT_EQ(files.open(), kept);
  }
  domain.Collect();
  EXPECT_EQ(open.load(), 0u);
}

#ifdef DEUT_TEST_POINTS
// Other threads open files while a thread that has already counted closes some; they leave the rest to that thread.
TEST(OpenFilesTest, TheLimitHoldsThoughFilesAreOpenedDuringASweep) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  ASSERT_TRUE(storage->CreateDirectory("/f").ok());
  ReclamationDomain domain;
  std::atomic<size_t> open{0};
  {
    SegmentTable table(domain);
    for (uint64_t number = 1; number <= 9; ++number) {
      const std::string path = "/f/" + std::to_string(number);
      ASSERT_TRUE(storage->Open(path, {.create = true, .writable = true}).ok());
      table.Add(std::make_shared<Segment>(SegmentKind::kBase, number, path, 4096));
    }
    OpenFiles files(*storage, domain, table, open, 4);
    const auto get = [&](uint64_t number) { return files.Get(*table.Find(number)).ok(); };
    for (uint64_t number = 1; number <= 4; ++number) ASSERT_TRUE(get(number));
    int sweeps = 0;
    testing::SetPointHandler([&](std::string_view point) {
      if (point != "page_store.files.sweeping" || ++sweeps > 1) return;
      for (uint64_t number = 6; number <= 9; ++number) EXPECT_TRUE(get(number));
    });
    EXPECT_TRUE(get(5));
    testing::SetPointHandler({});
    EXPECT_EQ(sweeps, 2);
    EXPECT_LE(files.open(), 4u);
  }
  domain.Collect();
}
#endif

}  // namespace
}  // namespace deut::dc
