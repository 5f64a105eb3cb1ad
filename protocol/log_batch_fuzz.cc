// Fuzzes LogBatch: any bytes are refused, or every entry lies inside them and appends to the same bytes again.
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "protocol/log_batch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  deut::LogBatch batch;
  batch.to = deut::Position{deut::Lsn(UINT64_MAX), UINT32_MAX};
  batch.entries.assign(reinterpret_cast<const char*>(data), size);
  if (!batch.Validate().ok()) return 0;
  deut::LogBatch again;
  for (deut::LogBatch::Iterator it(batch); it.Valid(); it.Next()) again.Append(it.entry());
  DEUT_CHECK(again.entries == batch.entries);
  return 0;
}
