#include "integration/tests/kill_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "common/base/concat.h"
#include "tc/client/one_shot.h"
#include "tc/client/transaction.h"

namespace deut::testing {
namespace {

constexpr Duration kPatience = seconds(60);
constexpr uint32_t kRowsPerStep = 64, kRowsOfTable = 3 * kRowsPerStep;
constexpr uint64_t kWritesPerTableStep = 16;
// This many keys of a run are also read by points.
constexpr uint32_t kPointsPerRun = 4;

std::string NameOf(uint64_t number) { return Concat("passing-", number); }
std::string RowKey(uint32_t row) { return Concat("row-", 100'000 + row); }
std::string RowValue(uint64_t table, uint32_t row) {
  return Concat("table ", table, " row ", row, " ", std::string(150, static_cast<char>('a' + row % 26)));
}

}  // namespace

std::string KillLoad::Family::KeyOf(uint32_t group, uint32_t key) const {
  return is_run ? Concat("run-", 1000 + group, "-", 1000 + key) : Concat("side-", key, "-", 1000 + group);
}

KillLoad::KillLoad(Client& client, uint64_t seed, const KillLoadOptions& options)
    : client_(client), random_(seed), options_(options) {
  families_.push_back(std::make_unique<Family>("pairs", options.pairs, 2, /*run=*/false));
  if (options.run_threads == 0) return;
  families_.push_back(std::make_unique<Family>("runs", options.runs, options.keys_per_run, /*run=*/true));
}

KillLoad::~KillLoad() { Stop(); }

Status KillLoad::Prepare() {
  for (const std::unique_ptr<Family>& family : families_) {
    DEUT_ASSIGN_OR_RETURN(family->table, client_.CreateTable(family->name));
  }
  return Status::Ok();
}

void KillLoad::Start() {
  stop_.store(false);
  const auto start = [this](Family& family, int count) {
    for (int i = 0; i < count; ++i) {
      threads_.push_back(RealRuntime().StartThread("writer", [this, &family, seed = random_.Next()] {
        Random random(seed);
        while (!stop_.load()) WriteOnce(family, random);
      }));
    }
  };
  start(*families_[0], options_.pair_threads);
  if (options_.run_threads > 0) start(*families_[1], options_.run_threads);
  if (!options_.tables) return;
  threads_.push_back(RealRuntime().StartThread("tables", [this] {
    while (!stop_.load()) {
      PassTable();
      PaceTableSteps();
    }
  }));
}

void KillLoad::Stop() {
  stop_.store(true);
  threads_.clear();
}

void KillLoad::AwaitProgress(uint64_t writes) {
  GroupOracle& pairs = families_.front()->oracle;
  const uint64_t enough = pairs.acknowledged() + writes;
  const Deadline deadline = RealRuntime().Now() + kPatience;
  while (pairs.acknowledged() < enough) {
    ASSERT_LT(RealRuntime().Now(), deadline) << "writes are no longer acknowledged";
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(2));
  }
}

uint64_t KillLoad::acknowledged() const {
  uint64_t sum = 0;
  for (const std::unique_ptr<Family>& family : families_) sum += family->oracle.acknowledged();
  return sum;
}

uint64_t KillLoad::unknown() const {
  uint64_t sum = 0;
  for (const std::unique_ptr<Family>& family : families_) sum += family->oracle.unknown();
  return sum;
}

void KillLoad::WriteOnce(Family& family, Random& random) {
  const auto group = static_cast<uint32_t>(random.Below(family.groups));
  const uint64_t write = family.is_run && random.OneIn(2) ? family.oracle.NextRemoval() : family.oracle.NextWrite();
  RetryReport report;
  const Status status = family.is_run || random.OneIn(2) ? WriteBlindly(family, group, write, &report)
                                                         : WriteAfterReading(family, group, write, &report);
  if (status.ok()) {
    family.oracle.Acknowledge(group, report.commit.timestamp, write);
  } else if (status == ErrorCode::kOutcomeUnknown) {
    family.oracle.SetUnknown(group, write);
  } else {
    // The write was refused, so it never happens. Any other error would be unexpected for the caller.
    EXPECT_TRUE(IsRetryable(status) || status == ErrorCode::kDeadlineExceeded) << status.ToString();
    refused_.fetch_add(1);
  }
}

Status KillLoad::WriteBlindly(Family& family, uint32_t group, uint64_t write, RetryReport* report) {
  const std::optional<std::string> value = GroupOracle::ValueOf(group, write);
  OneShot all(client_);
  for (uint32_t key = 0; key < family.keys_per_group; ++key) {
    if (value) {
      all.Put(family.table, family.KeyOf(group, key), *value);
    } else {
      all.Remove(family.table, family.KeyOf(group, key));
    }
  }
  return RunOneShot(all, {.timeout = seconds(30)}, report).status();
}

Status KillLoad::WriteAfterReading(Family& family, uint32_t group, uint64_t write, RetryReport* report) {
  const std::string value = *GroupOracle::ValueOf(group, write);
  std::vector<std::optional<std::string>> read;
  const Status status = RunTransaction(
      client_, {.timeout = seconds(30)},
      [&](Transaction& t) -> Status {
        read.clear();
        for (uint32_t key = 0; key < family.keys_per_group; ++key) {
          DEUT_ASSIGN_OR_RETURN(std::optional<std::string> found, t.Get(family.table, family.KeyOf(group, key)));
          read.push_back(std::move(found));
          DEUT_RETURN_IF_ERROR(t.Put(family.table, family.KeyOf(group, key), value));
        }
        return Status::Ok();
      },
      report);
  if (status.ok()) {
    EXPECT_EQ(std::count(read.begin(), read.end(), read[0]), std::ssize(read))
        << "a committed transaction has read a part of another";
  }
  return status;
}

Status KillLoad::RetryUntilDecided(ErrorCode decided, const std::function<Status()>& ask) {
  const Deadline deadline = RealRuntime().Now() + kPatience;
  for (;;) {
    Status status = ask();
    const bool repeat =
        IsRetryable(status) || status == ErrorCode::kDeadlineExceeded || status == ErrorCode::kOutcomeUnknown;
    if (status.ok() || status == decided || !repeat || RealRuntime().Now() > deadline) return status;
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(2));
  }
}

void KillLoad::PaceTableSteps() {
  const uint64_t enough = acknowledged() + kWritesPerTableStep;
  while (!stop_.load() && acknowledged() < enough) RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(1));
}

void KillLoad::PassTable() {
  const std::string name = NameOf(passing_.number);
  const CallOptions call{.timeout = seconds(5)};
  if (!passing_.is_there) {
    // If an answer was lost, an earlier attempt may have created the table.
    const Status made =
        RetryUntilDecided(ErrorCode::kAlreadyExists, [&] { return client_.CreateTable(name, call).status(); });
    ASSERT_TRUE(made.ok() || made == ErrorCode::kAlreadyExists) << made.ToString();
    const Status opened = RetryUntilDecided(ErrorCode::kOk, [&]() -> Status {
      DEUT_ASSIGN_OR_RETURN(passing_.id, client_.OpenTable(name, call));
      return Status::Ok();
    });
    ASSERT_TRUE(opened.ok()) << opened.ToString();
    passing_.is_there = true;
    passing_.rows = 0;
    return;
  }
  if (passing_.rows < kRowsOfTable) {
    OneShot rows(client_);
    for (uint32_t row = passing_.rows; row < passing_.rows + kRowsPerStep; ++row) {
      rows.Put(passing_.id, RowKey(row), RowValue(passing_.number, row));
    }
    // Repeating these puts is harmless.
    const Status written =
        RetryUntilDecided(ErrorCode::kOk, [&] { return RunOneShot(rows, {.timeout = seconds(30)}).status(); });
    ASSERT_TRUE(written.ok()) << written.ToString();
    passing_.rows += kRowsPerStep;
    return;
  }
  const Status dropped = RetryUntilDecided(ErrorCode::kNotFound, [&] { return client_.DropTable(name, call); });
  ASSERT_TRUE(dropped.ok() || dropped == ErrorCode::kNotFound) << dropped.ToString();
  passing_.is_there = false;
  ++passing_.number;
}

void KillLoad::Check() {
  for (const std::unique_ptr<Family>& family : families_) ASSERT_NO_FATAL_FAILURE(CheckGroups(*family));
  if (options_.tables) CheckTables();
}

void KillLoad::CheckGroups(Family& family) {
  SCOPED_TRACE(family.name);
  const uint32_t step = family.is_run ? std::max(1u, family.keys_per_group / kPointsPerRun) : 1;
  std::vector<std::string> keys, point_keys;
  for (uint32_t group = 0; group < family.groups; ++group) {
    for (uint32_t key = 0; key < family.keys_per_group; ++key) {
      keys.push_back(family.KeyOf(group, key));
      if (key % step == 0) point_keys.push_back(keys.back());
    }
  }
  const std::vector<std::string_view> views(point_keys.begin(), point_keys.end());
  std::vector<std::optional<std::string>> points, scanned;
  Timestamp timestamp;
  const Status status = RunTransaction(client_, {.timeout = kPatience}, [&](Transaction& t) -> Status {
    timestamp = t.timestamp();
    DEUT_RETURN_IF_ERROR(t.MultiGet(family.table, views, &points));
    std::map<std::string, std::string, std::less<>> found;
    Scanner scanner = t.OpenScanner(family.table, {});
    while (scanner.Next()) found.emplace(scanner.key(), scanner.value());
    DEUT_RETURN_IF_ERROR(scanner.status());
    scanned.clear();
    for (const std::string& key : keys) {
      const auto node = found.extract(key);
      scanned.push_back(node.empty() ? std::nullopt : std::optional(node.mapped()));
    }
    if (!found.empty()) return DEUT_ERROR(kInternal, "nobody has written key ", Quoted(found.begin()->first));
    return Status::Ok();
  });
  ASSERT_TRUE(status.ok()) << status.ToString();
  size_t point = 0;
  for (uint32_t group = 0; group < family.groups; ++group) {
    const auto values = std::span(scanned).subspan(size_t{group} * family.keys_per_group, family.keys_per_group);
    EXPECT_EQ(family.oracle.Judge(group, timestamp, values), "");
    for (uint32_t key = 0; key < family.keys_per_group; key += step) {
      EXPECT_EQ(points[point++], values[key])
          << family.KeyOf(group, key) << ": point and scan of one transaction differ";
    }
  }
}

void KillLoad::CheckTables() {
  Result<std::vector<TableInfo>> tables = client_.ListTables({.timeout = kPatience});
  ASSERT_TRUE(tables.ok()) << tables.status().ToString();
  std::erase_if(*tables, [](const TableInfo& table) { return table.dropped || !table.name.starts_with("passing-"); });
  ASSERT_EQ(tables->size(), passing_.is_there ? 1u : 0u) << "beginning with " << tables->front().name;
  if (!passing_.is_there) return;
  EXPECT_EQ(tables->front().name, NameOf(passing_.number));
  uint32_t row = 0;
  const Status status = RunTransaction(client_, {.timeout = kPatience}, [&](Transaction& t) -> Status {
    row = 0;
    Scanner scanner = t.OpenScanner(passing_.id, {});
    for (; scanner.Next(); ++row) {
      if (scanner.key() == RowKey(row) && scanner.value() == RowValue(passing_.number, row)) continue;
      return DEUT_ERROR(kInternal, NameOf(passing_.number), " has ", Quoted(scanner.key()), " in the place of row ",
                        row);
    }
    return scanner.status();
  });
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(row, passing_.rows);
}

}  // namespace deut::testing
