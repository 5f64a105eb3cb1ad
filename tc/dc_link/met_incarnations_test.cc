#include "tc/dc_link/met_incarnations.h"

#include <memory>

#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

class NoReads final : public DirectReads {
 public:
  Answered TryAnswer(absl::Span<DataRequest* const> /*requests*/) override { return Answered::kNone; }
};

HelloAnswer AnswerOf(uint64_t incarnation, uint64_t number) {
  HelloAnswer hello;
  hello.dc = DcId{3};
  hello.incarnation = DcIncarnation{incarnation};
  hello.number = IncarnationNumber{number};
  return hello;
}

TEST(MetIncarnationsTest, AnotherIncarnationTakesThePlaceOfTheOneBefore) {
  MetIncarnations met;
  EXPECT_EQ(met.present().dc, DcId{0});
  EXPECT_TRUE(met.Meet(AnswerOf(77, 1), nullptr));
  EXPECT_FALSE(met.Meet(AnswerOf(77, 1), nullptr)) << "a further connection to the same one";
  EXPECT_EQ(met.count(), 1u);
  EXPECT_TRUE(met.Meet(AnswerOf(12, 1), nullptr)) << "a copy of its folder has the same number";
  EXPECT_EQ(met.present().dc, DcId{3});
  EXPECT_EQ(met.present().incarnation, DcIncarnation{12});
  EXPECT_EQ(met.present().number, IncarnationNumber{1});
  EXPECT_TRUE(met.Meet(AnswerOf(77, 1), nullptr)) << "the first one is back";
  EXPECT_EQ(met.count(), 3u);
}

TEST(MetIncarnationsTest, KeepsTheDirectReadsOfEarlierIncarnations) {
  std::weak_ptr<DirectReads> first_reads;
  {
    MetIncarnations met;
    const auto first = std::make_shared<NoReads>();
    first_reads = first;
    met.Meet(AnswerOf(1, 1), first);
    met.Meet(AnswerOf(1, 1), std::make_shared<NoReads>());
    EXPECT_EQ(met.reads(), first.get()) << "the same incarnation keeps those that it has";
    met.Meet(AnswerOf(2, 2), nullptr);
    EXPECT_EQ(met.reads(), nullptr);
    EXPECT_EQ(first.use_count(), 2) << "a reader may be about to use them";
  }
  EXPECT_TRUE(first_reads.expired());
}

}  // namespace
}  // namespace deut::tc
