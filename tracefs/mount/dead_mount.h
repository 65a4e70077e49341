// Dead mounts: what a mount leaves when its daemon and its watchdog are both
// gone, or its connection was cut. Whoever goes there gets ENOTCONN.
#pragma once

#include <functional>
#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

// Takes away dead tracefs mounts of this user that lie uppermost at
// `mount_point`, as they would be in the way of the next; says so on standard
// error. kSystem with EBUSY where `stays_shut` says that what lies below is not
// to be bare for a moment: then somebody must have unmounted it. What is
// no such mount is left alone.
Status RemoveDeadMounts(const std::string& mount_point,
                        const std::function<bool()>& stays_shut);

}  // namespace tracefs
