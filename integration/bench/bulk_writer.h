// BulkWriter: writes many records in transactions of a few hundred.
// Thread-safety: none. Ownership: refers to its session.
#ifndef INTEGRATION_BENCH_BULK_WRITER_H_
#define INTEGRATION_BENCH_BULK_WRITER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "integration/bench/backend.h"

namespace deut::bench {

class BulkWriter {
 public:
  explicit BulkWriter(Session& session) : session_(session) {}

  Status Put(std::string key, std::string_view value) {
    records_.emplace_back(std::move(key), value);
    return records_.size() < kRecords ? Status() : Flush();
  }

  // Must be called at the end.
  Status Flush() {
    const Status status = session_.RunInteractive(/*writes=*/true, [&](InteractiveTransaction& transaction) {
      for (const auto& [key, value] : records_) DEUT_RETURN_IF_ERROR(transaction.Put(key, value));
      return Status();
    });
    records_.clear();
    return status;
  }

 private:
  static constexpr size_t kRecords = 300;

  Session& session_;
  std::vector<std::pair<std::string, std::string>> records_;
};

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_BULK_WRITER_H_
