// What can be told from a trace although its policy was kept, for people.
#pragma once

#include <string>

#include "anonymize/plan.h"

namespace tracefs::anonymize {

std::string RiskText(const Plan& plan);

}  // namespace tracefs::anonymize
