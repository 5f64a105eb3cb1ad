// FlightBoard: the activities that are in flight at a moment. An activity has a name; the board counts how often it
// has begun and ended. So a test that kills a process, or takes its disk away, knows what it has hit. Marks exist
// only in test configurations, as DEUT_POINT; release builds contain none of them.
//
//   DEUT_IN_FLIGHT("dc.merge");                       in flight from here to the end of the scope
//   DEUT_IN_FLIGHT_IF(is_redo, "dc.redo");            the same, if the condition holds here
//
// Names are string literals of at most 39 characters; several marks may share one. Tests ask for them, so they are
// stable.
// The counts are private to this process, or lie in the file that the environment variable DEUT_FLIGHT_BOARD names.
// There another process reads them, also after kill -9 (FlightBoard). The file is only memory that processes share,
// so it does not go through deut::Storage.
//
// States of a slot: free -> being named (the winner of the compare-and-swap names it) -> named. A slot never goes
// back while a process uses the board.
// A mark is two increments (seq_cst) of words that all its passes share. So marks are for structural steps, not for
// every read.
// Thread-safety: everything from any thread. Ownership: a board outlives its users; that of this process is never
// freed.
#ifndef COMMON_TESTING_FLIGHT_BOARD_H_
#define COMMON_TESTING_FLIGHT_BOARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#ifdef DEUT_TEST_POINTS
#define DEUT_IN_FLIGHT(name) DEUT_IN_FLIGHT_IF(true, name)
#define DEUT_IN_FLIGHT_IF(condition, name) DEUT_IN_FLIGHT_AT(condition, name, __LINE__)
#define DEUT_IN_FLIGHT_AT(condition, name, line) DEUT_IN_FLIGHT_OF(condition, name, line)
#define DEUT_IN_FLIGHT_OF(condition, name, line)                                                       \
  static ::deut::testing::FlightSlot& flight_slot_##line = ::deut::testing::FindOrAddFlightSlot(name); \
  const ::deut::testing::FlightScope flight_scope_##line((condition) ? &flight_slot_##line : nullptr)
#else
#define DEUT_IN_FLIGHT(name) ((void)0)
#define DEUT_IN_FLIGHT_IF(condition, name) ((void)0)
#endif

namespace deut::testing {

#ifdef DEUT_TEST_POINTS
inline constexpr bool kFlightsAreCounted = true;
#else
inline constexpr bool kFlightsAreCounted = false;
#endif

// The place where threads that pass a name stop, until they are released or killed. A thread that began before the
// hold was set stops at the end in either case, so the activities in flight at that time stay in flight.
enum class FlightHold : uint32_t { kNowhere = 0, kAtBeginning = 1, kAtEnd = 2 };

// The slot of one name on a board; processes of one build share its layout.
struct FlightSlot {
  enum State : uint32_t { kFree = 0, kBeingNamed = 1, kNamed = 2 };
  static constexpr size_t kNameBytes = 40;

  char name[kNameBytes] = {};  // ends in a zero
  std::atomic<uint32_t> state{kFree};
  std::atomic<FlightHold> hold{FlightHold::kNowhere};
  std::atomic<uint64_t> begun{0};
  std::atomic<uint64_t> ended{0};
};
static_assert(sizeof(FlightSlot) == 64 && std::atomic<uint64_t>::is_always_lock_free);

struct FlightCount {
  std::string name;
  uint64_t begun = 0;
  uint64_t ended = 0;
  uint64_t in_flight() const { return begun - ended; }
};

// Returns this process's slot of the name, and takes a free one for a new name. Ends the process if there are more than FlightBoard::kSlots names, or
// the file cannot be mapped.
FlightSlot& FindOrAddFlightSlot(std::string_view name);

// Returns the counts of this process, in no order. While activities go on, each count is right for some moment of the
// call.
std::vector<FlightCount> InFlightCounts();
// Returns 0 for a name that no thread has passed.
uint64_t CountInFlight(std::string_view name);

class FlightScope {
 public:
  explicit FlightScope(FlightSlot* slot) : slot_(slot) {
    if (slot_ == nullptr) return;
    slot_->begun.fetch_add(1);
    if (slot_->hold.load() == FlightHold::kAtBeginning) Wait();
  }
  ~FlightScope() {
    if (slot_ == nullptr) return;
    if (slot_->hold.load() != FlightHold::kNowhere) Wait();
    slot_->ended.fetch_add(1);
  }
  FlightScope(const FlightScope&) = delete;
  FlightScope& operator=(const FlightScope&) = delete;

 private:
  void Wait() const;

  FlightSlot* const slot_;
};

// A board in a file, for a process that watches another one:
//
//   FlightBoard board(path);                     // then start the other one with DEUT_FLIGHT_BOARD=path
//   board.Hold("dc.split", FlightHold::kAtBeginning);
//   while (board.Count("dc.split").in_flight() == 0) ...;
//   // kill -9
//   for (const FlightCount& count : board.Counts()) ...   // the activities in flight at the kill
//   board.Clear();                               // before the next start
class FlightBoard {
 public:
  static constexpr size_t kSlots = 64;
  static constexpr const char* kVariable = "DEUT_FLIGHT_BOARD";

  // Creates the file, or uses the existing one. Ends the process if that fails.
  explicit FlightBoard(std::string path);
  ~FlightBoard();
  FlightBoard(const FlightBoard&) = delete;
  FlightBoard& operator=(const FlightBoard&) = delete;

  const std::string& path() const { return path_; }
  std::vector<FlightCount> Counts() const;
  FlightCount Count(std::string_view name) const;
  // Threads that pass the name from now on wait there.
  void Hold(std::string_view name, FlightHold where);
  // Forgets all names and counts. REQUIRES: no process uses it.
  void Clear();

 private:
  const std::string path_;
  FlightSlot* const slots_;
};

}  // namespace deut::testing

#endif  // COMMON_TESTING_FLIGHT_BOARD_H_
