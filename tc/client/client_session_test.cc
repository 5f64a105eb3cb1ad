#include "tc/client/client_session.h"

#include <gtest/gtest.h>

#include <string>

namespace deut {
namespace {

TEST(ClientSession, KeepsTheMemoryOfSmallAnswersAndNotOfLargeOnes) {
  ClientSession session(nullptr);
  session.results.resize(1);
  session.results[0].records.Append("key", std::string(1000, 'v'), {});
  session.batch.resize(2);
  for (OperationResult& answer : session.batch)
    answer.records.Append("key", std::string(kMaxIdleAnswerBytes / 2 + 1, 'v'), {});
  session.FreeLargeAnswers();
  ASSERT_EQ(session.results.size(), 1u);
  EXPECT_GE(session.results[0].records.bytes().capacity(), 1000u);
  EXPECT_EQ(session.batch.capacity(), 0u);
}

}  // namespace
}  // namespace deut
