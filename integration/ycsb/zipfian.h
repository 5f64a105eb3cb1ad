// Zipfian: ranks 0 .. n-1; rank r is drawn with a probability proportional to 1 / (r + 1)^theta.
// It follows the method of Gray, Sundaresan, Englert, Baclawski and Weinberger ("Quickly generating billion-record
// synthetic databases", SIGMOD 1994). The first two ranks are drawn exactly, the others by inverting the integral
// that approximates the sum. A draw costs one power.
// `n` may grow. Grow extends the normalising sum, in constant time for any step. Beyond the first terms it uses the
// Euler-Maclaurin formula, whose error is far below that of the method.
// absl::zipf_distribution wants an exponent above 1, and YCSB's is 0.99; nor can its n grow.
// Thread-safety: none; each worker has its own.
#ifndef INTEGRATION_YCSB_ZIPFIAN_H_
#define INTEGRATION_YCSB_ZIPFIAN_H_

#include <cstdint>

#include "common/runtime/random.h"

namespace deut::ycsb {

// Returns the sum of i^-theta over first <= i <= last; 0 if the interval is empty.
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
