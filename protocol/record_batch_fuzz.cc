// Fuzzes RecordBatch: any bytes are refused, or every record lies inside them and appends to the same bytes again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/check.h"
#include "protocol/record_batch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const deut::Result<deut::RecordBatch> batch =
      deut::RecordBatch::Parse(std::string(reinterpret_cast<const char*>(data), size));
  if (!batch.ok()) return 0;
  deut::RecordBatch again;
  for (deut::RecordBatch::Iterator it(*batch); it.Valid(); it.Next()) {
    again.Append(it.record().key, it.record().value, it.record().version);
  }
  DEUT_CHECK(again.bytes() == batch->bytes() && again.size() == batch->size());
  return 0;
}
