// SessionTest: the fixture of tests of sessions on an engine.
#ifndef TC_SERVER_SESSION_FIXTURE_H_
#define TC_SERVER_SESSION_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/transaction_service.h"
#include "tc/record_manager/engine_fixture.h"
#include "tc/server/session.h"
#include "tc/server/session_registry.h"

namespace deut::tc {

inline constexpr TableId kTable = EngineFixture::kTable;

inline Operation Get(std::string_view key) { return {.kind = OperationKind::kGet, .table = kTable, .key = key}; }
inline Operation Put(std::string_view key, std::string_view value) {
  return {.kind = OperationKind::kPut, .table = kTable, .key = key, .value = value};
}
inline Operation Insert(std::string_view key, std::string_view value) {
  return {.kind = OperationKind::kInsert, .table = kTable, .key = key, .value = value};
}

class SessionTest : public ::testing::Test {
 protected:
  explicit SessionTest(Duration idle = seconds(60)) : registry_(RealRuntime(), idle) {}
  ~SessionTest() override { registry_.Stop(); }

  std::unique_ptr<Session> NewSession() {
    return std::make_unique<Session>(*f_.manager, RealRuntime(), [this] { return serving_; }, registry_);
  }
  static Deadline Soon() { return EngineFixture::Soon(); }
  // Returns values or statuses, separated by blanks; the error that ended the call follows a bar.
  std::string Execute(Session& session, const std::vector<Operation>& operations) {
    std::vector<OperationResult> results;
    const Status status = session.Execute(operations, &results, Soon());
    return Text(results) + (status.ok() ? "" : "| " + StatusText(status));
  }
  std::string OneShot(Session& session, const std::vector<Operation>& operations) {
    std::vector<OperationResult> results;
    const Status status = session.ExecuteOneShot(TransactionOptions{}, operations, &results, Soon()).status();
    return Text(results) + "| " + StatusText(status);
  }
  static std::string Text(const std::vector<OperationResult>& results) {
    std::string text;
    for (const OperationResult& result : results) {
      RecordBatch::Iterator it(result.records);
      text += it.Valid() ? std::string(it.record().value) : StatusText(result.status);
      text += ' ';
    }
    return text;
  }

  Status serving_;
  EngineFixture f_;
  SessionRegistry registry_;
};

}  // namespace deut::tc

#endif  // TC_SERVER_SESSION_FIXTURE_H_
