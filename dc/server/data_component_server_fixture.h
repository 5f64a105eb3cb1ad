// DataComponentServerTest: a data component, a sender and its stream of the log. For tests. Thread-safety: one thread.
#ifndef DC_SERVER_DATA_COMPONENT_SERVER_FIXTURE_H_
#define DC_SERVER_DATA_COMPONENT_SERVER_FIXTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/server/data_component_server.h"
#include "dc/server/server_fixture.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {

class DataComponentServerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  std::unique_ptr<DataComponentServer> server_ = StartServer(*storage_);
  Sender sender_ = SayHello(*server_, 1);
  CountingListener listener_;
  std::unique_ptr<ApplyLogStream> stream_ = std::move(*server_->OpenApplyLog(sender_, &listener_, kNoDeadline));
  TestLog log_;

  Status Send(const LogBatch& batch) { return stream_->Send(batch, kNoDeadline); }

  void Fill(uint64_t records) {
    log_.Create();
    for (uint64_t i = 0; i < records; ++i) log_.Put(Key(i), Concat("value ", i));
    ASSERT_TRUE(Send(log_.Take()).ok());
  }
  static std::string Key(uint64_t i) { return Concat("key", 100000 + i); }

  std::map<std::string, uint64_t> Counted() {
    std::map<std::string, uint64_t> by_name;
    const auto counters = server_->Counters(kNoDeadline);
    for (const CounterValue& counter : *counters) by_name[counter.name] = counter.value;
    return by_name;
  }

  static std::vector<std::string> KeysOf(const RecordBatch& batch) {
    std::vector<std::string> keys;
    for (RecordBatch::Iterator it(batch); it.Valid(); it.Next()) keys.emplace_back(it.record().key);
    return keys;
  }

  // A short scan that owns its bounds.
  struct ShortScan : DataRequest {
    ShortScan(const DataComponentServerTest& test, std::string low_bound, std::string high_bound, Direction of,
              uint32_t records, uint32_t bytes = 64 << 10)
        : own_low(std::move(low_bound)), own_high(std::move(high_bound)) {
      kind = Kind::kScan;
      sender = test.sender_;
      table = kTable;
      low = own_low;
      high = own_high;
      direction = of;
      limit_records = records;
      limit_bytes = bytes;
    }
    const std::string own_low;
    const std::string own_high;
  };
  void Submit(DataRequest* request) {
    DataRequest* const requests[] = {request};
    server_->Submit(requests);
    ASSERT_TRUE(request->done.IsSet());
  }
};

}  // namespace deut::dc

#endif  // DC_SERVER_DATA_COMPONENT_SERVER_FIXTURE_H_
