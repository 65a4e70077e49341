#include "tracefs/replay/verify.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "tracefs/base/printable.h"

namespace tracefs::replay {
namespace {

bool IsXattr(Op op) {
  return op == Op::setxattr_ || op == Op::getxattr_ || op == Op::listxattr_ ||
         op == Op::removexattr_;
}

// What a file system other than the recorded one may well refuse, or have of
// its own.
std::optional<Explained> WhyError(const Action& a, int error,
                                  const VerifyOptions& options) {
  const auto was = static_cast<int>(a.error);
  const auto either = [&](int e) { return error == e || was == e; };
  if (a.Has(kRacing)) return Explained::kRaced;
  if (IsXattr(a.op) && (either(EOPNOTSUPP) || either(ENODATA) ||
                        either(ENOSPC) || either(ERANGE) || either(E2BIG))) {
    return Explained::kNotSupported;
  }
  if (either(EOPNOTSUPP) || either(ENOSYS)) return Explained::kNotSupported;
  if (a.op == Op::lseek_ && either(ENXIO)) return Explained::kLayout;
  if (!options.grants.Has(Privilege::kOwner) &&
      (either(EACCES) || either(EPERM))) {
    return Explained::kRights;
  }
  if (a.op == Op::copy_file_range_ && either(EXDEV)) {
    return Explained::kNotSupported;
  }
  return std::nullopt;
}

Verdict Differs(std::optional<Explained> why, std::string text) {
  return {.matches = false, .explained = why, .text = std::move(text)};
}

std::string Both(const char* what, const std::string& then,
                 const std::string& now) {
  return std::string(what) + " " + then + " then, " + now + " now";
}

Verdict VerifyBytes(const Action& a, const Done& done,
                    const VerifyOptions& options) {
  if (!a.Has(kHasHash) || a.hash == done.hash) return {};
  std::optional<Explained> why;
  if (a.Has(kInitialData) || !options.has_bytes) why = Explained::kNotKept;
  if (a.Has(kRacing)) why = Explained::kRaced;
  return Differs(why, "other bytes than then");
}

Verdict VerifyStat(const Action& a, const Done& done,
                   const VerifyOptions& options) {
  const struct stat& st = done.st;
  if ((a.stat_mode & S_IFMT) != (st.st_mode & S_IFMT)) {
    const bool device = S_ISCHR(a.stat_mode) || S_ISBLK(a.stat_mode);
    return Differs(device ? std::optional(Explained::kDevice) : std::nullopt,
                   Both("type", std::to_string(a.stat_mode >> 12),
                        std::to_string(st.st_mode >> 12)));
  }
  if (S_ISREG(st.st_mode) && a.stat_size != static_cast<uint64_t>(st.st_size)) {
    return Differs(
        a.Has(kSizeRaces) ? std::optional(Explained::kRaced) : std::nullopt,
        Both("size", std::to_string(a.stat_size), std::to_string(st.st_size)));
  }
  // DIR itself is as its owner has made it.
  const bool is_top = a.place == Place::kDir && a.dir == kRootSlot;
  const uint32_t other_bits = (a.stat_mode ^ st.st_mode) & 07777;
  if (!is_top && !S_ISLNK(st.st_mode) && other_bits != 0) {
    std::optional<Explained> why;
    if (a.Has(kSizeRaces)) why = Explained::kRaced;
    if ((other_bits & ~kSetIdBits) == 0 &&
        !options.grants.Has(Privilege::kSetId)) {
      why = Explained::kLeftOut;
    }
    return Differs(why, Both("mode", std::to_string(a.stat_mode & 07777),
                             std::to_string(st.st_mode & 07777)));
  }
  if (!S_ISDIR(st.st_mode) && a.stat_nlink != 0 &&
      a.stat_nlink != st.st_nlink) {
    std::optional<Explained> why;
    if (a.Has(kUnknownNames) && a.stat_nlink > st.st_nlink) {
      why = Explained::kUntoldNames;
    }
    return Differs(why, Both("links", std::to_string(a.stat_nlink),
                             std::to_string(st.st_nlink)));
  }
  return {};
}

}  // namespace

std::string ErrorName(uint32_t error) {
  const char* const name = ::strerrorname_np(static_cast<int>(error));
  return name != nullptr ? name : std::to_string(error);
}

Verdict Verify(const Action& a, const Done& done,
               const VerifyOptions& options) {
  if (done.left_out) return Differs(Explained::kLeftOut, "not asked for");
  if (done.skipped) return Differs(Explained::kDevice, "not done");
  if (static_cast<int>(a.error) != done.error) {
    return Differs(
        WhyError(a, done.error, options),
        Both("result", a.error == 0 ? "success" : ErrorName(a.error),
             done.error == 0 ? "success"
                             : ErrorName(static_cast<uint32_t>(done.error))));
  }
  if (a.error != 0) return {};
  switch (a.op) {
    case Op::read_:
    case Op::write_:
      if (a.result != done.result) {
        return Differs(
            a.Has(kRacing) ? std::optional(Explained::kRaced) : std::nullopt,
            Both("bytes", std::to_string(a.result),
                 std::to_string(done.result)));
      }
      return a.op == Op::read_ ? VerifyBytes(a, done, options) : Verdict();
    case Op::readlink_:
      if (!a.text.empty() && a.text != done.text) {
        return Differs(std::nullopt,
                       Both("target", Printable(a.text), Printable(done.text)));
      }
      return {};
    case Op::copy_file_range_:
    case Op::lseek_:
    case Op::getxattr_:
    case Op::listxattr_:
      if (a.result != done.result) {
        return Differs(Explained::kLayout,
                       Both("result", std::to_string(a.result),
                            std::to_string(done.result)));
      }
      return a.op == Op::copy_file_range_ ? VerifyBytes(a, done, options)
                                          : Verdict();
    case Op::lookup_:
    case Op::getattr_:
    case Op::setattr_:
    case Op::symlink_:
    case Op::mknod_:
    case Op::mkdir_:
    case Op::unlink_:
    case Op::rmdir_:
    case Op::rename_:
    case Op::link_:
    case Op::open_:
    case Op::create_:
    case Op::tmpfile_:
    case Op::flush_:
    case Op::release_:
    case Op::fsync_:
    case Op::opendir_:
    case Op::readdir_:
    case Op::releasedir_:
    case Op::fsyncdir_:
    case Op::statfs_:
    case Op::setxattr_:
    case Op::removexattr_:
    case Op::access_:
    case Op::getlk_:
    case Op::setlk_:
    case Op::flock_:
    case Op::fallocate_:
    case Op::ioctl_:
    case Op::poll_:
    case Op::statx_:
      break;
  }
  return a.Has(kHasStat) && done.has_stat ? VerifyStat(a, done, options)
                                          : Verdict();
}

}  // namespace tracefs::replay
