// OverBudgetPolicy: the reaction to pinned memory that fills its budget (rule S9).
#ifndef TC_RECORD_MANAGER_OVER_BUDGET_POLICY_H_
#define TC_RECORD_MANAGER_OVER_BUDGET_POLICY_H_

#include <cstdint>

namespace deut::tc {

enum class OverBudgetPolicy : uint8_t {
  kRefuse,       // writers are refused until the oldest transaction or snapshot has ended
  kAbortReader,  // the oldest transaction or snapshot is aborted
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_OVER_BUDGET_POLICY_H_
