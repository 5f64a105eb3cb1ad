// ReportTc: the figures of a TC that `deut status` shows, by name. tc/README.md documents the names. Thread-safety:
// any thread.
#ifndef TC_SERVER_STATUS_REPORT_H_
#define TC_SERVER_STATUS_REPORT_H_

#include <vector>

#include "common/io/watched_storage.h"
#include "protocol/data_component.h"
#include "tc/dc_link/dc_link.h"
#include "tc/record_manager/engine.h"
#include "tc/server/repartitioner.h"

namespace deut::tc {

// `spill_disk`: statistics of the operations on spilled files (S9).
std::vector<CounterValue> ReportTc(const Engine& engine, const DcLinkStatus& link, const Repartitioner& repartitioner,
                                   const DiskWatchStatistics& spill_disk, size_t sessions, bool serving);

}  // namespace deut::tc

#endif  // TC_SERVER_STATUS_REPORT_H_
