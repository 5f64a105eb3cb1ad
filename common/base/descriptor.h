// Descriptor: owns a file descriptor of the operating system and closes it. None of the given
// libraries (Abseil, protobuf, gRPC) has such a class.
// Thread-safety: none. Ownership: the only owner; movable.
#ifndef COMMON_BASE_DESCRIPTOR_H_
#define COMMON_BASE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace deut {

class Descriptor {
 public:
  Descriptor() = default;
  // Takes ownership of `descriptor`; a negative number stands for none.
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() { Reset(); }
  Descriptor(Descriptor&& other) noexcept : descriptor_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      Reset();
      descriptor_ = other.Release();
    }
    return *this;
  }

  bool valid() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  // The caller owns the returned descriptor.
  [[nodiscard]] int Release() { return std::exchange(descriptor_, -1); }
  void Reset() {
    if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_ = -1;
};

}  // namespace deut

#endif  // COMMON_BASE_DESCRIPTOR_H_
