// StoreOnDisk: for tests: a data component's directory on a storage, made by the data component itself: small pages, so that a few thousand
// records make trees of several levels; and ways to damage it.
// Thread-safety: one thread.
#ifndef DC_VERIFY_STORE_ON_DISK_H_
#define DC_VERIFY_STORE_ON_DISK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/io/storage.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment_format.h"
#include "dc/record_ops/log_maker.h"
#include "dc/record_ops/record_operations.h"
#include "protocol/log_batch.h"

namespace deut::dc {

class StoreOnDisk {
 public:
  static constexpr DcId kDc{7};
  static constexpr TableId kAccounts{3};
  static constexpr TableId kOrders{4};
  static constexpr std::string_view kDirectory = "/dc";

  // In memory, with SmallPages().
  StoreOnDisk();
  // What is there already is gone on with.
  StoreOnDisk(std::unique_ptr<Storage> storage, const RecordOperationsOptions& options);
  ~StoreOnDisk();
  static RecordOperationsOptions SmallPages();

  // --- The data component, which must be stopped for what follows.
  void Start();
  void Stop();
  void Create(TableId table);
  void Drop(TableId table);
  void Put(TableId table, std::string_view key, std::string_view value);
  void Delete(TableId table, std::string_view key);
  // Tombstones before this are given up from now on.
  void LowWater();
  void Checkpoint();
  // Tables, splits, updates in delta parts, deletions, a dropped table, and several checkpoints, the last two of them different; stopped.
  void Fill(int records);
  // REQUIRES: started.
  RecordOperations& operations() { return *operations_; }
  // How many records are in the table.
  uint64_t records(TableId table) const;

  // --- The files.
  Storage& storage() { return *storage_; }
  static std::string PathOf(std::string_view name) { return std::string(kDirectory) + "/" + std::string(name); }
  // Paths of all but the lock.
  std::vector<std::string> Files();
  std::map<std::string, std::string> Bytes();
  std::string Read(const std::string& path);
  void Write(const std::string& path, uint64_t offset, std::string_view bytes);
  // As it is, and nothing behind it.
  void Replace(const std::string& path, std::string_view bytes);
  void Flip(const std::string& path, uint64_t offset, int bit);

  // A part as it lies in a segment.
  struct Part {
    std::string path;
    PartHeader header;
    PageAddress address;
    std::string payload;
  };
  // Of all segments, by segment and offset.
  std::vector<Part> Parts();
  // Puts the part in its place, with a right checksum. REQUIRES: as long as the one that is there.
  void Put(const Part& part);

 private:
  void Entry(LogEntryKind kind, TableId table, std::string_view key, std::string_view value);
  void Flush();

  const std::unique_ptr<Storage> storage_;
  const RecordOperationsOptions options_;
  uint64_t incarnation_ = 0;
  std::unique_ptr<RecordOperations> operations_;
  LogMaker log_;
  std::map<TableId, std::map<std::string, bool>> keys_;
};

}  // namespace deut::dc

#endif  // DC_VERIFY_STORE_ON_DISK_H_
