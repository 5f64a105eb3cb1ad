#include "integration/bench/read_check.h"

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "integration/ycsb/record.h"

namespace deut::bench {

void ReadCheck::Restart() {
  now_ = committed_;
  wrong_ = Status();
}

Status ReadCheck::Commit() {
  committed_ = now_;
  return wrong_;
}

void ReadCheck::Fail(std::string_view what, std::string_view key) {
  if (wrong_.ok()) wrong_ = DEUT_ERROR(kCorruption, "record ", Quoted(key), " ", what);
}

void ReadCheck::CheckValue(std::string_view key, std::string_view value) {
  const Result<ycsb::WriteId> id = ycsb::CheckValue(key, value);
  if (!id.ok() && wrong_.ok()) wrong_ = id.status();
}

void ReadCheck::Value(std::string_view key, std::string_view value) {
  CheckValue(key, value);
  Sum(key);
  Sum(value);
  ++now_.records;
}

void ReadCheck::Missing(std::string_view key) { Fail("is missing", key); }

void ReadCheck::BeginScan(std::string_view low, uint32_t limit) {
  low_ = low;
  limit_ = limit;
  scanned_ = 0;
}

void ReadCheck::RecordSlowly(std::string_view key, std::string_view value) {
  if (scanned_ == 0 && key != low_) Fail(Concat("is the first of a scan from ", Quoted(low_)), key);
  if (scanned_ != 0 && key <= std::string_view(last_.data(), last_bytes_)) Fail("is not above the key before", key);
  CheckValue(key, value);
  if (last_.size() < key.size()) last_.resize(key.size());
  Keep(key);
}

void ReadCheck::EndScan() {
  if (scanned_ == 0) Fail("is not found by a scan that begins with it", low_);
  if (scanned_ > limit_) Fail(Concat("is where a scan of ", limit_, " begins that shows ", scanned_), low_);
  now_.records += scanned_;
}

uint64_t ReadCheck::checksum() const {
  uint64_t sum = 0;
  for (const uint64_t lane : committed_.lanes) sum = Mix64(sum ^ lane);
  return sum;
}

}  // namespace deut::bench
