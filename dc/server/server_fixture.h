// Helpers of the server's tests: start a server, act as its TC, read through it.
#ifndef DC_SERVER_SERVER_FIXTURE_H_
#define DC_SERVER_SERVER_FIXTURE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/sync/event.h"
#include "dc/server/data_component_server.h"
#include "protocol/data_component.h"
#include "protocol/log_batch.h"

namespace deut::dc {

constexpr TableId kTable{7};

DataComponentOptions SmallServer();
Result<std::unique_ptr<DataComponentServer>> OpenServer(Storage& storage);
// Starts a server. REQUIRES: it opens.
std::unique_ptr<DataComponentServer> StartServer(Storage& storage);

HelloRequest HelloOf(uint64_t epoch, uint64_t nonce = 1, uint64_t tc = 5);
// Says Hello and returns the sender that acts as that TC. REQUIRES: the Hello is accepted.
Sender SayHello(DataComponent& dc, uint64_t epoch, uint64_t nonce = 1);

class CountingListener final : public ApplyLogListener {
 public:
  void OnAck(const ApplyAck& ack) override {
    acks.fetch_add(1);
    last = ack;
  }
  void OnClosed(const Status& status) override {
    reason = status;
    closings.fetch_add(1);
    closed.Signal(RealRuntime());
  }

  std::atomic<int> acks{0};
  std::atomic<int> closings{0};
  ApplyAck last;  // valid after an ack, on the sending thread
  Status reason;  // valid after `closed`
  Event closed;
};

// A log with one commit for each entry.
class TestLog {
 public:
  TestLog& Entry(LogEntryKind kind, uint64_t timestamp, std::string_view key, std::string_view value = {},
                 TableId table = kTable);
  TestLog& Create(std::string_view name = "accounts") { return Entry(LogEntryKind::kCreateTable, 1, name); }
  TestLog& Put(std::string_view key, std::string_view value) { return Entry(LogEntryKind::kPut, ++now_, key, value); }
  TestLog& Delete(std::string_view key) { return Entry(LogEntryKind::kDelete, ++now_, key); }
  TestLog& LowWater() { return Entry(LogEntryKind::kLowWater, now_ + 1, {}); }
  // Returns the entries that were appended since the last Take.
  LogBatch Take();
  Position end() const { return batch_.to; }

 private:
  uint64_t lsn_ = 0;
  uint64_t now_ = 1;
  LogBatch batch_;
};

struct ReadAnswer {
  Status status;
  std::optional<std::string> value;
  DcIncarnation answered_by;
};
// Returns a counter's value. REQUIRES: a counter of that name exists.
uint64_t Counter(DataComponent& dc, std::string_view name);
ReadAnswer Read(DataComponent& dc, const Sender& sender, std::string_view key, TableId table = kTable);

}  // namespace deut::dc

#endif  // DC_SERVER_SERVER_FIXTURE_H_
