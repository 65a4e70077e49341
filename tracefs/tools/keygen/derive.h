// tracefs-keygen --derive: a key for one domain of anonymised traces, to hand
// to somebody who may know that and no more.
#ifndef TRACEFS_TOOLS_KEYGEN_DERIVE_H_
#define TRACEFS_TOOLS_KEYGEN_DERIVE_H_

#include <string>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs {

// `arguments` are what stands behind --derive: DOMAIN, options, and the new
// file. kInvalid if they make no sense.
Status DeriveKeyFile(const std::vector<std::string>& arguments);

}  // namespace tracefs

#endif  // TRACEFS_TOOLS_KEYGEN_DERIVE_H_
