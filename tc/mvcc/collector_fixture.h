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
      : cache_(cache_bytes == 0 ? nullptr : std::make_unique<ReadCache>(cache_bytes, true, domain_, records_)) {}
  ~CollectorFixture() override {
    CollectThrough(kEveryPosition);
    unlinker_.SweepPostings(true);
  }

  // Opens a transaction and installs a version of each key.
  TransactionRecord* Write(uint64_t timestamp, std::initializer_list<std::string_view> keys) {
    auto* const record = new TransactionRecord(Timestamp{timestamp});
    ReclamationDomain::Guard guard(domain_);
    uint32_t sequence = 0;
    for (const std::string_view key : keys) {
      const uint64_t hash = RecordTable::Hash(kTable, key);
      WriteItem* const item = record->MakeWriteSet().Publish(kTable, key, hash);
      item->entry = records_.FindOrCreate(hash, kTable, key);
      item->version = RecordVersion::Create(record, ++sequence, false, "v");
      HeadWord::Value seen = item->entry->word.Load();
      do item->version->older.store(LiveHead(seen.head));
      while (!InstallVersion(*item->entry, seen, item->version, Timestamp{0}, domain_));
    }
    return record;
  }
  // Commits it at the LSN ten times its timestamp, and has it taken over.
  void Commit(TransactionRecord* record) {
    const Lsn lsn = LsnOf(record->timestamp().value);
    EXPECT_TRUE(record->TryStartCommit());
    record->ForEachWrite([&](const WriteItem& item) { item.version->SetPlace(lsn); });
    record->FinishCommit(lsn);
    commits_.CountArrival();
    commits_.Add(record);
    commits_.Settle();
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
    for (FinishedTransaction next; commits_.PopThrough(through, &next);) gone.push_back(std::move(next));
    unlinker_.Collect(std::move(gone));
  }
  void CollectThrough(uint64_t timestamp) { CollectThrough(Position{LsnOf(timestamp), UINT32_MAX}); }

  RecordEntry* Find(std::string_view key) {
    ReclamationDomain::Guard guard(domain_);
    return records_.Find(RecordTable::Hash(kTable, key), kTable, key);
  }
  // Timestamps of the key's versions, the newest first; "-": the key has no entry.
  std::string Chain(std::string_view key) {
    ReclamationDomain::Guard guard(domain_);
    const RecordEntry* const entry = records_.Find(RecordTable::Hash(kTable, key), kTable, key);
    if (entry == nullptr) return "-";
    std::string text;
    for (const RecordVersion* v = entry->word.Load().head; v != nullptr; v = v->older.load())
      text += (text.empty() ? "" : " ") + std::to_string(v->transaction->timestamp().value);
    return text;
  }

  ReclamationDomain domain_;
  RecordTable records_{domain_, 4};
  const std::unique_ptr<ReadCache> cache_;
  Timestamp low_water_{1000};
  uint64_t released_ = 0;
  UnappliedCommits commits_;
  EntryRemover entries_{domain_, records_, 100};
  Unlinker unlinker_{{.low_water = [this] { return low_water_; },
                      .released = [this](uint64_t bytes) { released_ += bytes; },
                      .read_cache = cache_.get()},
                     domain_,
                     records_,
                     commits_,
                     entries_};
};

}  // namespace deut::tc

#endif  // TC_MVCC_COLLECTOR_FIXTURE_H_
