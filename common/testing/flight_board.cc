#include "common/testing/flight_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "common/base/check.h"

namespace deut::testing {
namespace {

constexpr size_t kBoardBytes = FlightBoard::kSlots * sizeof(FlightSlot);

// A new file is all zeros, so all its slots are free.
FlightSlot* Map(const char* path) {
  const int file = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  DEUT_CHECK(file >= 0);
  struct stat found;
  DEUT_CHECK(::fstat(file, &found) == 0);
  // Never truncated, because another process may have mapped it.
  if (static_cast<size_t>(found.st_size) < kBoardBytes) DEUT_CHECK(::ftruncate(file, kBoardBytes) == 0);
  void* const memory = ::mmap(nullptr, kBoardBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  DEUT_CHECK(memory != MAP_FAILED);
  ::close(file);
  return static_cast<FlightSlot*>(memory);
}

FlightSlot* SlotsOfThisProcess() {
  static FlightSlot own[FlightBoard::kSlots];
  static FlightSlot* const slots = [] {
    const char* const path = std::getenv(FlightBoard::kVariable);
    return path != nullptr && *path != '\0' ? Map(path) : own;
  }();
  return slots;
}

void Pause() {
  const timespec step{.tv_sec = 0, .tv_nsec = 50'000};
  ::nanosleep(&step, nullptr);
}

// Another process may be killed while it names a slot. Then the slot has no name, and the next one is taken.
bool IsNamed(const FlightSlot& slot) {
  for (int i = 0; i < 1000 && slot.state.load() == FlightSlot::kBeingNamed; ++i) Pause();
  return slot.state.load() == FlightSlot::kNamed;
}

FlightSlot& FindOrAddSlot(FlightSlot* slots, std::string_view name) {
  DEUT_CHECK(name.size() < FlightSlot::kNameBytes);
  for (size_t i = 0; i < FlightBoard::kSlots; ++i) {
    FlightSlot& slot = slots[i];
    uint32_t free = FlightSlot::kFree;
    if (slot.state.compare_exchange_strong(free, FlightSlot::kBeingNamed)) {
      std::memcpy(slot.name, name.data(), name.size());
      slot.state.store(FlightSlot::kNamed);
      return slot;
    }
    if (IsNamed(slot) && name == slot.name) return slot;
  }
  DEUT_CHECK(false);  // more names than slots
  std::abort();
}

// Reads `ended` first, so that no more activities have ended than have begun.
FlightCount CountOf(const FlightSlot& slot) {
  FlightCount count;
  count.name = slot.name;
  count.ended = slot.ended.load();
  count.begun = slot.begun.load();
  return count;
}

std::vector<FlightCount> CountsOf(const FlightSlot* slots) {
  std::vector<FlightCount> counts;
  for (size_t i = 0; i < FlightBoard::kSlots; ++i) {
    if (slots[i].state.load() == FlightSlot::kNamed) counts.push_back(CountOf(slots[i]));
  }
  return counts;
}

FlightCount Find(const FlightSlot* slots, std::string_view name) {
  for (size_t i = 0; i < FlightBoard::kSlots; ++i) {
    if (slots[i].state.load() == FlightSlot::kNamed && name == slots[i].name) return CountOf(slots[i]);
  }
  return FlightCount{.name = std::string(name)};
}

}  // namespace

FlightSlot& FindOrAddFlightSlot(std::string_view name) { return FindOrAddSlot(SlotsOfThisProcess(), name); }

std::vector<FlightCount> InFlightCounts() { return CountsOf(SlotsOfThisProcess()); }
uint64_t CountInFlight(std::string_view name) { return Find(SlotsOfThisProcess(), name).in_flight(); }

void FlightScope::Wait() const {
  while (slot_->hold.load() != FlightHold::kNowhere) Pause();
}

FlightBoard::FlightBoard(std::string path) : path_(std::move(path)), slots_(Map(path_.c_str())) {}

FlightBoard::~FlightBoard() { ::munmap(slots_, kBoardBytes); }

std::vector<FlightCount> FlightBoard::Counts() const { return CountsOf(slots_); }
FlightCount FlightBoard::Count(std::string_view name) const { return Find(slots_, name); }
void FlightBoard::Hold(std::string_view name, FlightHold where) { FindOrAddSlot(slots_, name).hold.store(where); }

void FlightBoard::Clear() {
  for (size_t i = 0; i < kSlots; ++i) {
    FlightSlot& slot = slots_[i];
    slot.hold.store(FlightHold::kNowhere);
    slot.begun.store(0);
    slot.ended.store(0);
    std::memset(slot.name, 0, sizeof(slot.name));
    slot.state.store(FlightSlot::kFree);
  }
}

}  // namespace deut::testing
