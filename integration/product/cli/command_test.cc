#include "integration/product/cli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/base/transaction_id.h"
#include "tc/client/fake_transaction_service.h"

namespace deut::cli {
namespace {

using testing::FakeCall;
using testing::FakeFault;
using testing::FakeTransactionService;
using ::testing::HasSubstr;
using testing::JumpingRuntime;
using ::testing::StartsWith;

class CommandTest : public ::testing::Test {
 protected:
  // Returns "OK" and the printed text, or the error.
  std::string Run(const std::vector<std::string>& words) {
    out_.clear();
    notes_.clear();
    Status status = CheckCommand(words);
    if (status.ok()) {
      status = RunCommand(
          *client_, words, options_, [&](std::string_view text) { out_.append(text); },
          [&](std::string_view text) { notes_.append(text); });
    }
    return status.ok() ? out_ : status.ToString();
  }

  JumpingRuntime runtime_;
  FakeTransactionService service_{runtime_};
  std::unique_ptr<Client> client_ = Client::FromService(&service_, {.runtime = &runtime_});
  CommandOptions options_;
  std::string out_, notes_;
};

TEST_F(CommandTest, HalfACommandIsAnsweredWithItsWholes) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"tables"}, {"tables", "frob"}}) {
    EXPECT_EQ(Run(words),
              "INVALID_ARGUMENT: usage, one of:\n  deut tables list\n  deut tables create NAME\n  deut tables "
              "drop NAME");
  }
}

TEST_F(CommandTest, PutGetDelete) {
  EXPECT_THAT(Run({"put", "k", "v"}), HasSubstr("deut tables create default"));
  EXPECT_EQ(Run({"tables", "create", "default"}), "");
  EXPECT_EQ(Run({"put", "k", "v\\x00\\n"}), "");
  EXPECT_EQ(service_.Peek(client_->OpenTable("default").value(), "k"), std::string("v\0\n", 3));
  EXPECT_EQ(Run({"get", "k"}), "v\\x00\\n\n");
  options_.form = TextForm::kHex;
  EXPECT_EQ(Run({"get", "6b"}), "76000a\n");
  EXPECT_EQ(Run({"delete", "6b"}), "");
  EXPECT_EQ(Run({"get", "6b"}), "NOT_FOUND: no record has the key 6b");
  EXPECT_EQ(Run({"delete", "6b"}), "") << "blind";
  EXPECT_THAT(Run({"put", "", "00"}), HasSubstr("1 to 4096 bytes"));
}

TEST_F(CommandTest, Scan) {
  ASSERT_EQ(Run({"tables", "create", "default"}), "");
  for (const char* key : {"a", "b", "c", "d"}) ASSERT_EQ(Run({"put", key, std::string("v") + key}), "");
  EXPECT_EQ(Run({"scan"}), "a\tva\nb\tvb\nc\tvc\nd\tvd\n");
  EXPECT_EQ(notes_, "");
  options_.low = "b";
  options_.high = "d";
  EXPECT_EQ(Run({"scan"}), "b\tvb\nc\tvc\n");
  options_.reverse = true;
  options_.limit = 1;
  EXPECT_EQ(Run({"scan"}), "c\tvc\n");
  EXPECT_THAT(notes_, HasSubstr("--high='b\\x00'"));
  options_.reverse = false;
  EXPECT_EQ(Run({"scan"}), "b\tvb\n");
  EXPECT_THAT(notes_, HasSubstr("--low='c'"));
  options_.low = "\\q";
  EXPECT_THAT(Run({"scan"}), HasSubstr("--low has an unknown escape"));
}

TEST_F(CommandTest, AtomicOperationsAndRanges) {
  ASSERT_EQ(Run({"tables", "create", "default"}), "");
  EXPECT_EQ(Run({"add", "n", "7"}), "7\n");
  EXPECT_EQ(Run({"add", "n", "-9"}), "-2\n");
  EXPECT_THAT(Run({"add", "n", "two"}), HasSubstr("no whole number: two"));
  ASSERT_EQ(Run({"put", "a", "1"}), "");
  EXPECT_EQ(Run({"compare-and-set", "a", "1", "2"}), "");
  EXPECT_THAT(Run({"compare-and-set", "a", "1", "3"}), StartsWith("CONDITION_FAILED"));
  EXPECT_EQ(out_, "2\n") << "what it has is shown";
  EXPECT_THAT(Run({"delete-range"}), HasSubstr("--low or --high"));
  options_.low = "b";
  EXPECT_EQ(Run({"delete-range"}), "records removed: 1\n");
  EXPECT_EQ(Run({"get", "a"}), "2\n");
}

TEST_F(CommandTest, Outcomes) {
  Transaction open = client_->Begin().value();
  const std::string id = TransactionIdText(open.name().id);
  const std::string bound = std::to_string(open.name().not_before.value);
  EXPECT_EQ(Run({"outcome", id, bound}), "not committed\n");
  service_.forgets_outcomes = true;
  EXPECT_THAT(Run({"outcome", id, bound}), StartsWith("OUTCOME_UNKNOWN"));
  EXPECT_THAT(Run({"outcome", "12", bound}), StartsWith("INVALID_ARGUMENT"));
}

TEST_F(CommandTest, AScanThatIsRepeatedIsPrintedOnce) {
  ASSERT_EQ(Run({"tables", "create", "default"}), "");
  ASSERT_EQ(Run({"put", "a", "1"}), "");
  int commits = 0;
  service_.on_call = [&](FakeCall call, Deadline) {
    if (call != FakeCall::kCommit || ++commits > 2) return FakeFault{};
    return FakeFault{Status::Aborted({.reason = AbortReason::kRangeWriter, .key = {}}, "lost")};
  };
  EXPECT_EQ(Run({"scan"}), "a\t1\n");
  EXPECT_EQ(commits, 3);
}

TEST_F(CommandTest, ALongScanThatFailsInTheEndSaysThatItIsVoid) {
  ASSERT_EQ(Run({"tables", "create", "default"}), "");
  const TableId table = client_->OpenTable("default").value();
  for (int i = 0; i < 10; ++i) service_.Poke(table, std::to_string(i), std::string(1 << 20, 'x'));
  service_.on_call = [&](FakeCall call, Deadline) {
    if (call != FakeCall::kCommit) return FakeFault{};
    return FakeFault{Status::Aborted({.reason = AbortReason::kRangeWriter, .key = {}}, "lost")};
  };
  EXPECT_THAT(Run({"scan"}), HasSubstr("lost"));
  EXPECT_GT(out_.size(), size_t{1} << 20);
  EXPECT_THAT(notes_, HasSubstr("are not valid"));
}

TEST_F(CommandTest, Tables) {
  EXPECT_EQ(Run({"tables", "list"}), "");
  EXPECT_EQ(Run({"tables", "create", "t1"}), "");
  EXPECT_THAT(Run({"tables", "create", "t1"}), StartsWith("ALREADY_EXISTS"));
  EXPECT_THAT(Run({"tables", "list"}), StartsWith("t1\tid 1\trecords 0"));
  EXPECT_EQ(Run({"tables", "drop", "t1"}), "");
  EXPECT_THAT(Run({"tables", "drop", "t1"}), StartsWith("NOT_FOUND"));
}

TEST_F(CommandTest, Status) { EXPECT_THAT(Run({"status"}), HasSubstr("dc.reads_served 0\n")); }

TEST_F(CommandTest, Health) {
  // This test's service returns no counters.
  EXPECT_THAT(Run({"health"}), HasSubstr("UNAVAILABLE: the store does not serve now"));
  EXPECT_THAT(out_, HasSubstr("tc: not serving yet"));
}

TEST_F(CommandTest, Unavailable) {
  service_.on_call = [&](FakeCall, Deadline) { return FakeFault{DEUT_ERROR(kUnavailable, "nobody listens at x:1")}; };
  EXPECT_THAT(Run({"status"}), HasSubstr("nobody listens at x:1"));
  EXPECT_THAT(Run({"get", "k"}), StartsWith("UNAVAILABLE"));
}

TEST_F(CommandTest, WrongWords) {
  EXPECT_THAT(Run({}), HasSubstr("no command is given"));
  EXPECT_THAT(Run({"frob"}), HasSubstr("no command is named \"frob\""));
  EXPECT_THAT(Run({"frob"}), HasSubstr("deut put KEY VALUE"));
  EXPECT_EQ(Run({"put", "k"}), "INVALID_ARGUMENT: usage: deut put KEY VALUE");
  EXPECT_EQ(Run({"get", "k", "v"}), "INVALID_ARGUMENT: usage: deut get KEY");
  EXPECT_EQ(Run({"tables", "drop"}), "INVALID_ARGUMENT: usage: deut tables drop NAME");
  EXPECT_EQ(Run({"status", "now"}), "INVALID_ARGUMENT: usage: deut status");
}

}  // namespace
}  // namespace deut::cli
