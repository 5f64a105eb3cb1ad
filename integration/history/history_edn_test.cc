#include "integration/history/history_edn.h"

#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "integration/history/history_text.h"

namespace deut::history {
namespace {

Result<std::string> Edn(const std::string& lines) {
  DEUT_ASSIGN_OR_RETURN(const History history, ParseHistory("history 1\n" + lines));
  std::ostringstream out;
  DEUT_RETURN_IF_ERROR(WriteEdn(history, out));
  return out.str();
}

TEST(HistoryEdnTest, ListAppend) {
  const Result<std::string> edn =
      Edn("T1 c7 10..20 ok a(x)=1.1\n"
          "T2 c8 15.. unknown a(x)=2.1 r(y)=-\n"
          "T3 c8 20..30 ok r(x)=[1.1,2.1] r2(z)=-\n"
          "T4 c7 25..35 aborted r(x)=1.1\n");
  ASSERT_TRUE(edn.ok()) << edn.status().ToString();
  EXPECT_EQ(*edn,
            "{:index 0, :time 10, :type :invoke, :process 0, :f :txn, :value [[:append \"x\" 1]]}\n"
            "{:index 1, :time 15, :type :invoke, :process 1, :f :txn, :value [[:append \"x\" 2] [:r \"y\" nil]]}\n"
            "{:index 2, :time 20, :type :invoke, :process 2, :f :txn, :value [[:r \"x\" nil] [:r \"2:z\" nil]]}\n"
            "{:index 3, :time 20, :type :ok, :process 0, :f :txn, :value [[:append \"x\" 1]]}\n"
            "{:index 4, :time 25, :type :invoke, :process 0, :f :txn, :value [[:r \"x\" nil]]}\n"
            "{:index 5, :time 30, :type :ok, :process 2, :f :txn, :value [[:r \"x\" [1 2]] [:r \"2:z\" nil]]}\n"
            "{:index 6, :time 35, :type :info, :process 1, :f :txn, :value [[:append \"x\" 2] [:r \"y\" nil]]}\n"
            "{:index 7, :time 35, :type :fail, :process 0, :f :txn, :value [[:r \"x\" nil]]}\n");
}

TEST(HistoryEdnTest, Registers) {
  const Result<std::string> edn =
      Edn("T1 c1 10..20 @1 ok i(x)=1.1 w(y)=1.2\n"
          "T2 c1 30..40 @2 ok snapshot r(x)=1.1\n"
          "T3 c1 50..60 @3 ok s[,)={x=1.1,y=1.2} p(x) u(x)=3.1\n");
  ASSERT_TRUE(edn.ok()) << edn.status().ToString();
  EXPECT_EQ(
      *edn,
      "{:index 0, :time 10, :type :invoke, :process 0, :f :txn, :value [[:w \"x\" 1] [:w \"y\" 2]]}\n"
      "{:index 1, :time 20, :type :ok, :process 0, :f :txn, :value [[:w \"x\" 1] [:w \"y\" 2]]}\n"
      "{:index 2, :time 50, :type :invoke, :process 0, :f :txn, :value [[:r \"x\" nil] [:r \"y\" nil] [:w \"x\" 3]]}\n"
      "{:index 3, :time 60, :type :ok, :process 0, :f :txn, :value [[:r \"x\" 1] [:r \"y\" 2] [:w \"x\" 3]]}\n");
}

TEST(HistoryEdnTest, RefusesWhatElleHasNoWordFor) {
  EXPECT_THAT(Edn("T1 c1 10..20 ok d(x)\n").status().ToString(), ::testing::HasSubstr("d(x) of T1"));
  EXPECT_THAT(Edn("T1 c1 10..20 ok a(x)=1.1 w(y)=1.2\n").status().ToString(), ::testing::HasSubstr("w(y)=1.2 of T1"));
}

}  // namespace
}  // namespace deut::history
