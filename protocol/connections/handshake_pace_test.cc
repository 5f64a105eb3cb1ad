#include "protocol/connections/handshake_pace.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/testing/leaping_runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

constexpr size_t kMaxInFlight = HandshakePace::kMaxHandshakesInFlight;

PeerKey Address(uint32_t number) {
  sockaddr_storage name{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(name);
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(number);
  return PeerKey::Of(name);
}

class HandshakePaceTest : public ::testing::Test {
 protected:
  // Adds a connection and returns its number. Numbers ascend by 1.
  int Arrive(uint32_t address) {
    int ends[2] = {};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    clients_.emplace_back(ends[0]);
    const int number = static_cast<int>(sockets_.size());
    sockets_.push_back(ends[1]);
    pace_->Arrive(Address(address), number, Descriptor(ends[1]));
    return number;
  }
  // Takes the next connection and returns its number. The connection keeps its slot.
  int AwaitNext() {
    std::optional<HandshakePace::Next> next = pace_->AwaitNext();
    if (!next.has_value()) return -1;
    // Searches from the newest one, because the system gives the descriptors of closed sockets to new ones.
    for (size_t i = sockets_.size(); i > 0; --i) {
      if (sockets_[i - 1] != next->socket.get()) continue;
      taken_.push_back(std::move(*next));
      return static_cast<int>(i - 1);
    }
    return -2;
  }

  std::shared_ptr<HandshakePace> pace_ = HandshakePace::Create(RealRuntime(), seconds(3600));
  std::vector<Descriptor> clients_;
  std::vector<int> sockets_;
  std::vector<HandshakePace::Next> taken_;
};

TEST_F(HandshakePaceTest, BeyondTheMaximumInFlightTheNextOneWaitsForTheEndOfASlot) {
  for (size_t i = 0; i < kMaxInFlight + 2; ++i) Arrive(1);
  for (size_t i = 0; i < kMaxInFlight; ++i) EXPECT_EQ(AwaitNext(), static_cast<int>(i)) << "first come, first served";
  EXPECT_EQ(pace_->waiting(), 2u);
  std::shared_ptr<HandshakePace::Slot> slot = std::move(taken_.front().slot);
  std::atomic<bool> ended{false};
  int next = -1;
  bool ended_before = false;
  auto thread = RealRuntime().StartThread("taker", [&] {
    next = AwaitNext();
    ended_before = ended.load();
  });
  ended.store(true);
  slot.reset();
  thread.reset();  // joins
  EXPECT_EQ(next, static_cast<int>(kMaxInFlight));
  EXPECT_TRUE(ended_before);
  EXPECT_EQ(pace_->waiting(), 1u);
}

TEST_F(HandshakePaceTest, AddressesAreServedInTurn) {
  for (int i = 0; i < 4; ++i) Arrive(1);
  const int second = Arrive(2), third = Arrive(3);
  EXPECT_EQ(AwaitNext(), 0);
  EXPECT_EQ(AwaitNext(), second);
  EXPECT_EQ(AwaitNext(), third);
  EXPECT_EQ(AwaitNext(), 1);
  const int again = Arrive(2);
  EXPECT_EQ(AwaitNext(), 2);
  EXPECT_EQ(AwaitNext(), again);
  EXPECT_EQ(AwaitNext(), 3);
}

TEST_F(HandshakePaceTest, SlotsOfPeersThatDoNotGoOnExpire) {
  pace_ = HandshakePace::Create(RealRuntime(), milliseconds(1));
  for (size_t i = 0; i < 3 * kMaxInFlight; ++i) Arrive(1);
  for (size_t i = 0; i < 3 * kMaxInFlight; ++i) EXPECT_EQ(AwaitNext(), static_cast<int>(i));
  // Each slot has expired, and ends a second time here.
  taken_.clear();
  Arrive(1);
  EXPECT_EQ(AwaitNext(), static_cast<int>(3 * kMaxInFlight));
}

TEST_F(HandshakePaceTest, ClientsThatHaveGivenUpAreClosedAndCostNoSlot) {
  for (size_t i = 0; i < 2 * kMaxInFlight; ++i) Arrive(1);
  const int last = Arrive(1);
  for (size_t i = 0; i < 2 * kMaxInFlight; ++i) clients_[i].Reset();
  EXPECT_EQ(AwaitNext(), last);
  EXPECT_EQ(pace_->waiting(), 0u);
}

TEST_F(HandshakePaceTest, AWithdrawnConnectionIsClosedAndNotTaken) {
  const int first = Arrive(1), second = Arrive(2);
  EXPECT_TRUE(pace_->Withdraw(first));
  EXPECT_FALSE(pace_->Withdraw(first));
  EXPECT_EQ(fcntl(sockets_[static_cast<size_t>(first)], F_GETFD), -1);
  EXPECT_EQ(AwaitNext(), second);
  EXPECT_FALSE(pace_->Withdraw(second)) << "it is not the pace's any more";
}

TEST_F(HandshakePaceTest, StopEndsTheConnectionsThatWait) {
  Arrive(1);
  pace_->Stop();
  EXPECT_EQ(AwaitNext(), -1);
  char byte = 0;
  EXPECT_EQ(recv(clients_.front().get(), &byte, 1, 0), 0);
}

// Slots that are never ended, with a clock that advances only while AwaitNext waits.
class HandshakeSlotTimeTest : public HandshakePaceTest {
 protected:
  HandshakeSlotTimeTest() { pace_ = HandshakePace::Create(time_); }

  void Send(int connection, const std::string& bytes) {
    ASSERT_EQ(send(clients_[static_cast<size_t>(connection)].get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  // Returns a first record of a handshake. Only its header and length are right, which is all that the pace examines.
  static std::string FirstRecord(size_t bytes) {
    return std::string("\x16\x03\x01", 3) + static_cast<char>(bytes >> 8) + static_cast<char>(bytes) +
           std::string(bytes, 'x');
  }

  testing::LeapingRuntime time_;
};

TEST_F(HandshakeSlotTimeTest, TheSlotOfASilentPeerEndsAfterTheSlotTimeForPeers) {
  for (size_t i = 0; i < kMaxInFlight + 1; ++i) Arrive(1);
  for (size_t i = 0; i < kMaxInFlight; ++i) AwaitNext();
  EXPECT_EQ(time_.passed(), Duration(0));
  EXPECT_EQ(AwaitNext(), static_cast<int>(kMaxInFlight));
  EXPECT_EQ(time_.passed(), HandshakePace::kSlotTimeWhilePeerIsAwaited);
}

TEST_F(HandshakeSlotTimeTest, AFirstRecordThatIsNotWholeIsSilence) {
  for (const std::string& part :
       {FirstRecord(300).substr(0, 4), FirstRecord(300).substr(0, 5), FirstRecord(300).substr(0, 304)}) {
    SCOPED_TRACE(part.size());
    const Duration before = time_.passed();
    for (size_t i = 0; i < kMaxInFlight + 1; ++i) Send(Arrive(1), part);
    for (size_t i = 0; i < kMaxInFlight + 1; ++i) AwaitNext();
    EXPECT_EQ(time_.passed(), before + HandshakePace::kSlotTimeWhilePeerIsAwaited);
    time_.Pass(HandshakePace::kSlotTimeWhilePeerIsAwaited);  // the last slots expire
  }
}

TEST_F(HandshakeSlotTimeTest, TheSlotOfAPeerThatWaitsForTheServerEndsAfterTheSlotTimeForServers) {
  for (size_t i = 0; i < kMaxInFlight + 1; ++i) Send(Arrive(1), FirstRecord(300));
  for (size_t i = 0; i < kMaxInFlight; ++i) AwaitNext();
  EXPECT_EQ(time_.passed(), Duration(0));
  EXPECT_EQ(AwaitNext(), static_cast<int>(kMaxInFlight));
  EXPECT_EQ(time_.passed(), HandshakePace::kSlotTimeWhileServerIsAwaited);
}

TEST_F(HandshakeSlotTimeTest, OnceTheServerHasWrittenItsPartThePeerHasTheSlotTimeForPeers) {
  for (size_t i = 0; i < kMaxInFlight + 1; ++i) Send(Arrive(1), FirstRecord(300));
  for (size_t i = 0; i < kMaxInFlight; ++i) AwaitNext();
  time_.Pass(seconds(1));
  taken_.back().slot->PeerIsAwaited();
  EXPECT_EQ(AwaitNext(), static_cast<int>(kMaxInFlight));
  EXPECT_EQ(time_.passed(), seconds(1) + HandshakePace::kSlotTimeWhilePeerIsAwaited);
}

// A thousand half handshakes of one address wait, and eight are in flight, when another address connects.
TEST_F(HandshakeSlotTimeTest, HalfHandshakesOfOneAddressDelayAnotherByOneOfItsSlots) {
  const auto flood = [&] { Send(Arrive(1), FirstRecord(300).substr(0, 100)); };
  for (size_t i = 0; i < kMaxInFlight; ++i) {
    flood();
    AwaitNext();
  }
  for (int i = 0; i < 1000; ++i) flood();
  for (int round = 0; round < 5; ++round) {
    const Duration before = time_.passed();
    const int other = Arrive(2);
    const bool at_once = AwaitNext() == other;
    EXPECT_TRUE(at_once || AwaitNext() == other);
    EXPECT_LE(time_.passed(), before + HandshakePace::kSlotTimeWhilePeerIsAwaited);
    // The flood takes the remaining slots.
    const Duration now = time_.passed();
    for (size_t i = 0; i < kMaxInFlight && time_.passed() == now; ++i) AwaitNext();
  }
}

}  // namespace
}  // namespace deut
