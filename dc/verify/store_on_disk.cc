#include "dc/verify/store_on_disk.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/part_scanner.h"
#include "dc/server/state_file.h"

namespace deut::dc {
namespace {

std::string KeyOf(int i) { return Concat("key ", absl::Dec(i, absl::kZeroPad6)); }

}  // namespace

RecordStoreOptions StoreOnDisk::SmallPages() {
  RecordStoreOptions options;
  options.tree.leaf_page_bytes = 1024;
  options.tree.inner_page_bytes = 512;
  options.tree.leaf_chain_length = 4;
  options.tree.inner_chain_length = 2;
  options.store.segment_bytes = 64 << 10;
  options.store.append_buffer_bytes = 64 << 10;
  options.max_pages = 1 << 20;
  // The files depend on the calls alone. A background thread would write at times of its own: a part that it appends
  // after the last checkpoint is named by none, so damage there is no damage.
  options.cleaner.interval = Duration();
  options.scrubber.bytes_per_second = 0;
  options.merge_interval = std::chrono::hours(24);
  return options;
}

StoreOnDisk::StoreOnDisk() : StoreOnDisk(NewMemoryStorage(RealRuntime()), SmallPages()) {}
StoreOnDisk::StoreOnDisk(std::unique_ptr<Storage> storage, const RecordStoreOptions& options)
    : storage_(std::move(storage)), options_(options) {}
StoreOnDisk::~StoreOnDisk() = default;

void StoreOnDisk::Start() {
  DEUT_CHECK(storage_->CreateDirectory(std::string(kDirectory)).ok());
  DcState state;
  state.dc = kDc;
  state.number = IncarnationNumber(++incarnation_);
  state.incarnation = DcIncarnation(0x1000 + incarnation_);
  DEUT_CHECK(StateFile(*storage_, std::string(kDirectory)).Save(state).ok());
  const RecordStore::Location home{*storage_, PathOf("pages"), kDc, DcIncarnation(incarnation_)};
  auto opened = RecordStore::Open(RealRuntime(), home, options_);
  DEUT_CHECK(opened.ok());
  store_ = std::move(*opened);
  store_->operations().BeginStream();
  // Positions and timestamps continue above those of an earlier incarnation: there is at least one position for each
  // timestamp.
  log_.GoOnAfter(store_->recovered().commit);
}

void StoreOnDisk::Stop() {
  Flush();
  store_.reset();
}

Status StoreOnDisk::TryStart() {
  const RecordStore::Location home{*storage_, PathOf("pages"), kDc, DcIncarnation(incarnation_ + 1)};
  return RecordStore::Open(RealRuntime(), home, options_).status();
}

void StoreOnDisk::Create(TableId table, const TableOptions& options) {
  Entry(LogEntryKind::kCreateTable, table, Concat("table ", table.value), EncodeTableOptions(options));
}
void StoreOnDisk::LowWater() { Entry(LogEntryKind::kLowWater, TableId(), {}, {}); }
void StoreOnDisk::Drop(TableId table) {
  Entry(LogEntryKind::kDropTable, table, Concat("table ", table.value), {});
  keys_.erase(table);
}
void StoreOnDisk::Put(TableId table, std::string_view key, std::string_view value) {
  Entry(LogEntryKind::kPut, table, key, value);
  keys_[table][std::string(key)] = true;
}
void StoreOnDisk::Delete(TableId table, std::string_view key) {
  Entry(LogEntryKind::kDelete, table, key, {});
  keys_[table].erase(std::string(key));
}
uint64_t StoreOnDisk::records(TableId table) const { return keys_.at(table).size(); }

void StoreOnDisk::Entry(LogEntryKind kind, TableId table, std::string_view key, std::string_view value) {
  log_.Add(kind, table, key, value);
}

void StoreOnDisk::Flush() {
  const LogBatch batch = log_.Take();
  if (batch.to <= batch.from) return;
  DEUT_CHECK(store_->operations().ApplyBatch(batch, batch.from).ok());
}

void StoreOnDisk::Checkpoint() {
  Flush();
  DEUT_CHECK(store_->Checkpoint([this] { return Position{log_.end(), 1}; }).ok());
}

uint64_t StoreOnDisk::Counter(std::string_view name) {
  std::vector<CounterValue> counters;
  store_->AppendCounters(&counters);
  const auto found = std::ranges::find(counters, name, &CounterValue::name);
  DEUT_CHECK(found != counters.end());
  return found->value;
}

// The reaper frees the pages of a dropped table on a thread of its own. A checkpoint before its end has images of pages
// that no root leads to. The checkpoint after the drop has handed the table to the reaper.
void StoreOnDisk::WaitForReaper() {
  while (Counter("dropped_pages_freed") == 0 || Counter("tables_being_freed") != 0) {
    RealRuntime().SleepUntil(RealRuntime().Now() + std::chrono::milliseconds(1));
  }
}

void StoreOnDisk::Fill(int records) {
  Start();
  constexpr TableId kDropped{5};
  for (const TableId table : {kAccounts, kOrders, kDropped}) Create(table);
  for (int i = 0; i < records; ++i) {
    Put(kAccounts, KeyOf(i), std::string(20, static_cast<char>('a' + i % 26)));
    if (i % 10 == 0) Put(kOrders, KeyOf(i), "an order");
    if (i % 5 == 0) Put(kDropped, KeyOf(i), "gone soon");
  }
  Checkpoint();
  Drop(kDropped);
  for (int i = 0; i < records; i += 3) Put(kAccounts, KeyOf(i), "changed to something else");
  for (int i = 0; i < records; i += 7) Delete(kAccounts, KeyOf(i));
  Checkpoint();
  WaitForReaper();
  LowWater();
  for (int i = 0; i < records; i += 50) Put(kAccounts, KeyOf(i), "changed again");
  Checkpoint();
  for (int i = 1; i < records; i += 40) Put(kAccounts, KeyOf(i), "and once more, longer than before");
  // Pages all of whose records have changed are written as a whole, so the checkpoint before names other base parts.
  for (int i = 0; i < records / 2; i += 10) Put(kOrders, KeyOf(i), "an order that was changed");
  Checkpoint();
  Stop();
}

std::vector<std::string> StoreOnDisk::Files() {
  std::vector<std::string> files;
  for (const std::string& directory : {std::string(kDirectory), PathOf("pages")}) {
    const auto names = storage_->List(directory);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      if (name != StateFile::kLockName && name != "pages") files.push_back(Concat(directory, "/", name));
    }
  }
  return files;
}

std::map<std::string, std::string> StoreOnDisk::Bytes() {
  std::map<std::string, std::string> bytes;
  for (const std::string& path : Files()) bytes[path] = Read(path);
  return bytes;
}

std::string StoreOnDisk::Read(const std::string& path) {
  const auto file = storage_->Open(path, {});
  DEUT_CHECK(file.ok());
  std::string bytes(*(*file)->Size(), '\0');
  DEUT_CHECK(*(*file)->Read(0, bytes.data(), bytes.size()) == bytes.size());
  return bytes;
}

void StoreOnDisk::Write(const std::string& path, uint64_t offset, std::string_view bytes) {
  const auto file = storage_->Open(path, {.writable = true});
  DEUT_CHECK(file.ok() && (*file)->Write(offset, bytes.data(), bytes.size()).ok());
}

void StoreOnDisk::Replace(const std::string& path, std::string_view bytes) {
  const auto file = storage_->Open(path, {.create = true, .writable = true});
  DEUT_CHECK(file.ok() && (*file)->Truncate(0).ok() && (*file)->Write(0, bytes.data(), bytes.size()).ok());
}

void StoreOnDisk::Flip(const std::string& path, uint64_t offset, int bit) {
  const auto file = storage_->Open(path, {.writable = true});
  char byte = 0;
  DEUT_CHECK(file.ok() && *(*file)->Read(offset, &byte, 1) == 1);
  byte = static_cast<char>(byte ^ (1 << bit));
  DEUT_CHECK((*file)->Write(offset, &byte, 1).ok());
}

std::vector<StoreOnDisk::Part> StoreOnDisk::Parts() {
  std::vector<Part> parts;
  for (const std::string& path : Files()) {
    SegmentKind kind;
    uint64_t number;
    if (!ParseSegmentName(path.substr(path.rfind('/') + 1), &kind, &number)) continue;
    const auto file = storage_->Open(path, {.direct = true});
    DEUT_CHECK(file.ok());
    PartScanner scanner(**file, number, kSegmentHeaderBytes, *(*file)->Size());
    for (;;) {
      const auto part = scanner.Next();
      DEUT_CHECK(part.ok());
      if (!part->has_value()) break;
      parts.push_back(Part{path, (*part)->header, (*part)->address, std::string((*part)->payload)});
    }
  }
  return parts;
}

void StoreOnDisk::Put(const Part& part) {
  std::string bytes(PartBytesInUnits(part.payload.size()), '\0');
  EncodePart(part.header, part.address, part.payload, bytes.data());
  Write(part.path, part.address.offset(), bytes);
}

}  // namespace deut::dc
