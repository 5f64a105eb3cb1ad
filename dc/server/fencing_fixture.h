// FencingTest: a server on a storage in memory, which a test may start anew. For tests of rules X3 and X5.
#ifndef DC_SERVER_FENCING_FIXTURE_H_
#define DC_SERVER_FENCING_FIXTURE_H_

#include <memory>

#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/server/data_component_server.h"
#include "dc/server/server_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {

class FencingTest : public ::testing::Test {
 protected:
  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  std::unique_ptr<DataComponentServer> server_ = StartServer(*storage_);

  void Restart() {
    server_.reset();
    server_ = StartServer(*storage_);
  }
};

}  // namespace deut::dc

#endif  // DC_SERVER_FENCING_FIXTURE_H_
