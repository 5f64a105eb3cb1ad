// What is under way at a moment: named activities that count how often they have begun and ended. A test that stops a process, or takes its
// disk away, so knows what it has hit. Marks exist only in test configurations, as DEUT_POINT; release builds contain none of them.
//
//   DEUT_IN_FLIGHT("dc.merge");                       in flight from here to the end of the scope
//   DEUT_IN_FLIGHT_IF(is_redo, "dc.redo");            the same, if the condition holds here
//
// Names are string literals of at most 39 characters; several marks may share one. They are what tests ask for: stable.
// The counts are this process's own, or lie in the file that the environment variable DEUT_FLIGHT_BOARD names: there another process
// reads them, also after kill -9 (FlightBoard). Nothing but memory shared by processes, so it does not go through deut::Storage.
//
// States of a slot: free -> being named (whoever wins the compare-and-swap) -> named. Never back while a process uses the board.
// A mark is two increments (seq_cst) of words that all passers share: for steps of structure, not for every read.
// Thread-safety: everything from any thread. Ownership: a board outlives its users; that of this process is never freed.
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
#define DEUT_IN_FLIGHT_OF(condition, name, line)                                                \
  static ::deut::testing::FlightSlot& flight_slot_##line = ::deut::testing::FlightSlotOf(name); \
  const ::deut::testing::FlightMark flight_mark_##line((condition) ? &flight_slot_##line : nullptr)
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

// Where passers of a name stop, until they are let go or killed. Who has begun before it was said stops at the end in either case: so what is in
// flight afterwards stays so.
enum class FlightHold : uint32_t { kNowhere = 0, kAtBeginning = 1, kAtEnd = 2 };

// One name's place on a board; its layout is shared by processes of one build.
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

// This process's slot of the name. Ends the process if there are more than FlightBoard::kSlots names, or the file cannot be mapped.
FlightSlot& FlightSlotOf(std::string_view name);

// What this process has counted, in no order. Of what goes on meanwhile each count is right for some moment of the call.
std::vector<FlightCount> FlightsHere();
// 0 for a name that nobody has passed.
uint64_t FlightsHere(std::string_view name);

class FlightMark {
 public:
  explicit FlightMark(FlightSlot* slot) : slot_(slot) {
    if (slot_ == nullptr) return;
    slot_->begun.fetch_add(1);
    if (slot_->hold.load() == FlightHold::kAtBeginning) Wait();
  }
  ~FlightMark() {
    if (slot_ == nullptr) return;
    if (slot_->hold.load() != FlightHold::kNowhere) Wait();
    slot_->ended.fetch_add(1);
  }
  FlightMark(const FlightMark&) = delete;
  FlightMark& operator=(const FlightMark&) = delete;

 private:
  void Wait() const;

  FlightSlot* const slot_;
};

// A board in a file, for the process that watches another one:
//
//   FlightBoard board(path);                     // then start the other one with DEUT_FLIGHT_BOARD=path
//   board.Hold("dc.split", FlightHold::kAtBeginning);
//   while (board.Count("dc.split").in_flight() == 0) ...;
//   // kill -9
//   for (const FlightCount& count : board.Counts()) ...   // what was in flight
//   board.Clear();                               // before the next start
class FlightBoard {
 public:
  static constexpr size_t kSlots = 64;
  static constexpr const char* kVariable = "DEUT_FLIGHT_BOARD";

  // Makes the file, or takes what is there. Ends the process if that fails.
  explicit FlightBoard(std::string path);
  ~FlightBoard();
  FlightBoard(const FlightBoard&) = delete;
  FlightBoard& operator=(const FlightBoard&) = delete;

  const std::string& path() const { return path_; }
  std::vector<FlightCount> Counts() const;
  FlightCount Count(std::string_view name) const;
  // Whoever passes the name from now on waits there.
  void Hold(std::string_view name, FlightHold where);
  // Forgets all names and counts. REQUIRES: no process uses it.
  void Clear();

 private:
  const std::string path_;
  FlightSlot* const slots_;
};

}  // namespace deut::testing

#endif  // COMMON_TESTING_FLIGHT_BOARD_H_
