#include "tracefs/tools/replay/workplace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "tracefs/base/enclosed_folder.h"
#include "tracefs/base/folder.h"
#include "tracefs/replay/open_beneath.h"
#include "tracefs/text/escape.h"

namespace tracefs {
namespace {

constexpr char kPrefix[] = ".tracefs-replay-";
constexpr char kTree[] = "tree";

UniqueFd Duplicate(const UniqueFd& fd) {
  return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
}

// What is made in `to` gets the rights that it would get in `from`.
bool MakeAlike(int from, int to) {
  struct stat st;
  if (::fstatat(from, "", &st, AT_EMPTY_PATH) != 0) return false;
  if (::geteuid() == 0 &&
      ::fchownat(to, "", st.st_uid, st.st_gid, AT_EMPTY_PATH) != 0) {
    return false;
  }
  std::array<char, 4096> acl;
  constexpr char kDefault[] = "system.posix_acl_default";
  const ssize_t n = ::getxattr(replay::FdPath(from).c_str(), kDefault,
                               acl.data(), acl.size());
  if (n > 0 && ::setxattr(replay::FdPath(to).c_str(), kDefault, acl.data(),
                          static_cast<size_t>(n), 0) != 0) {
    return false;
  }
  return replay::ChmodFd(to, st.st_mode & 07777) == 0;
}

// What a replay that was killed has left.
std::string LeftOver(int dir) {
  std::string found;
  const Result<std::vector<std::string>> names = NamesInFolder(dir);
  if (!names.ok()) return found;
  for (const std::string& name : *names) {
    if (name.starts_with(kPrefix)) found = name;
  }
  return found;
}

// Moving a directory writes to it (its "..").
bool Move(int from, int to, const std::string& name) {
  const auto move = [&] {
    return ::renameat2(from, name.c_str(), to, name.c_str(),
                       RENAME_NOREPLACE) == 0;
  };
  if (move()) return true;
  if (errno != EACCES) return false;
  struct stat st;
  const UniqueFd fd(
      replay::OpenBeneath(from, name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  if (!fd || ::fstatat(fd.get(), "", &st, AT_EMPTY_PATH) != 0 ||
      replay::ChmodFd(fd.get(), 0700) != 0) {
    return false;
  }
  const bool moved = move();
  return replay::ChmodFd(fd.get(), st.st_mode & 07777) == 0 && moved;
}

}  // namespace

Result<std::unique_ptr<Workplace>> Workplace::Open(
    UniqueFd dir, std::string name, bool existing,
    const replay::Grants& grants) {
  std::unique_ptr<Workplace> place(
      new Workplace(std::move(dir), std::move(name)));
  const Result<bool> empty = replay::IsEmptyFolder(place->dir_.get());
  if (!empty.ok()) return empty.status();
  place->was_empty_ = *empty;
  if (!*empty && !existing) {
    const std::string left = LeftOver(place->dir_.get());
    return Status::Invalid(
        TerminalWord(place->name_) +
        (left.empty() ? " is not empty; --existing says that it may be changed"
                      : " has " + TerminalWord(left) +
                            " in it, of a replay that was killed or still "
                            "runs; remove it"));
  }
  if (!existing) {
    if (Status s = place->MakePrivate(); !s.ok()) {
      return s.Prefixed(TerminalWord(place->name_));
    }
    return place;
  }
  if (::geteuid() == 0) {
    if (Status s = replay::CheckNobodyElse(
            place->dir_.get(), grants.Has(replay::Privilege::kOwner));
        !s.ok()) {
      return s.Prefixed(TerminalWord(place->name_));
    }
  }
  place->tree_ = Duplicate(place->dir_);
  return place;
}

Status Workplace::MakePrivate() {
  Result<replay::PrivateFolder> made =
      replay::PrivateFolder::Make(dir_.get(), kPrefix);
  if (!made.ok()) return made.status();
  private_.emplace(*std::move(made));
  if (::mkdirat(private_->fd(), kTree, 0700) == 0) {
    tree_.Reset(replay::OpenBeneath(private_->fd(), kTree,
                                    O_PATH | O_DIRECTORY | O_NOFOLLOW));
  }
  if (!tree_ || !MakeAlike(dir_.get(), tree_.get())) {
    return Status::System(errno, "a folder to work in");
  }
  return {};
}

UniqueFd Workplace::Tree() const { return EncloseFolder(Duplicate(tree_)); }

Status Workplace::HandOver() {
  if (!private_) return {};
  const Result<std::vector<std::string>> names = NamesInFolder(tree_.get());
  if (!names.ok()) {
    return Status::System(names.status().error(), TerminalWord(name_));
  }
  for (const std::string& name : *names) {
    if (Move(tree_.get(), dir_.get(), name)) continue;
    const Status failed = Status::System(
        errno, "what was replayed stays in " + TerminalWord(name_) + "/" +
                   private_->name() + "/" + kTree + ": " + TerminalWord(name));
    private_->Keep();
    return failed;
  }
  return {};
}

}  // namespace tracefs
