// ModelFile: the content of one file of a disk model. It keeps the present content, and for every sector and the size
// the values that a crash may leave instead. (The rules of a crash are in faulty_disk.h.)
//
// The possible contents of a sector are its `older` versions, oldest first, and the present one. The first older
// version is durable. A sector without an entry in `uncovered_` is durable as it is.
// Every write has a number, drawn when it begins. A synchronous write covers its sectors when it completes. A sync
// covers, when it completes, the newest version of each sector that was complete when the sync began.
// Thread-safety: none (its disk's mutex).
#ifndef COMMON_IO_MODEL_FILE_H_
#define COMMON_IO_MODEL_FILE_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/runtime/random.h"

namespace deut {

constexpr uint64_t kSectorBytes = 512;

// The bytes of a file, zeros where nothing was written. A copy is cheap: both share the chunks that neither has
// written since.
class SparseBytes {
 public:
  SparseBytes() = default;
  // Thread-safety: a copy counts as a change of `other`.
  SparseBytes(const SparseBytes& other);
  SparseBytes& operator=(const SparseBytes&) = delete;
  void Read(uint64_t offset, char* data, uint64_t bytes) const;
  void Write(uint64_t offset, const char* data, uint64_t bytes);
  void Zero(uint64_t offset, uint64_t bytes);

 private:
  static constexpr uint64_t kChunkBytes = 16 << 10;
  using Chunk = std::array<char, kChunkBytes>;
  struct ChunkRef {
    std::shared_ptr<Chunk> chunk;
    mutable bool shared = false;  // perhaps shared with a copy, so copied before a change
  };
  // Returns the chunk, ready to be changed.
  static Chunk& MakeUnshared(ChunkRef* ref);

  std::map<uint64_t, ChunkRef> chunks_;
};

class ModelFile {
 public:
  // `models_crashes`: false for memory storage, which never forgets anything.
  explicit ModelFile(bool models_crashes) : models_crashes_(models_crashes) {}

  uint64_t size() const { return size_; }
  // Returns the number of bytes read; fewer than `bytes` at the end of the file.
  uint64_t Read(uint64_t offset, char* data, uint64_t bytes) const;

  // Returns the number of the write, for CompleteWrite or AbandonWrite.
  uint64_t BeginWrite(uint64_t offset, const char* data, uint64_t bytes);
  void CompleteWrite(uint64_t number, bool covers);
  // The write failed, or its result will never be reported. No later sync covers the bytes that it wrote.
  void AbandonWrite(uint64_t number);

  struct SyncTicket {
    uint64_t last_write = 0;
    std::vector<uint64_t> in_flight;
    uint64_t size = 0, durable_size = 0;
  };
  SyncTicket BeginSync();
  enum class SyncEnd : uint8_t {
    kCovers,
    kCoversNothing,
    kFails,  // no other sync ever covers the bytes that this one should have covered
  };
  void EndSync(const SyncTicket& ticket, SyncEnd end);

  void Resize(uint64_t bytes);
  void CoverSize() { durable_size_ = size_; }

  // Changes the bytes themselves and every remembered version of them.
  void FlipBit(uint64_t offset, int bit);

  // `keep_in_1024`: the probability, in 1024ths, that an uncovered change stays.
  void Crash(Random* random, uint32_t keep_in_1024);

 private:
  struct Version {
    uint64_t number = 0;
    bool abandoned = false;
    std::array<char, kSectorBytes> bytes;
  };
  struct Sector {
    uint64_t number = 0;     // number of the write that made the present content
    bool abandoned = false;  // no sync covers the present content any more
    std::vector<Version> older;
  };
  struct Write {
    uint64_t number, offset, bytes;
  };

  // Keeps the sectors' present content as an older version, before write `number` changes it.
  void KeepOldSectors(uint64_t offset, uint64_t bytes, uint64_t number);
  // Makes the newest version with number <= last and not in `except` the durable one. True if that is the present
  // content.
  static bool Cover(Sector* sector, uint64_t last, const std::vector<uint64_t>& except);
  Write TakeInFlight(uint64_t number);

  const bool models_crashes_;
  SparseBytes bytes_;  // zeros beyond size_
  uint64_t size_ = 0;
  uint64_t durable_size_ = 0;
  uint64_t last_number_ = 0;
  std::map<uint64_t, Sector> uncovered_;  // by sector number; ordered, so that a seed always has the same effect
  std::vector<Write> in_flight_;
  uint32_t syncs_in_flight_ = 0;
};

}  // namespace deut

#endif  // COMMON_IO_MODEL_FILE_H_
