// StoreOnDisk: a data component's directory on a storage, for tests. The data component itself writes it, with small
// pages, so that a few thousand records make trees of several levels. The class also has methods to damage it.
// Thread-safety: one thread. Ownership: owns the storage.
#ifndef DC_VERIFY_STORE_ON_DISK_H_
#define DC_VERIFY_STORE_ON_DISK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment_format.h"
#include "dc/record_ops/log_maker.h"
#include "dc/store/record_store.h"
#include "protocol/log_batch.h"

namespace deut::dc {

class StoreOnDisk {
 public:
  static constexpr DcId kDc{7};
  static constexpr TableId kAccounts{3};
  static constexpr TableId kOrders{4};
  static constexpr std::string_view kDirectory = "/dc";

  // Uses a storage in memory, with SmallPages().
  StoreOnDisk();
  // Continues with the content of `storage`.
  StoreOnDisk(std::unique_ptr<Storage> storage, const RecordStoreOptions& options);
  ~StoreOnDisk();
  static RecordStoreOptions SmallPages();

  // --- The data component. It must be stopped before the methods below.
  void Start();
  void Stop();
  // Opens the records and closes them again, as a start would. Returns the error of a start that is refused.
  Status TryStart();
  void Create(TableId table, const TableOptions& options = {});
  void Drop(TableId table);
  void Put(TableId table, std::string_view key, std::string_view value);
  void Delete(TableId table, std::string_view key);
  // From now on tombstones before this point may be dropped.
  void LowWater();
  void Checkpoint();
  // Writes tables, splits, updates in delta parts, deletions, a dropped table, and several checkpoints, the last two
  // of which differ. Stops the data component.
  void Fill(int records);
  // REQUIRES: the data component is started.
  RecordStore& running() { return *store_; }
  // REQUIRES: the same.
  uint64_t Counter(std::string_view name);
  // Returns the number of records in the table.
  uint64_t records(TableId table) const;

  // --- The files.
  Storage& storage() { return *storage_; }
  static std::string PathOf(std::string_view name) { return std::string(kDirectory) + "/" + std::string(name); }
  // Returns the paths of all files except the lock.
  std::vector<std::string> Files();
  std::map<std::string, std::string> Bytes();
  std::string Read(const std::string& path);
  void Write(const std::string& path, uint64_t offset, std::string_view bytes);
  // Replaces the whole content of the file.
  void Replace(const std::string& path, std::string_view bytes);
  void Flip(const std::string& path, uint64_t offset, int bit);

  // A part as found in a segment.
  struct Part {
    std::string path;
    PartHeader header;
    PageAddress address;
    std::string payload;
  };
  // Returns the parts of all segments, by segment and offset.
  std::vector<Part> Parts();
  // Writes the part to its address, with a right checksum. REQUIRES: it is as long as the existing part.
  void Put(const Part& part);

 private:
  void Entry(LogEntryKind kind, TableId table, std::string_view key, std::string_view value);
  void Flush();
  void WaitForReaper();

  const std::unique_ptr<Storage> storage_;
  const RecordStoreOptions options_;
  uint64_t incarnation_ = 0;
  std::unique_ptr<RecordStore> store_;
  LogMaker log_;
  std::map<TableId, std::map<std::string, bool>> keys_;
};

}  // namespace deut::dc

#endif  // DC_VERIFY_STORE_ON_DISK_H_
