// A function for the probes to include.
#pragma once

#include <string>

namespace deut::probes {

std::string Hello();

}  // namespace deut::probes
