// KeyChooser chooses the record among 0 .. n-1 for the next operation. `n` grows while others insert.
//   uniform   every record is equally likely
//   zipfian   Zipf over ranks; a hash scatters the ranks over the records, so that popular records are not neighbours ("scrambled")
//   latest    Zipf over age: the newest record is the most popular
// A popular record stays popular while n grows. Ranks map to records as linear hashing maps keys to buckets. One more
// record takes over some ranks of one other record, and no other rank moves.
// Thread-safety: none; each worker has its own.
#ifndef INTEGRATION_YCSB_KEY_CHOOSER_H_
#define INTEGRATION_YCSB_KEY_CHOOSER_H_

#include <cstdint>

#include "common/runtime/random.h"
#include "integration/ycsb/zipfian.h"

namespace deut::ycsb {

enum class Distribution : uint8_t { kUniform, kZipfian, kLatest };

// Returns the record, among n, that this rank maps to.
uint64_t Scramble(uint64_t rank, uint64_t n);

class KeyChooser {
 public:
  // REQUIRES: n >= 1, 0 <= theta < 1.
  KeyChooser(Distribution distribution, uint64_t n, double theta) : distribution_(distribution), zipfian_(n, theta) {}

  // Draws one of n records. REQUIRES: n never decreases.
  uint64_t Next(Random& random, uint64_t n);

 private:
  const Distribution distribution_;
  Zipfian zipfian_;
};

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_KEY_CHOOSER_H_
