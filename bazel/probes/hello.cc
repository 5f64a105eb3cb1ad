#include "bazel/probes/hello.h"

namespace deut::probes {

std::string Hello() { return "Hello"; }

}  // namespace deut::probes
