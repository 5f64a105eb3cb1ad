// Plays a fuzz test without libFuzzer: every file named on the command line, then a fixed number of
// seeded mutations of them. So a fuzz test is an ordinary test in every build that has no libFuzzer.
// Usage: NAME [--runs=N] FILE...
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr uint64_t kSeed = 20140901;
constexpr size_t kMaxGrowthBytes = 64;

void Play(const std::string& input) {
  // A copy of exactly this size on the heap, so that AddressSanitizer sees a read past the end.
  std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

// Changes, inserts, removes or truncates a few bytes.
std::string Mutate(std::string input, std::mt19937_64& random) {
  const uint64_t changes = 1 + random() % 8;
  for (uint64_t i = 0; i < changes; ++i) {
    const size_t at = input.empty() ? 0 : random() % input.size();
    switch (random() % 5) {
      case 0:
        if (!input.empty()) input[at] = static_cast<char>(random());
        break;
      case 1:
        if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << random() % 8));
        break;
      case 2:
        input.insert(at, 1 + random() % kMaxGrowthBytes, static_cast<char>(random()));
        break;
      case 3:
        if (!input.empty()) input.erase(at, 1 + random() % kMaxGrowthBytes);
        break;
      default:
        input.resize(at);
        break;
    }
  }
  return input;
}

}  // namespace

// An exception ends this program of a test, and the test fails.
int main(int argc, char** argv) {
  uint64_t runs = 0;
  std::vector<std::string> inputs = {""};
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--runs=", 7) == 0) {
      runs = std::strtoull(argv[i] + 7, nullptr, 10);
      continue;
    }
    std::ifstream file(argv[i], std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot read %s\n", argv[i]);
      return 1;
    }
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  for (const std::string& input : inputs) Play(input);
  std::mt19937_64 random(kSeed);
  for (uint64_t run = 0; run < runs; ++run) Play(Mutate(inputs[random() % inputs.size()], random));
  std::printf("played %zu inputs and %llu mutations of them, seed %llu\n", inputs.size(),
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(kSeed));
  return 0;
}
