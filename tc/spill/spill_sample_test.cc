// The kept sample of a spilled run: it can be read, a start removes it, and a copy of another format version is refused with nothing removed.
// With DEUT_WRITE_SAMPLES=DIR the program writes the sample there, for a new version of the format.
#include <cstdlib>
#include <memory>
#include <string>

#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "tc/spill/spill_block.h"
#include "tc/spill/spilled_run.h"
#include "tc/spill/spilled_runs.h"

namespace deut::tc {
namespace {

constexpr char kSample[] = "tc/spill/samples/spill-1";

std::unique_ptr<Storage> Disk() { return *NewSystemStorage(IoKind::kPosix, RealRuntime()); }

std::string BytesOf(Storage& storage, const std::string& path) {
  const auto file = storage.Open(path, {});
  EXPECT_TRUE(file.ok()) << file.status().ToString();
  std::string bytes(*(*file)->Size(), '\0');
  EXPECT_EQ(*(*file)->Read(0, bytes.data(), bytes.size()), bytes.size());
  return bytes;
}

void WriteTo(Storage& storage, const std::string& path, const std::string& bytes) {
  const auto file = storage.Open(path, {.create = true, .writable = true});
  ASSERT_TRUE(file.ok() && (*file)->Write(0, bytes.data(), bytes.size()).ok()) << path;
}

TEST(SpillSampleTest, TheSampleOfTheFormatIsRead) {
  if (const char* const directory = std::getenv("DEUT_WRITE_SAMPLES"); directory != nullptr) {
    const std::unique_ptr<Storage> memory = NewMemoryStorage(RealRuntime());
    auto builder = SpilledRun::Builder::Create(*memory, "spill-1", {});
    ASSERT_TRUE(builder.ok());
    ASSERT_TRUE(builder
                    ->Add({.table = TableId{7},
                           .key = "ab",
                           .timestamp = Timestamp{9},
                           .sequence = 3,
                           .value_bytes = 500,
                           .commit = Lsn{80},
                           .place = Lsn{96}})
                    .ok());
    ASSERT_TRUE(builder
                    ->Add({.table = TableId{7},
                           .key = "b",
                           .timestamp = Timestamp{8},
                           .sequence = 1,
                           .tombstone = true,
                           .commit = Lsn{40}})
                    .ok());
    const auto run = builder->Finish({.first = Timestamp{8}, .first_commit = Lsn{40}, .last = {Lsn{80}, 3}});
    ASSERT_TRUE(run.ok());
    WriteTo(*Disk(), std::string(directory) + "/spill-1", BytesOf(*memory, "spill-1"));
    GTEST_SKIP() << "the sample was written to " << directory;
  }
  const Result<SpillBlock> block = SpillBlock::Decode(BytesOf(*Disk(), kSample), kSample, 0);
  ASSERT_TRUE(block.ok()) << block.status().ToString();
  ASSERT_EQ(block->versions().size(), 2u);
  EXPECT_EQ(block->versions()[0].key, "ab");
  EXPECT_EQ(block->versions()[0].place, Lsn{96});
  EXPECT_TRUE(block->versions()[1].tombstone);
}

TEST(SpillSampleTest, AStartRemovesTheSampleAndNoOtherVersion) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  ASSERT_TRUE(storage->CreateDirectory("spill").ok());
  const std::string sample = BytesOf(*Disk(), kSample);
  WriteTo(*storage, "spill/spill-1", sample);
  std::string later = sample;
  later[3] = '2';
  WriteTo(*storage, "spill/spill-2", later);
  ReclamationDomain domain;
  SpilledRuns runs("spill", RealRuntime(), *storage, domain);
  const Status refused = runs.LockAndEmpty();
  EXPECT_EQ(refused.code(), ErrorCode::kVersionMismatch);
  EXPECT_NE(refused.message().find("format version '2', this program reads and writes version '1'"),
            std::string_view::npos)
      << refused.ToString();
  EXPECT_EQ(BytesOf(*storage, "spill/spill-1"), sample);
  EXPECT_EQ(BytesOf(*storage, "spill/spill-2"), later);
  ASSERT_TRUE(storage->Remove("spill/spill-2").ok());
  EXPECT_TRUE(runs.LockAndEmpty().ok());
  EXPECT_FALSE(*storage->Exists("spill/spill-1"));
}

}  // namespace
}  // namespace deut::tc
