// LogDamage flips single bits in the files of a redo log. It flips only bits in the part of the log that a later part
// proves to have been durable: there the store must notice every change. (The end of a log cannot be told from a torn
// write.)
// Thread-safety: none; no store may be open meanwhile. Ownership: the disk outlives it.
#ifndef INTEGRATION_BUGS_DAMAGE_H_
#define INTEGRATION_BUGS_DAMAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/io/faulty_disk.h"
#include "common/runtime/random.h"

namespace deut::bugs {

class LogDamage {
 public:
  LogDamage(FaultyDisk& disk, const std::string& directory);

  // Flips one bit. Returns false if there is nothing to flip.
  bool Do(Random& random);
  // Flips the bit back.
  bool Undo();

 private:
  struct Written {
    std::string path;
    uint64_t offset;  // of a piece of 4 KiB that is not all zeros
  };

  FaultyDisk& disk_;
  std::vector<Written> written_;  // in the order of the log
  std::string path_;
  uint64_t offset_ = 0;
  int bit_ = 0;
};

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_DAMAGE_H_
