#include "integration/ycsb/zipfian.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace deut::ycsb {
namespace {

// The terms up to here are summed one by one. From here on, the formula's first neglected term is below 1e-17 of the
// sum.
constexpr uint64_t kExactTerms = 10'000;
constexpr uint64_t kShortStep = 8;

}  // namespace

double ZetaSum(uint64_t first, uint64_t last, double theta) {
  double sum = 0;
  uint64_t i = first;
  while (i <= last && (i <= kExactTerms || last - i < kShortStep)) sum += std::pow(static_cast<double>(i++), -theta);
  if (i > last) return sum;
  // Euler-Maclaurin: the sum over [i, last] = integral + half of both ends + (f'(last) - f'(i)) / 12 + ...
  const double a = static_cast<double>(i), b = static_cast<double>(last);
  const double fa = std::pow(a, -theta), fb = std::pow(b, -theta);
  const double integral = (b * fb - a * fa) / (1 - theta);
  return sum + integral + (fa + fb) / 2 + theta * (fa / a - fb / b) / 12;
}

Zipfian::Zipfian(uint64_t n, double theta)
    : n_(n), theta_(theta), alpha_(1 / (1 - theta)), half_power_(std::pow(0.5, theta)), zeta_(ZetaSum(1, n, theta)) {
  DEUT_CHECK(n >= 1);
  DEUT_CHECK(theta >= 0 && theta < 1);
  SetEta();
}

void Zipfian::Grow(uint64_t n) {
  DEUT_DCHECK(n >= n_);
  if (n == n_) return;
  zeta_ += ZetaSum(n_ + 1, n, theta_);
  n_ = n;
  SetEta();
}

void Zipfian::SetEta() {
  // With one or two ranks, Next decides before it uses eta_.
  if (n_ <= 2) return;
  eta_ = (1 - std::pow(2 / static_cast<double>(n_), 1 - theta_)) / (1 - (1 + half_power_) / zeta_);
}

uint64_t Zipfian::Next(Random& random) const {
  const double u = random.Unit();
  const double place = u * zeta_;
  if (place < 1 || n_ == 1) return 0;
  if (place < 1 + half_power_ || n_ == 2) return 1;
  const auto rank = static_cast<uint64_t>(static_cast<double>(n_) * std::pow(eta_ * u - eta_ + 1, alpha_));
  return std::min(rank, n_ - 1);
}

}  // namespace deut::ycsb
