// Fuzzes Address: any text is refused with INVALID_ARGUMENT, or is written and parsed again to the same address.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/check.h"
#include "common/base/status.h"
#include "protocol/connections/endpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const deut::Result<deut::Address> address =
      deut::Address::Parse("--listen", {reinterpret_cast<const char*>(data), size});
  if (!address.ok()) {
    DEUT_CHECK(address.status() == deut::ErrorCode::kInvalidArgument);
    return 0;
  }
  const deut::Result<deut::Address> again = deut::Address::Parse("--listen", address->ToString());
  DEUT_CHECK(again.ok() && again->ToString() == address->ToString() && again->is_loopback() == address->is_loopback());
  DEUT_CHECK(deut::CheckTransport("--listen", *address, /*tls=*/false, /*insecure=*/false).ok() ==
             address->is_loopback());
  DEUT_CHECK(deut::CheckTransport("--listen", *address, /*tls=*/true, /*insecure=*/false).ok());
  if (!address->is_unix()) DEUT_CHECK(address->WithPort(1).port() == 1);
  return 0;
}
