#include "tracefs/fs/lasting_ids.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/base/gone_mark.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/fs/path_below.h"

namespace tracefs {

// linux/include/linux/exportfs.h, enum fid_type, and what file systems put into
// it: their encode_fh.
const LastingIds::Form LastingIds::kForms[] = {
    {1, 8, 0, 4, 4},       // FILEID_INO32_GEN: ext4, XFS with inode32, f2fs
    {1, 12, 4, 8, 0},      // tmpfs
    {0x81, 12, 0, 8, 8},   // XFS
    {0x4d, 20, 0, 8, 16},  // btrfs; between them the subvolume
};

std::unique_ptr<LastingIds> LastingIds::Of(int root, const struct stat& st,
                                           bool whole) {
  const CompactHandle handle = CompactHandle::Of(root, "");
  const auto form = std::ranges::find_if(kForms, [&](const Form& one) {
    return handle && handle.type() == one.type && handle.size() == one.size;
  });
  errno = EOPNOTSUPP;
  if (form == std::end(kForms)) return nullptr;
  std::unique_ptr<LastingIds> ids(
      new LastingIds(*form, handle, root, st, whole));
  // Another file system's handle may look like that.
  const uint64_t id = ids->IdOf(handle, st);
  if (id == 0 || static_cast<uint32_t>(id) != st.st_ino) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  return ids;
}

LastingIds::LastingIds(const Form& form, const CompactHandle& root, int root_fd,
                       const struct stat& st, bool whole)
    : form_(form),
      like_(root.bytes(), root.bytes() + root.size()),
      root_fd_(root_fd),
      device_(st.st_dev),
      root_number_(st.st_ino),
      whole_(whole) {
  do {
    if (::getrandom(&generation_, sizeof generation_, 0) !=
        sizeof generation_) {
      generation_ = static_cast<uint32_t>(::getpid());
    }
  } while (generation_ <= 1);
}

uint64_t LastingIds::IdOf(const CompactHandle& handle,
                          const struct stat& st) const {
  if (handle.type() != form_.type || handle.size() != form_.size ||
      st.st_dev != device_) {
    return 0;
  }
  const uint8_t* const bytes = handle.bytes();
  const uint64_t number = form_.number_bytes == 8
                              ? LoadLe<uint64_t>(bytes + form_.number_at)
                              : LoadLe<uint32_t>(bytes + form_.number_at);
  const uint64_t id =
      uint64_t{LoadLe<uint32_t>(bytes + form_.generation_at)} << 32 | number;
  // 1 is the root's.
  if (number == 0 || number > UINT32_MAX || id == 1) return 0;
  const CompactHandle again = HandleOf(id);
  return again == handle ? id : 0;
}

CompactHandle LastingIds::HandleOf(uint64_t id) const {
  if (!Lasts(id)) return {};
  std::vector<uint8_t> bytes = like_;
  const auto number = static_cast<uint32_t>(id);
  if (form_.number_bytes == 8) {
    StoreLe<uint64_t>(&bytes[form_.number_at], number);
  } else {
    StoreLe<uint32_t>(&bytes[form_.number_at], number);
  }
  StoreLe<uint32_t>(&bytes[form_.generation_at],
                    static_cast<uint32_t>(id >> 32));
  return CompactHandle::From(form_.type, bytes.data(), bytes.size());
}

bool LastingIds::IsBelowRoot(int directory) const {
  constexpr int kDeepest = 4096;
  UniqueFd at(::fcntl(directory, F_DUPFD_CLOEXEC, 0));
  struct stat st;
  struct stat last {};
  for (int depth = 0; at && depth < kDeepest; ++depth) {
    if (::fstatat(at.get(), "", &st, AT_EMPTY_PATH) != 0) return false;
    if (st.st_dev == device_ && st.st_ino == root_number_) return true;
    // The root of all is its own parent.
    if (st.st_dev == last.st_dev && st.st_ino == last.st_ino) return false;
    last = st;
    at.Reset(::openat(at.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  return false;
}

bool LastingIds::IsInside(int fd, uint64_t id, const struct stat& st,
                          std::string* where) const {
  where->clear();
  if (st.st_dev != device_) return false;
  std::string top = PathBelow(root_fd_);
  if (top == "/") top.clear();
  const std::string path = PathBelow(fd);
  const bool known = path.size() > top.size() + 1 && path.starts_with(top) &&
                     path[top.size()] == '/';
  if (known) *where = path.substr(top.size() + 1);
  // One of several names that is gone is none.
  if (where->ends_with(kGoneMark) && !LeadsTo(*where, st)) where->clear();
  if (S_ISDIR(st.st_mode)) return IsBelowRoot(fd);
  if (whole_ || given_[PlaceOf(id)].load() == id) return true;
  // The path of a file that the kernel knows no directory of begins anywhere.
  return !where->empty() && LeadsTo(*where, st);
}

bool LastingIds::LeadsTo(const std::string& path, const struct stat& st) const {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const UniqueFd there(static_cast<int>(
      ::syscall(SYS_openat2, root_fd_, path.c_str(), &how, sizeof how)));
  struct stat same;
  return there && ::fstatat(there.get(), "", &same, AT_EMPTY_PATH) == 0 &&
         same.st_dev == st.st_dev && same.st_ino == st.st_ino;
}

}  // namespace tracefs
