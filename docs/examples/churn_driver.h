// An assembly driver that counts the files that each user makes and removes.
#pragma once

#include <memory>
#include <string_view>

#include "drivers/assembly/table.h"

namespace tracefs {

Result<std::unique_ptr<AssemblyDriver>> MakeChurn(const ConfigEntry& entry,
                                                  std::string_view file);

}  // namespace tracefs
