#include "tracefs/daemon/account.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "tracefs/base/text_cursor.h"

namespace tracefs {

Result<Account> FindAccount(const std::string& name) {
  const passwd* entry = ::getpwnam(name.c_str());
  if (entry == nullptr) {
    uid_t uid = 0;
    const char* const end = name.data() + name.size();
    const auto [last, error] = std::from_chars(name.data(), end, uid);
    if (error == std::errc() && last == end) entry = ::getpwuid(uid);
  }
  if (entry == nullptr) {
    return Status::Invalid("there is no user " + Quoted(name) +
                           "; make one with useradd --system");
  }
  Account account{.uid = entry->pw_uid, .gid = entry->pw_gid, .groups = {}};
  int count = 64;
  do {
    account.groups.resize(static_cast<size_t>(count));
  } while (::getgrouplist(entry->pw_name, entry->pw_gid, account.groups.data(),
                          &count) < 0 &&
           static_cast<size_t>(count) > account.groups.size());
  account.groups.resize(static_cast<size_t>(count));
  return account;
}

Status Become(const Account& account) {
  // Nothing to give up, and no right to touch the groups.
  if (account.uid != 0 && ::getuid() == account.uid &&
      ::geteuid() == account.uid) {
    return Status::Ok();
  }
  if (::setgroups(account.groups.size(), account.groups.data()) != 0 ||
      ::setresgid(account.gid, account.gid, account.gid) != 0 ||
      ::setresuid(account.uid, account.uid, account.uid) != 0) {
    return Status::System(errno, "turning into user " +
                                     std::to_string(account.uid) +
                                     " (only root may)");
  }
  return Status::Ok();
}

}  // namespace tracefs
