#include "protocol/connections/stream_quota.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/rpc/service_options.h"

namespace deut {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(StreamQuotaTest, OnePeerAtItsLimitLeavesRoomForOthers) {
  StreamQuota quota(RealRuntime(), {.in_all = 5, .per_peer = 3});
  std::vector<std::unique_ptr<StreamQuota::Slot>> slots;
  const auto enter = [&](const std::string& peer) {
    slots.push_back(std::make_unique<StreamQuota::Slot>());
    return quota.Enter(peer, slots.back().get());
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(enter("greedy").ok());
  const Status refused = enter("greedy");
  EXPECT_EQ(refused.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(refused.ToString(), AllOf(HasSubstr("3 streams of greedy"), HasSubstr("--max_streams_per_peer")));
  EXPECT_TRUE(enter("modest").ok());
  EXPECT_TRUE(enter("another").ok());
  const Status full = enter("late");
  EXPECT_EQ(full.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(full.ToString(), AllOf(HasSubstr("5 streams of all peers"), HasSubstr("(--max_threads)")));
  EXPECT_EQ(quota.open(), 5u);
  slots.clear();
  EXPECT_EQ(quota.open(), 0u);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(enter("greedy").ok());
}

// The quota of tcd (--max_streams): open streams that hold no thread.
TEST(StreamQuotaTest, OpenStreamsOfAllClientsAreLimited) {
  RpcServiceOptions options;
  options.max_streams = 8;
  StreamQuota quota(RealRuntime(), options.open_streams());
  std::vector<std::unique_ptr<StreamQuota::Slot>> slots;
  const auto enter = [&](const std::string& peer) {
    slots.push_back(std::make_unique<StreamQuota::Slot>());
    return quota.Enter(peer, slots.back().get());
  };
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(enter("greedy").ok());
  EXPECT_THAT(enter("greedy").ToString(), HasSubstr("6 streams of greedy")) << "three quarters";
  EXPECT_TRUE(enter("modest").ok());
  EXPECT_TRUE(enter("another").ok());
  const Status full = enter("late");
  EXPECT_EQ(full.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(full.ToString(), AllOf(HasSubstr("8 streams of all peers"), HasSubstr("(--max_streams)")));
}

TEST(StreamQuotaTest, SingleCallsOfOnePeerLeaveRoomForOthers) {
  RpcServiceOptions options;
  options.threads = 16;
  StreamQuota quota(RealRuntime(), options.calls());
  StreamQuota::Slot one, two, three, other;
  EXPECT_TRUE(quota.Enter("greedy", &one).ok());
  EXPECT_TRUE(quota.Enter("greedy", &two).ok());
  const Status refused = quota.Enter("greedy", &three);
  EXPECT_EQ(refused.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(refused.ToString(),
              AllOf(HasSubstr("2 single calls of greedy"), HasSubstr("an eighth of --max_threads")));
  EXPECT_TRUE(quota.Enter("modest", &other).ok());
}

// Greedy peers come one after the other, and each takes all slots that it is given. Without TLS, a network of many hosts has many such peers.
TEST(StreamQuotaTest, AnyNumberOfGreedyPeersLeavesAFewForTheNextOne) {
  constexpr size_t kInAll = 16384;
  StreamQuota quota(RealRuntime(), {.in_all = kInAll, .per_peer = kInAll * 3 / 4});
  std::vector<std::unique_ptr<StreamQuota::Slot>> slots;
  const auto take = [&](const std::string& peer, size_t most) {
    for (size_t taken = 0;; ++taken) {
      auto slot = std::make_unique<StreamQuota::Slot>();
      if (taken == most || !quota.Enter(peer, slot.get()).ok()) return taken;
      slots.push_back(std::move(slot));
    }
  };
  EXPECT_EQ(take("first", kInAll), kInAll * 3 / 4) << "all that --max_streams_per_peer gives";
  EXPECT_GE(take("second", kInAll), kInAll / 8);
  // Each peer tries as many streams as one connection may have.
  for (int i = 0; i < 200; ++i) EXPECT_GE(take("greedy " + std::to_string(i), 1024), StreamQuota::kGuaranteedPerPeer);
  EXPECT_GE(take("late", kInAll), StreamQuota::kGuaranteedPerPeer);
  auto slot = std::make_unique<StreamQuota::Slot>();
  const Status refused = quota.Enter("late", slot.get());
  EXPECT_EQ(refused.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(refused.ToString(), AllOf(HasSubstr("4 streams of late are open"), HasSubstr("one peer may have 4")));
}

TEST(StreamQuotaTest, APeerWithManyAtWorkWaitsAndKeepsNoOtherOut) {
  StreamQuota quota(RealRuntime(), {.in_all = 9, .per_peer = 9, .work_per_peer = 2});
  StreamQuota::Slot one, two, three, four, other;
  for (StreamQuota::Slot* slot : {&one, &two, &three, &four}) ASSERT_TRUE(quota.Enter("greedy", slot).ok());
  ASSERT_TRUE(quota.Enter("modest", &other).ok());
  std::string resumed;
  EXPECT_TRUE(one.BeginWork([&] { resumed += '1'; }));
  EXPECT_TRUE(two.TryBeginWork());
  EXPECT_FALSE(three.BeginWork([&] { resumed += '3'; }));
  EXPECT_FALSE(four.BeginWork([&] { resumed += '4'; }));
  EXPECT_FALSE(four.TryBeginWork());
  EXPECT_TRUE(other.BeginWork([] {}));
  EXPECT_EQ(resumed, "");
  one.EndWork();
  EXPECT_EQ(resumed, "3") << "the one that has waited longest";
  two.EndWork();
  EXPECT_EQ(resumed, "34");
  three.EndWork();
  EXPECT_TRUE(one.TryBeginWork());
  four.EndWork();
  one.EndWork();
  other.EndWork();
  EXPECT_TRUE(one.TryBeginWork());
  EXPECT_TRUE(two.TryBeginWork());
  EXPECT_FALSE(three.TryBeginWork());
  one.EndWork();
  two.EndWork();
}

// Many peers, whose requests may all wait without end.
TEST(StreamQuotaTest, AnyNumberOfPeersAtWorkLeavesThreadsForTheNextOne) {
  const RpcServiceOptions options;
  StreamQuota quota(RealRuntime(), options.open_streams());
  const auto threads = static_cast<size_t>(options.threads);
  std::vector<std::unique_ptr<StreamQuota::Slot>> slots;
  std::vector<StreamQuota::Slot*> at_work;
  size_t resumed = 0, waiting = 0;
  const auto begin = [&](const std::string& peer, size_t most) {
    size_t begun = 0;
    for (size_t i = 0; i < most; ++i) {
      slots.push_back(std::make_unique<StreamQuota::Slot>());
      StreamQuota::Slot* const slot = slots.back().get();
      EXPECT_TRUE(quota.Enter(peer, slot).ok());
      const bool at_once = slot->BeginWork([&, slot] {
        ++resumed;
        at_work.push_back(slot);
      });
      if (at_once) at_work.push_back(slot);
      ++(at_once ? begun : waiting);
    }
    return begun;
  };
  EXPECT_GE(begin("greedy", 1024), threads * 2 / 3) << "one alone has most of them";
  for (int i = 0; i < 4; ++i) EXPECT_GE(begin("greedy " + std::to_string(i), 400), StreamQuota::kGuaranteedPerPeer);
  EXPECT_EQ(begin("late", StreamQuota::kGuaranteedPerPeer), StreamQuota::kGuaranteedPerPeer);
  // Streams have all threads except one, and except one in sixteen.
  EXPECT_LE(at_work.size(), threads - threads / 16 - 1);
  // Every waiting request is resumed in the end, although a peer's only request at work may end while the others have all other slots.
  EXPECT_GT(waiting, 0u);
  const auto end_all = [&] {
    while (!at_work.empty()) {
      StreamQuota::Slot* const slot = at_work.back();
      at_work.pop_back();
      slot->EndWork();
    }
  };
  end_all();
  EXPECT_EQ(resumed, waiting);
  EXPECT_GE(begin("again", 1024), threads * 2 / 3) << "every slot was given back";
  end_all();
}

}  // namespace
}  // namespace deut
