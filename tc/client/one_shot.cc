#include "tc/client/one_shot.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "protocol/limits.h"
#include "protocol/number.h"

namespace deut {

size_t OneShot::Add(const Operation& operation, std::string_view first, std::string_view second) {
  bytes_.append(first);
  bytes_.append(second);
  pieces_.push_back({.first_bytes = first.size(), .second_bytes = second.size()});
  operations_.push_back(operation);
  return pieces_.size() - 1;
}

size_t OneShot::Get(TableId table, std::string_view key) {
  return Add({.kind = OperationKind::kGet, .table = table}, key, {});
}

size_t OneShot::Put(TableId table, std::string_view key, std::string_view value) {
  return Add({.kind = OperationKind::kPut, .table = table}, key, value);
}

size_t OneShot::Insert(TableId table, std::string_view key, std::string_view value) {
  return Add({.kind = OperationKind::kInsert, .table = table}, key, value);
}

size_t OneShot::Update(TableId table, std::string_view key, std::string_view value) {
  return Add({.kind = OperationKind::kUpdate, .table = table}, key, value);
}

size_t OneShot::Remove(TableId table, std::string_view key) {
  return Add({.kind = OperationKind::kRemove, .table = table}, key, {});
}

size_t OneShot::Change(OperationKind kind, TableId table, std::string_view key, int64_t operand) {
  return Add({.kind = kind, .table = table}, key, EncodeNumber(operand));
}

size_t OneShot::Scan(TableId table, const ScanOptions& scan) {
  constexpr uint64_t kMaxRecords = std::numeric_limits<uint32_t>::max();
  uint64_t bytes = std::clamp(scan.batch_bytes, 1U, kMaxScanBytes);
  if (scan.limit_bytes != 0) bytes = std::min(bytes, scan.limit_bytes);
  return Add({.kind = OperationKind::kScan,
              .table = table,
              .direction = scan.direction,
              .limit_records = static_cast<uint32_t>(std::min(scan.limit_records, kMaxRecords)),
              .limit_bytes = static_cast<uint32_t>(bytes)},
             scan.low, scan.high);
}

absl::Span<const Operation> OneShot::operations() {
  DEUT_DCHECK(operations_.size() == pieces_.size());
  const char* next = bytes_.data();
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const std::string_view first(next, pieces_[i].first_bytes);
    const std::string_view second(next + first.size(), pieces_[i].second_bytes);
    next += first.size() + second.size();
    Operation& operation = operations_[i];
    if (operation.kind == OperationKind::kScan) {
      operation.low = first;
      operation.high = second;
    } else {
      operation.key = first;
      operation.value = second;
    }
  }
  DEUT_DCHECK(next == bytes_.data() + bytes_.size());  // the pieces are all of the bytes
  return operations_;
}

Result<CommitAnswer> OneShot::Run(const CallOptions& call) {
  return client_->ExecuteOneShot(options_, operations(), &results_, call);
}

void OneShot::Clear() {
  bytes_.clear();
  pieces_.clear();
  operations_.clear();
}

}  // namespace deut
