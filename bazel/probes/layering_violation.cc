// Includes a header of `hello`, on which the target depends only by way of `greeting`: must not build.
#include "bazel/probes/greeting.h"
#include "bazel/probes/hello.h"

namespace deut::probes {

std::string Both() { return Hello() + Greeting(); }

}  // namespace deut::probes
