// CollectorFixture: a record table and the parts of the collector that every one of them needs, for tests that drive one
// part step by step on their own thread. Transactions write their keys as the record manager does.
//
// Thread-safety: one thread. Ownership: of all transactions; those that a test has taken over are collected at the end.
#ifndef TC_MVCC_COLLECTOR_FIXTURE_H_
#define TC_MVCC_COLLECTOR_FIXTURE_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "gtest/gtest.h"
#include "tc/mvcc/entry_remover.h"
#include "tc/mvcc/read_cache.h"
#include "tc/mvcc/record_table.h"
#include "tc/mvcc/record_version.h"
#include "tc/mvcc/unapplied_commits.h"
#include "tc/mvcc/unlinker.h"
#include "tc/mvcc/version_chain.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

class CollectorFixture : public ::testing::Test {
 protected:
  static constexpr TableId kTable{1};

  // `cache_bytes`: budget of a read cache that keeps every written version; 0: there is none.
  explicit CollectorFixture(uint64_t cache_bytes = 0)
      : cache(cache_bytes == 0 ? nullptr : std::make_unique<ReadCache>(cache_bytes, true, domain, records)) {}
  ~CollectorFixture() override {
    CollectThrough(kEveryPosition);
    unlinker.SweepPostings(true);
  }

  // Opens a transaction and installs a version of each key.
  TransactionRecord* Write(uint64_t timestamp, std::initializer_list<std::string_view> keys) {
    auto* const record = new TransactionRecord(Timestamp{timestamp});
    ReclamationDomain::Guard guard(domain);
    uint32_t sequence = 0;
    for (const std::string_view key : keys) {
      const uint64_t hash = RecordTable::Hash(kTable, key);
      WriteItem* const item = record->MakeWriteSet().Publish(kTable, key, hash);
      item->entry = records.FindOrCreate(hash, kTable, key);
      item->version = RecordVersion::Create(record, ++sequence, false, "v");
      HeadWord::Value seen = item->entry->word.Load();
      do item->version->older.store(LiveHead(seen.head));
      while (!InstallVersion(*item->entry, seen, item->version, Timestamp{0}, domain));
    }
    return record;
  }
  // Commits it at the LSN ten times its timestamp, and has it taken over.
  void Commit(TransactionRecord* record) {
    const Lsn lsn = LsnOf(record->timestamp().value);
    EXPECT_TRUE(record->TryStartCommit());
    record->ForEachWrite([&](const WriteItem& item) { item.version->SetPlace(lsn); });
    record->FinishCommit(lsn);
    commits.CountArrival();
    commits.Add(record);
    commits.Settle();
  }
  TransactionRecord* Commit(uint64_t timestamp, std::initializer_list<std::string_view> keys) {
    TransactionRecord* const record = Write(timestamp, keys);
    Commit(record);
    return record;
  }
  static Lsn LsnOf(uint64_t timestamp) { return Lsn{timestamp * 10}; }

  // Collects the commits that were taken over, up to this position.
  void CollectThrough(Position through) {
    std::vector<FinishedTransaction> gone;
    for (FinishedTransaction next; commits.PopThrough(through, &next);) gone.push_back(std::move(next));
    unlinker.Collect(std::move(gone));
  }
  void CollectThrough(uint64_t timestamp) { CollectThrough(Position{LsnOf(timestamp), UINT32_MAX}); }

  RecordEntry* Find(std::string_view key) {
    ReclamationDomain::Guard guard(domain);
    return records.Find(RecordTable::Hash(kTable, key), kTable, key);
  }
  // Timestamps of the key's versions, the newest first; "-": the key has no entry.
  std::string Chain(std::string_view key) {
    ReclamationDomain::Guard guard(domain);
    const RecordEntry* const entry = records.Find(RecordTable::Hash(kTable, key), kTable, key);
    if (entry == nullptr) return "-";
    std::string text;
    for (const RecordVersion* v = entry->word.Load().head; v != nullptr; v = v->older.load())
      text += (text.empty() ? "" : " ") + std::to_string(v->transaction->timestamp().value);
    return text;
  }

  ReclamationDomain domain;
  RecordTable records{domain, 4};
  const std::unique_ptr<ReadCache> cache;
  Timestamp low_water{1000};
  uint64_t released = 0;
  UnappliedCommits commits;
  EntryRemover entries{domain, records, 100};
  Unlinker unlinker{{.low_water = [this] { return low_water; },
                     .released = [this](uint64_t bytes) { released += bytes; },
                     .read_cache = cache.get()},
                    domain,
                    records,
                    commits,
                    entries};
};

}  // namespace deut::tc

#endif  // TC_MVCC_COLLECTOR_FIXTURE_H_
