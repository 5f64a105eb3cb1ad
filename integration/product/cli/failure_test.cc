#include "integration/product/cli/failure.h"

#include <gtest/gtest.h>

namespace deut::cli {
namespace {

TEST(Failure, TellsWhatAndWhatToDo) {
  EXPECT_EQ(FailureText("deut", DEUT_ERROR(kUnavailable, "nobody at 127.0.0.1:1"), FailureKind::kRun),
            "deut: UNAVAILABLE: nobody at 127.0.0.1:1\n"
            "      (the peer is down, starting or recovering; nothing was done)\n");
  EXPECT_EQ(FailureText("ycsb", DEUT_ERROR(kInvalidArgument, "--theta=2"), FailureKind::kUsage),
            "ycsb: INVALID_ARGUMENT: --theta=2\n"
            "      (ycsb --help lists the flags)\n");
  EXPECT_EQ(FailureText("ycsb", DEUT_ERROR(kInvalidArgument, "no --x (--help lists all)"), FailureKind::kUsage),
            "ycsb: INVALID_ARGUMENT: no --x (--help lists all)\n");
}

}  // namespace
}  // namespace deut::cli
