// Folders of a transaction component in which files are missing or damaged, in every way that a script can list, with
// a DC that lives on. Started on such a folder, the component is right, or refuses to serve with a sentence that says
// why, and changes nothing, however often it is started. Right means that clients keep two guarantees. Every key has
// the value that was acknowledged last, even if the DC has to be rebuilt from the log. No committed transaction is
// called not committed.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "protocol/transaction_service.h"
#include "tc/dc_link/fake_data_component.h"
#include "tc/redo_log/recovery.h"
#include "tc/server/transaction_component.h"

namespace deut::tc {
namespace {

constexpr Duration kPatience = seconds(60);
constexpr char kFolder[] = "/tc";
constexpr int kStarts = 12;
constexpr int kStartsIfRight = 2;
constexpr int kKeys = 40;
constexpr int kCommitsOfALife = 120;
constexpr size_t kValueBytes = 3000;

using Files = std::map<std::string, std::string>;  // by path in the folder

Files ReadFolder(Storage& storage) {
  Files files;
  for (const std::string& folder : {std::string(), std::string("spill/")}) {
    const std::string path = folder.empty() ? kFolder : Concat(kFolder, "/spill");
    if (!*storage.Exists(path)) continue;
    const auto names = storage.List(path);
    for (const std::string& name : *names) {
      if (name == "spill") continue;
      const auto file = storage.Open(Concat(kFolder, "/", folder, name), {});
      std::string bytes(*(*file)->Size(), '\0');
      EXPECT_EQ(*(*file)->Read(0, bytes.data(), bytes.size()), bytes.size());
      files[folder + name] = std::move(bytes);
    }
  }
  return files;
}

std::unique_ptr<Storage> StorageWith(const Files& files) {
  std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  EXPECT_TRUE(storage->CreateDirectory(kFolder).ok());
  for (const auto& [name, bytes] : files) {
    if (name.starts_with("spill/")) EXPECT_TRUE(storage->CreateDirectory(Concat(kFolder, "/spill")).ok());
    const auto file = storage->Open(Concat(kFolder, "/", name), {.create = true, .writable = true});
    EXPECT_TRUE((*file)->Write(0, bytes.data(), bytes.size()).ok());
  }
  return storage;
}

// A TC's folder after three processes, and the DC that it belongs to, which has applied all of it and holds a part of
// it durably.
class World {
 public:
  // `keep_bytes`: bytes of the log kept for outcomes, beyond the redo start.
  explicit World(uint64_t keep_bytes) : keep_bytes_(keep_bytes), dc_(RealRuntime(), DcId(9)) {
    const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
    dc_.Start();
    Lsn begin = kFirstLsn;  // where the process's log begins: the tail of the one before
    for (int life = 0; life < 3; ++life) {
      const std::unique_ptr<TransactionComponent> tc = MustOpen(*storage);
      if (life == 0) table_ = *tc->CreateTable("t", {}, Soon());
      Write(*tc, life);
      // Updates that were stable when this process began are not needed for redo any more.
      if (life == 2) EXPECT_TRUE(AwaitRedoStart(*storage, begin));
      begin = Lsn(*StatusOf(*tc, "log.tail"));
    }
    files = ReadFolder(*storage);
  }

  // Returns an empty text if the folder is right, else the mistake. A refusal goes to *refused.
  std::string Start(Storage& storage, Status* refused, bool* by_dc) {
    *by_dc = false;
    auto opened = TransactionComponent::Open(Options(), RealRuntime(), storage, dc_);
    if (!opened.ok()) {
      *refused = opened.status();
      return {};
    }
    TransactionComponent& tc = **opened;
    if (const Status serving = tc.WaitServing(Soon()); !serving.ok()) {
      *refused = serving;
      *by_dc = true;
      return {};
    }
    *refused = Status::Ok();
    if (std::string wrong = Look(tc, "at the start"); !wrong.empty()) return wrong;
    dc_.Restart();  // loses everything that was not stable, and gets it from the log
    if (const Status dropped = tc.DropCaches(Soon()); !dropped.ok()) return dropped.ToString();
    return Look(tc, "after a restart of the DC");
  }

  Files files;

 private:
  static Deadline Soon() { return RealRuntime().Now() + kPatience; }
  static std::string KeyOf(int key) { return Concat("key", 100 + key); }

  TransactionComponentOptions Options() const {
    TransactionComponentOptions options;
    options.log.directory = kFolder;
    options.log.ring_bytes = 128 << 10;
    options.log.segment_bytes = 128 << 10;
    options.log.max_record_bytes = 32 << 10;
    options.log.block_bytes = 32 << 10;
    options.log.chunk_bytes = 16 << 10;
    options.log.space_reserve_bytes = 64 << 10;
    options.log.timestamp_block = 10'000;
    options.memory.log2_record_buckets = 8;
    options.outcomes.log_bytes = keep_bytes_;
    options.dc_link.redo_start_period = milliseconds(5);
    options.dc_link.redo_start_bytes = 16 << 10;
    options.on_refused = [](const Status&) {};
    return options;
  }

  std::unique_ptr<TransactionComponent> MustOpen(Storage& storage) {
    auto opened = TransactionComponent::Open(Options(), RealRuntime(), storage, dc_);
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    EXPECT_TRUE((*opened)->WaitServing(Soon()).ok());
    return *std::move(opened);
  }

  // A third of it, and most of the last process's part, is not stable at the DC, so redo needs it.
  void Write(TransactionComponent& tc, int life) {
    const auto session = *tc.NewSession(Soon());
    for (int i = 0; i < kCommitsOfALife; ++i) {
      const std::string key = KeyOf(i % kKeys);
      std::string value = Concat("value ", life, " ", i, " ");
      value.resize(kValueBytes, 'v');
      Operation put;
      put.kind = OperationKind::kPut;
      put.table = table_;
      put.key = key;
      put.value = value;
      TransactionOptions options;
      options.name = {.id = {.high = 7, .low = static_cast<uint64_t>(1 + life * kCommitsOfALife + i)},
                      .not_before = session->not_before()};
      std::vector<OperationResult> results;
      Status done = DEUT_ERROR(kResourceExhausted, "not tried yet");
      // The next segment may not be allocated yet.
      for (const Deadline deadline = Soon(); done == ErrorCode::kResourceExhausted && RealRuntime().Now() < deadline;) {
        done = session->ExecuteOneShot(options, {&put, 1}, &results, Soon()).status();
        if (!done.ok()) RealRuntime().Yield();
      }
      ASSERT_TRUE(done.ok()) << done.ToString();
      names_.push_back(options.name);
      values_[key] = value;
      if (i % kKeys == kKeys - 1 && (life < 2 || i < kKeys)) {
        ASSERT_TRUE(AwaitApplied(key, value));
        dc_.MakeStable();
      }
    }
    ASSERT_TRUE(AwaitApplied(KeyOf((kCommitsOfALife - 1) % kKeys), values_[KeyOf((kCommitsOfALife - 1) % kKeys)]));
  }
  bool AwaitApplied(const std::string& key, const std::string& value) {
    return dc_.WaitUntil([&] { return dc_.Get(table_, key) == value; }, kPatience);
  }

  static std::optional<uint64_t> StatusOf(TransactionComponent& tc, std::string_view name) {
    const Result<ServiceStatus> status = tc.GetStatus(Soon());
    for (const CounterValue& counter : status->tc) {
      if (counter.name == name) return counter.value;
    }
    return std::nullopt;
  }
  // Waits until redo starts, in the files, at or behind `lsn`.
  static bool AwaitRedoStart(Storage& storage, Lsn lsn) {
    for (const Deadline deadline = Soon(); RealRuntime().Now() < deadline;) {
      const Result<RecoveredChain> chain = RecoverChain(storage, kFolder);  // reads only
      if (chain.ok() && chain->state.redo_start.lsn >= lsn) return true;
      RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(1));
    }
    return false;
  }

  std::string Look(TransactionComponent& tc, const std::string& when) {
    const auto session = *tc.NewSession(Soon());
    for (const auto& [key, value] : values_) {
      Operation get;
      get.table = table_;
      get.key = key;
      std::vector<OperationResult> results;
      const Status done = session->ExecuteOneShot({}, {&get, 1}, &results, Soon()).status();
      if (!done.ok()) return Concat(when, ": ", key, ": ", done.ToString());
      RecordBatch::Iterator it(results[0].records);
      if (!it.Valid() || it.record().value != value)
        return Concat(when, ": ", key, " is ", it.Valid() ? it.record().value.substr(0, 20) : "missing", ", not ",
                      value.substr(0, 20));
    }
    for (size_t i = 0; i < names_.size(); ++i) {
      const Result<OutcomeAnswer> answer = tc.AskOutcome(names_[i], Soon());
      if (!answer.ok()) return Concat(when, ": commit ", i, ": ", answer.status().ToString());
      if (answer->outcome == TransactionOutcome::kNotCommitted) return Concat(when, ": commit ", i, " is denied");
    }
    return {};
  }

  const uint64_t keep_bytes_;
  FakeDataComponent dc_;
  TableId table_;
  std::vector<TransactionName> names_;
  std::map<std::string, std::string> values_;
};

class PartialFolderTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  // Plays one case in a world of its own.
  void Play(const std::string& name, const std::function<void(Files*)>& change) {
    SCOPED_TRACE(name);
    World world(GetParam());
    if (HasFatalFailure()) return;
    Files changed = world.files;
    change(&changed);
    const std::unique_ptr<Storage> storage = StorageWith(changed);
    const bool spill_there = *storage->Exists(Concat(kFolder, "/spill"));
    Status first;
    for (int start = 0; start < kStarts; ++start) {
      Status refused;
      bool by_dc = false;
      ASSERT_EQ(world.Start(*storage, &refused, &by_dc), "") << "start " << start;
      if (start == 0) first = refused;
      ASSERT_EQ(refused.ToString(), first.ToString()) << "start " << start;
      if (refused.ok()) {
        if (start + 1 >= kStartsIfRight) break;
        continue;
      }
      ASSERT_EQ(refused.code(), by_dc ? refused.code() : ErrorCode::kCorruption) << refused.ToString();
      if (!by_dc) {
        ASSERT_NE(refused.message().find(kFolder), std::string::npos) << refused.ToString();
      }
      ASSERT_TRUE(ReadFolder(*storage) == changed)
          << "start " << start << " has changed something: " << refused.ToString();
      ASSERT_EQ(*storage->Exists(Concat(kFolder, "/spill")), spill_there) << "start " << start;
    }
    (first.ok() ? accepted_ : refused_) += 1;
    std::cout << (first.ok() ? "accepted " : "refused  ") << name << ": " << first.message().substr(0, 160) << "\n";
  }

  int accepted_ = 0;
  int refused_ = 0;
};

struct Damage {
  const char* name;
  std::function<void(Files*, const std::string&)> make;
};
const Damage kDamages[] = {
    {"absent", [](Files* files, const std::string& name) { files->erase(name); }},
    {"empty", [](Files* files, const std::string& name) { (*files)[name].clear(); }},
    {"cut to the half",
     [](Files* files, const std::string& name) { (*files)[name].resize((*files)[name].size() / 2); }},
    {"with a first block of zeros",
     [](Files* files, const std::string& name) {
       std::string& bytes = (*files)[name];
       const size_t count = std::min<size_t>(bytes.size(), 4096);
       bytes.replace(0, count, std::string(count, '\0'));
     }},
};

TEST_P(PartialFolderTest, AFolderWithOneDamageIsRightOrRefused) {
  const Files whole = World(GetParam()).files;
  ASSERT_GT(whole.size(), 6u);
  Play("whole", [](Files*) {});
  EXPECT_EQ(accepted_, 1);
  // The number of files in a world depends on how its commits fell into blocks. So files are chosen by their place:
  // the oldest, the newest, those between.
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const Damage& damage : kDamages) {
      Play(Concat("file ", i, " ", damage.name), [&](Files* files) {
        auto file = files->begin();
        std::advance(file, std::min(i, files->size() - 1));
        std::cout << file->first << ": ";
        damage.make(files, std::string(file->first));
      });
    }
  }
  EXPECT_GE(accepted_, 6);
  EXPECT_GE(refused_, 6);
}

TEST_P(PartialFolderTest, WithoutItsSpilledRunsOrOwnersAFolderIsWhole) {
  for (const char* gone : {"OWNER", "spill/"}) {
    Play(Concat("without ", gone),
         [&](Files* files) { std::erase_if(*files, [&](const auto& file) { return file.first.starts_with(gone); }); });
  }
  EXPECT_EQ(accepted_, 2);
}

// A claim must not write to a refused folder either.
TEST_P(PartialFolderTest, ARefusedFolderIsNotClaimed) {
  Play("without a segment, OWNER and spill/", [](Files* files) {
    std::erase_if(*files, [](const auto& file) { return !file.first.starts_with("log-"); });
    files->erase(std::next(files->begin()));
  });
  EXPECT_EQ(refused_, 1);
}

// With the log from its beginning on, and with a log whose oldest files were trimmed.
INSTANTIATE_TEST_SUITE_P(Kept, PartialFolderTest, ::testing::Values(uint64_t{1} << 30, uint64_t{256} << 10),
                         [](const auto& info) { return info.param > (1 << 20) ? "Whole" : "Trimmed"; });

}  // namespace
}  // namespace deut::tc
