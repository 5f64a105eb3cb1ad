// Uses what `hello` offers.
#pragma once

#include <string>

#include "bazel/probes/hello.h"

namespace deut::probes {

inline std::string Greeting() { return Hello() + ", world"; }

}  // namespace deut::probes
