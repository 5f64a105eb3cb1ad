// Input: a fuzzer's bytes, consumed one after the other to decide the next step. After the end, every byte is 0.
// Thread-safety: none. Ownership: views the bytes.
#ifndef INTEGRATION_FUZZ_INPUT_H_
#define INTEGRATION_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace deut::fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }
  // Returns a number below `limit`, which is at most 256.
  uint32_t Below(uint32_t limit) { return Byte() % limit; }
  // True one time in `n`, and never at the end of the input.
  bool OneIn(uint32_t n) { return Byte() % n == n - 1; }
  // Returns a small number in most cases, sometimes any number.
  uint64_t Number() {
    const uint8_t first = Byte();
    if (first < 0xF0) return first;
    uint64_t number = 0;
    for (int i = first & 0xF; i >= 0; i -= 2) number = number << 8 | Byte();
    return first == 0xFF ? ~uint64_t{0} - number : number;
  }
  // Returns at most `most` bytes of the input itself.
  std::string Text(size_t most) {
    const size_t bytes = std::min({size_t{Byte()}, most, rest_.size()});
    std::string text(rest_.substr(0, bytes));
    rest_.remove_prefix(bytes);
    return text;
  }
  // Returns a key: mostly one of few, so that keys coincide; otherwise any bytes, also none or too many.
  std::string Key() {
    const uint8_t kind = Byte();
    if (kind < 200) return std::string(1 + kind / 100, static_cast<char>('a' + kind % 10));
    if (kind < 250) return Text(40);
    return std::string(kind == 255 ? 5000 : 4096 + (kind - 250), 'k');
  }

 private:
  std::string_view rest_;
};

}  // namespace deut::fuzz

#endif  // INTEGRATION_FUZZ_INPUT_H_
