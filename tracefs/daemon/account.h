// The user that a daemon turns into once all that takes rights is done.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs {

struct Account {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};

// By name or number. kInvalid if there is none.
Result<Account> FindAccount(const std::string& name);

// Turns this process into that user: real, effective and saved ids, and groups.
// Before the first thread. kSystem if that is not allowed.
Status Become(const Account& account);

}  // namespace tracefs
