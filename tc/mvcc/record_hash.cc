#include "tc/mvcc/record_hash.h"

#include "common/runtime/runtime.h"

namespace deut::tc::record_hash {

const uint64_t kSeed = RealRuntime().RandomSeed();

}  // namespace deut::tc::record_hash
