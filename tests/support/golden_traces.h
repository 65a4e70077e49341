// The traces of tests/golden/v1, as they were made. Only to add new ones: those
// that are there are never made again.
#pragma once

#include <map>
#include <string>

namespace tracefs::test {

// Name to bytes. The same on every machine.
std::map<std::string, std::string> MakeGoldenTraces();

}  // namespace tracefs::test
