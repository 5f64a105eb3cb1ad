// KeyChooser: which of the records 0 .. n-1 the next operation is for. `n` grows while others insert.
//   uniform   every record alike
//   zipfian   Zipf over ranks, the ranks strewn over the records by a hash, so that popular records are not neighbours ("scrambled")
//   latest    Zipf over age: the newest record is the most popular
// The scrambling keeps a popular record popular while n grows: ranks are put to records as linear hashing puts keys to buckets, so
// that one more record takes over some ranks of one other, and moves nothing else.
// Thread-safety: none; each worker has its own.
#ifndef INTEGRATION_YCSB_KEY_CHOOSER_H_
#define INTEGRATION_YCSB_KEY_CHOOSER_H_

#include <cstdint>

#include "common/runtime/random.h"
#include "integration/ycsb/zipfian.h"

namespace deut::ycsb {

enum class Distribution : uint8_t { kUniform, kZipfian, kLatest };

// The record, of n, that stands for this rank.
uint64_t Scramble(uint64_t rank, uint64_t n);

class KeyChooser {
 public:
  // REQUIRES: n >= 1, 0 <= theta < 1.
  KeyChooser(Distribution distribution, uint64_t n, double theta) : distribution_(distribution), zipfian_(n, theta) {}

  // Of n records; n never goes down.
  uint64_t Next(Random& random, uint64_t n);

 private:
  const Distribution distribution_;
  Zipfian zipfian_;
};

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_KEY_CHOOSER_H_
