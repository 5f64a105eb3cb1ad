// AlignedBuffer: memory for direct transfers. Its address is aligned to kIoAlignment, its size is a multiple of
// kIoAlignment, and it is zeroed at first.
// Thread-safety: as a plain array. Ownership: owns its memory; a move leaves the source empty.
#ifndef COMMON_IO_ALIGNED_BUFFER_H_
#define COMMON_IO_ALIGNED_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "common/io/storage.h"

namespace deut {

constexpr uint64_t RoundUpToIo(uint64_t bytes) { return (bytes + kIoAlignment - 1) / kIoAlignment * kIoAlignment; }
constexpr uint64_t RoundDownToIo(uint64_t bytes) { return bytes / kIoAlignment * kIoAlignment; }

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Allocates at least `bytes`, rounded up to kIoAlignment.
  explicit AlignedBuffer(size_t bytes)
      : size_(RoundUpToIo(bytes)), data_(static_cast<char*>(::operator new(size_, std::align_val_t(kIoAlignment)))) {
    std::memset(data_.get(), 0, size_);
  }
  AlignedBuffer(AlignedBuffer&& other) noexcept : size_(std::exchange(other.size_, 0)), data_(std::move(other.data_)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    size_ = std::exchange(other.size_, 0);
    data_ = std::move(other.data_);
    return *this;
  }

  char* data() { return data_.get(); }
  const char* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(char* data) const { ::operator delete(data, std::align_val_t(kIoAlignment)); }
  };
  size_t size_ = 0;
  std::unique_ptr<char, Free> data_;
};

}  // namespace deut

#endif  // COMMON_IO_ALIGNED_BUFFER_H_
