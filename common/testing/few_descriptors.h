// FewDescriptors: while it lives, the process has only a given number of free file descriptors.
// Thread-safety: none; other threads may take the free ones.
#ifndef COMMON_TESTING_FEW_DESCRIPTORS_H_
#define COMMON_TESTING_FEW_DESCRIPTORS_H_

#include <fcntl.h>
#include <sys/resource.h>

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/descriptor.h"

namespace deut::testing {

class FewDescriptors {
 public:
  explicit FewDescriptors(size_t free_descriptors) {
    DEUT_CHECK(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    Descriptor next = Open();
    DEUT_CHECK(next.valid());
    // Takes all free descriptors below the highest one in use, and as many above it as needed.
    const rlimit low{.rlim_cur = static_cast<rlim_t>(next.get()) + 64, .rlim_max = before_.rlim_max};
    DEUT_CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
    for (; next.valid(); next = Open()) taken_.push_back(std::move(next));
    DEUT_CHECK(free_descriptors <= taken_.size());
    taken_.resize(taken_.size() - free_descriptors);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  static Descriptor Open() { return Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

  rlimit before_{};
  std::vector<Descriptor> taken_;
};

}  // namespace deut::testing

#endif  // COMMON_TESTING_FEW_DESCRIPTORS_H_
