// What a mount with --survive yes can go on with after its daemon was killed.
#pragma once

#include "config/config.h"
#include "tracefs/base/status.h"
#include "tracefs/survive/area.h"

namespace tracefs {

// kInvalid, with its place in the config, for what a later daemon could not go
// on with.
Status CheckSurvives(const Config& config);
// The same for a config that a client adds. Also kInvalid where daemons do not
// trace any more.
Status CheckAddSurvives(const Config& config, const survive::Area& area);

}  // namespace tracefs
