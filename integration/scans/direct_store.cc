#include "integration/scans/direct_store.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/coding/crc32c.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "dc/server/data_component_server.h"
#include "protocol/record_batch.h"
#include "tc/client/one_scan.h"

namespace deut {
namespace {

constexpr uint32_t kBatchBytes = 256 << 10;
constexpr uint64_t kLoadBatch = 500;
// Maximum size of a record in a batch without its value: key and header.
constexpr uint64_t kMaxRecordOverheadBytes = 40;

// Enough data to recognise a record.
struct Remembered {
  Version version;
  uint32_t key = 0;
  friend bool operator==(const Remembered&, const Remembered&) = default;
};

Remembered Remember(const RecordView& record) {
  return {.version = record.version, .key = ExtendCrc32c(0, record.key.data(), record.key.size())};
}

std::unique_ptr<Storage> OpenStorage(IoKind io) {
  auto storage = NewSystemStorage(io, RealRuntime());
  DirectStore::OrDie(storage.status(), "storage");
  return std::move(*storage);
}

}  // namespace

DirectStore::DirectStore(DirectStoreOptions options)
    : options_(std::move(options)), storage_(OpenStorage(options_.io)) {
  const std::string directory = options_.directory.empty() ? temporary_.path() : options_.directory;
  dc::DataComponentOptions dc_options;
  dc_options.directory = directory + "/dc";
  dc_ = std::make_unique<InProcessDataComponent>(
      RealRuntime(), [this, dc_options]() -> Result<std::unique_ptr<DataComponent>> {
        DEUT_ASSIGN_OR_RETURN(std::unique_ptr<dc::DataComponentServer> server,
                              dc::DataComponentServer::Open(dc_options, *storage_, RealRuntime()));
        operations_ = &server->operations();
        return std::unique_ptr<DataComponent>(std::move(server));
      });
  OrDie(dc_->Start(), "data component");
  tc::TransactionComponentOptions tc_options = options_.tc;
  tc_options.log.directory = directory + "/tc";
  auto opened = tc::TransactionComponent::Open(tc_options, RealRuntime(), *storage_, *dc_);
  OrDie(opened.status(), "transaction component");
  tc_ = std::move(*opened);
  OrDie(tc_->WaitServing(RealRuntime().Now() + seconds(60)), "serving");
  client_ = Client::FromService(tc_.get(), {});
  Load();
}

DirectStore::~DirectStore() {
  client_.reset();
  tc_->Stop();
}

// Formats by hand: general formatting takes a tenth of the instructions of an update, which the programs measure.
std::string DirectStore::KeyOf(uint64_t i) {
  std::string key = "user000000000000";
  for (size_t at = key.size(); i != 0 && at > 4; i /= 10) key[--at] = static_cast<char>('0' + i % 10);
  return key;
}

void DirectStore::OrDie(const Status& status, std::string_view what) {
  if (!status.ok()) FailStop(Concat(what, ": ", status.ToString()));
}

void DirectStore::Load() {
  auto created = client_->CreateTable("t");
  OrDie(created.status(), "table");
  table_ = *created;
  TransactionOptions buffered;
  buffered.durability = Durability::kBuffered;
  std::string value(options_.value_bytes, '\0');
  Random random(1);
  for (uint64_t i = 0; i < options_.records;) {
    auto begun = client_->Begin(buffered);
    OrDie(begun.status(), "load");
    for (const uint64_t end = std::min(options_.records, i + kLoadBatch); i < end; ++i) {
      for (char& c : value) c = static_cast<char>(random.Next());
      OrDie(begun->Put(table_, KeyOf(i), value), "load");
    }
    OrDie(begun->Commit().status(), "load");
  }
  Settle();
}

void DirectStore::Settle() { OrDie(client_->DropCaches({.timeout = seconds(600)}), "settle"); }

void DirectStore::Seen::Add(std::string_view key, std::string_view value) {
  checksum = ExtendCrc32c(checksum, key.data(), key.size());
  checksum = ExtendCrc32c(checksum, value.data(), value.size());
  ++records;
}

template <typename Visit>
void DirectStore::ForEachDirectly(uint64_t first, uint64_t count, const Visit& visit) {
  dc::ScanCursor cursor{KeyOf(first), "", false};
  dc::RecordOperations::ScanReadAhead ahead;
  RecordBatch batch;
  while (count != 0 && !cursor.complete) {
    batch.Clear();
    dc::ScanBudget budget;
    budget.records = count;
    budget.bytes = kBatchBytes;
    OrDie(operations_->Scan(table_, Direction::kAscending, &cursor, &budget, UINT64_MAX, &batch, &ahead),
          "direct scan");
    for (RecordBatch::Iterator it(batch); it.Valid(); it.Next()) visit(it.record());
    count -= batch.size();
  }
}

DirectStore::Seen DirectStore::ScanDirectly(uint64_t first, uint64_t count) {
  Seen seen;
  ForEachDirectly(first, count, [&](const RecordView& record) { seen.Add(record.key, record.value); });
  return seen;
}

DirectStore::Seen DirectStore::ScanSerializably(uint64_t first, uint64_t count) {
  if (count * (options_.value_bytes + kMaxRecordOverheadBytes) > kBatchBytes) return ScanInteractively(first, count);
  Seen seen;
  OneScan scan(*client_, table_, {.low = KeyOf(first), .limit_records = count, .batch_bytes = kBatchBytes});
  while (scan.Next()) seen.Add(scan.key(), scan.value());
  OrDie(scan.status(), "scan");
  return seen;
}

DirectStore::Seen DirectStore::ScanInteractively(uint64_t first, uint64_t count) {
  Seen seen;
  auto begun = client_->Begin();
  OrDie(begun.status(), "scan");
  Scanner scanner =
      begun->OpenScanner(table_, {.low = KeyOf(first), .limit_records = count, .batch_bytes = kBatchBytes});
  while (scanner.Next()) seen.Add(scanner.key(), scanner.value());
  OrDie(scanner.status(), "scan");
  OrDie(begun->Commit().status(), "scan");
  return seen;
}

DirectStore::Seen DirectStore::ScanAndValidate(uint64_t first, uint64_t count, uint64_t* repeated,
                                               const std::function<void()>& between) {
  std::vector<Remembered> remembered;
  for (;; ++*repeated) {
    Seen seen;
    remembered.clear();
    auto begun = client_->Begin();
    OrDie(begun.status(), "scan");
    ForEachDirectly(first, count, [&](const RecordView& record) {
      seen.Add(record.key, record.value);
      remembered.push_back(Remember(record));
    });
    if (between) between();
    size_t next = 0;
    bool same = true;
    ForEachDirectly(first, count, [&](const RecordView& record) {
      same = same && next < remembered.size() && remembered[next] == Remember(record);
      ++next;
    });
    if (same && next == remembered.size()) {
      OrDie(begun->Commit().status(), "scan");
      return seen;
    }
    OrDie(begun->Abort(), "scan");
  }
}

}  // namespace deut
