// Zipfian: ranks 0 .. n-1, rank r drawn with a probability proportional to 1 / (r + 1)^theta.
// By the method of Gray, Sundaresan, Englert, Baclawski and Weinberger ("Quickly generating billion-record synthetic databases",
// SIGMOD 1994): the first two ranks exactly, the others by inverting the integral that approximates the sum. One power a draw.
// `n` may grow: the normalising sum is carried on from where it was, in constant time for any step (beyond the first terms by the
// Euler-Maclaurin formula, whose error is far below that of the method).
// Thread-safety: none; each worker has its own.
#ifndef INTEGRATION_YCSB_ZIPFIAN_H_
#define INTEGRATION_YCSB_ZIPFIAN_H_

#include <cstdint>

#include "common/runtime/random.h"

namespace deut::ycsb {

// The sum of i^-theta over first <= i <= last; 0 if there is none.
double ZetaSum(uint64_t first, uint64_t last, double theta);

class Zipfian {
 public:
  // REQUIRES: n >= 1, 0 <= theta < 1 (0 is the uniform distribution).
  Zipfian(uint64_t n, double theta);

  uint64_t n() const { return n_; }
  // REQUIRES: n >= n().
  void Grow(uint64_t n);

  uint64_t Next(Random& random) const;

 private:
  void SetEta();

  uint64_t n_;
  double theta_;
  double alpha_;       // 1 / (1 - theta)
  double half_power_;  // 0.5^theta: the weight of rank 1
  double zeta_;        // the sum over all n
  double eta_ = 0;     // as in the paper
};

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_ZIPFIAN_H_
