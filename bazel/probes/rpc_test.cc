// The libraries work together: generated messages and services, a server with reflection, a call.
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "bazel/probes/probe.grpc.pb.h"

namespace deut::probes {
namespace {

class Service final : public Greeter::CallbackService {
  grpc::ServerUnaryReactor* Greet(grpc::CallbackServerContext* context, const Greeting* request,
                                  Greeting* response) override {
    response->set_text("Hello, " + request->text());
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

TEST(RpcTest, CallsOverLoopback) {
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  Service service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  auto stub =
      Greeter::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  Greeting request;
  Greeting response;
  request.set_text("world");
  const grpc::Status status = stub->Greet(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.text(), "Hello, world");
}

}  // namespace
}  // namespace deut::probes
