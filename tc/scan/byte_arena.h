// ByteArena: memory for many short texts that are freed together. A copy keeps its address until Clear. Clear keeps
// one chunk, so an arena that is filled with little again and again allocates nothing.
// Thread-safety: one thread at a time.
#ifndef TC_SCAN_BYTE_ARENA_H_
#define TC_SCAN_BYTE_ARENA_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace deut::tc {

class ByteArena {
 public:
  static constexpr size_t kChunk = 8 << 10;

  // Returns a copy of the text, valid until Clear.
  std::string_view Copy(std::string_view text) {
    if (text.empty()) return {};
    if (text.size() > left_) Grow(text.size());
    char* const copy = next_;
    std::memcpy(copy, text.data(), text.size());
    next_ += text.size();
    left_ -= text.size();
    return {copy, text.size()};
  }

  void Clear() {
    if (chunks_.empty()) return;
    if (chunks_.size() > 1 || chunks_.front().bytes != kChunk) KeepOne();
    next_ = chunks_.front().memory.get();
    left_ = kChunk;
  }

  // Bytes of memory that the arena holds.
  size_t capacity() const { return capacity_; }

 private:
  struct Chunk {
    std::unique_ptr<char[]> memory;
    size_t bytes;
  };

  void Grow(size_t bytes) {
    const size_t chunk = std::max(bytes, kChunk);
    next_ = chunks_.emplace_back(std::make_unique_for_overwrite<char[]>(chunk), chunk).memory.get();
    left_ = chunk;
    capacity_ += chunk;
  }
  void KeepOne() {
    const auto small = std::ranges::find(chunks_, kChunk, &Chunk::bytes);
    Chunk kept =
        small == chunks_.end() ? Chunk{std::make_unique_for_overwrite<char[]>(kChunk), kChunk} : std::move(*small);
    chunks_.clear();
    chunks_.push_back(std::move(kept));
    capacity_ = kChunk;
  }

  std::vector<Chunk> chunks_;
  char* next_ = nullptr;
  size_t left_ = 0;
  size_t capacity_ = 0;
};

}  // namespace deut::tc

#endif  // TC_SCAN_BYTE_ARENA_H_
