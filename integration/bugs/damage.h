// LogDamage: flips single bits in the files of a redo log, in the part of it of which a later part proves that it was durable: there every
// change of what was written must be noticed. (The end of a log cannot be told from a write that was torn.)
// Thread-safety: none; while no store is open. Ownership: the disk outlives it.
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
  LogDamage(FaultyDisk& disk, std::string directory);

  // Flips one bit; false if there is nothing to flip.
  bool Do(Random& random);
  // Flips it back.
  bool Undo();

 private:
  struct Written {
    std::string path;
    uint64_t offset;  // of 4 KiB that hold something
  };

  FaultyDisk& disk_;
  std::vector<Written> written_;  // in the order of the log
  std::string path_;
  uint64_t offset_ = 0;
  int bit_ = 0;
};

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_DAMAGE_H_
