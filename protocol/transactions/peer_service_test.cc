#include "protocol/transactions/peer_service.h"

#include <memory>

#include "common/runtime/runtime.h"
#include "grpcpp/server_context.h"
#include "gtest/gtest.h"
#include "protocol/testing/scripted_transaction_service.h"

namespace deut {
namespace {

class PeerServiceTest : public ::testing::Test {
 protected:
  Runtime& runtime_ = RealRuntime();
  testing::ScriptedTransactionService scripted_{runtime_};
  grpc::ServerContext context_;
};

TEST_F(PeerServiceTest, WithoutRightsItIsTheServiceItself) {
  PeerServices services(scripted_, nullptr);
  const std::unique_ptr<PeerService> service = services.For(context_);
  EXPECT_EQ(&service->get(), &scripted_);
  EXPECT_TRUE((*service)->CreateTable("t", {}, kNoDeadline).ok());
}

}  // namespace
}  // namespace deut
