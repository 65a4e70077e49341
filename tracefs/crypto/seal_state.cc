#include "tracefs/crypto/seal_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "tracefs/base/durable.h"
#include "tracefs/base/enclosed_folder.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/hex.h"
#include "tracefs/base/ownership.h"
#include "tracefs/crypto/key_source.h"

namespace tracefs {
namespace {

constexpr std::string_view kComment =
    "# Sealing state of Tracefs: changes with every trace. Do not copy it, do\n"
    "# not restore it from a backup: keys would be used twice.\n";
constexpr std::string_view kWord = "tracefs-seal-state-1 ";

// To be wiped. Never moves while it grows: no copy stays behind.
std::string Text(const KeyId& verify_id, const KeyTreeWriter& keys) {
  std::string text;
  text.reserve(kComment.size() + 128 + KeyTreeWriter::kMaxSavedBytes);
  text += kComment;
  text += kWord;
  AppendHex(verify_id, &text);
  text += '\n';
  keys.Save(&text);
  return text;
}

void WipeText(std::string& text) {
  Wipe({reinterpret_cast<std::byte*>(text.data()), text.size()});
}

Status WriteDurably(const UniqueFd& fd, std::string_view text,
                    const std::string& what) {
  Status status = WriteAllAt(fd.get(), AsBytes(text), 0, what);
  if (status.ok() && ::fsync(fd.get()) != 0) {
    status = Status::System(errno, what);
  }
  return status;
}

Status Taken(const std::string& what) {
  return Status::System(
      EEXIST,
      what + " (keys never replace a file; remove it or choose another name)");
}

// Under its own name from the beginning.
Status CreateNamed(int folder, const std::string& name, const std::string& what,
                   std::string_view text) {
  const UniqueFd fd(
      ::openat(folder, name.c_str(),
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return errno == EEXIST ? Taken(what) : Status::System(errno, what);
  Status status = WriteDurably(fd, text, what);
  if (!status.ok()) ::unlinkat(folder, name.c_str(), 0);
  return status;
}

// Named when it is on the disk. False: its file system cannot, or there is no
// /proc; nothing was made.
Result<bool> CreateWhole(const std::string& path, const std::string& what,
                         std::string_view text) {
  const UniqueFd fd(::open(FolderOfPath(path).c_str(),
                           O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (!fd) return false;
  if (Status s = WriteDurably(fd, text, what); !s.ok()) return s;
  if (::linkat(AT_FDCWD, ("/proc/self/fd/" + std::to_string(fd.get())).c_str(),
               AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) {
    return true;
  }
  if (errno == EEXIST) return Taken(what);
  return false;
}

}  // namespace

Status CreateSecretFile(const std::string& path, const std::string& what,
                        std::string_view text) {
  const Result<bool> whole = CreateWhole(path, what, text);
  if (!whole.ok()) return whole.status();
  if (!*whole) {
    if (Status s = CreateNamed(AT_FDCWD, path, what, text); !s.ok()) return s;
  }
  Status named = SyncFolderOf(path);
  if (!named.ok()) ::unlink(path.c_str());
  return named;
}

Status SealState::Create(const std::string& path, KeySpan root) {
  std::string text = Text(IdOfKey(root), KeyTreeWriter(root));
  Status status = CreateSecretFile(path, "sealing state '" + path + "'", text);
  WipeText(text);
  return status;
}

Result<SealState> SealState::Open(const std::string& path, UniqueFd folder) {
  SealState state;
  state.path_ = path;
  const size_t slash = path.rfind('/');
  state.name_ = slash == path.npos ? path : path.substr(slash + 1);
  state.folder_ = std::move(folder);
  if (!state.folder_) {
    UniqueFd fd(
        ::open(FolderOfPath(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return Status::System(errno, state.what());
    const UniqueFd enclosed = EncloseFolder(std::move(fd));
    // That one cannot be synced.
    state.folder_.Reset(
        ::openat(enclosed.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!state.folder_) return Status::System(errno, state.what());
  }
  // Locked: whoever replaces the file wipes the one that was open here.
  const Result<UniqueFd> fd = state.OpenLocked();
  if (!fd.ok()) return fd.status();
  if (const Result<Contents> contents = state.Read(*fd); !contents.ok()) {
    return contents.status();
  }
  return state;
}

Result<UniqueFd> SealState::OpenFile() const {
  UniqueFd fd(::openat(folder_.get(), name_.c_str(),
                       O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    return Status::System(errno,
                          what() +
                              " (it changes with every trace and must be "
                              "a writable file, not a link)");
  }
  // One name: the file is wiped when its keys are used up.
  if (Status s = CheckOwnership(fd.get(), {.forbidden = 077, .one_name = true},
                                what());
      !s.ok()) {
    return s;
  }
  return fd;
}

Result<UniqueFd> SealState::OpenLocked() const {
  // The file may be replaced while we wait for its lock: then lock the new one.
  for (;;) {
    Result<UniqueFd> fd = OpenFile();
    if (!fd.ok()) return fd;
    while (::flock(fd->get(), LOCK_EX) != 0) {
      if (errno != EINTR) return Status::System(errno, what());
    }
    struct stat ours;
    struct stat current;
    if (::fstat(fd->get(), &ours) != 0) return Status::System(errno, what());
    if (::fstatat(folder_.get(), name_.c_str(), &current,
                  AT_SYMLINK_NOFOLLOW) == 0 &&
        current.st_ino == ours.st_ino && current.st_dev == ours.st_dev) {
      return fd;
    }
  }
}

Result<SealState::Contents> SealState::Read(const UniqueFd& fd) const {
  const Result<SecretMemory> memory = ReadSecretFile(fd, what());
  if (!memory.ok()) return memory.status();
  std::string_view text = AsText(memory->bytes());
  text = text.substr(0, text.find('\0'));
  while (!text.empty() && text.front() == '#') {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  KeyId verify_id;
  const size_t digits = 2 * verify_id.size();
  if (text.substr(0, kWord.size()) == kWord &&
      text.size() > kWord.size() + digits &&
      text[kWord.size() + digits] == '\n' &&
      FromHex(text.substr(kWord.size(), digits), verify_id)) {
    text.remove_prefix(kWord.size() + digits + 1);
    if (std::optional<KeyTreeWriter> keys = KeyTreeWriter::Load(text)) {
      return Contents{verify_id, std::move(*keys)};
    }
  }
  return Status::Invalid(what() +
                         " is not one, or is damaged; make a new pair with "
                         "tracefs-keygen seal");
}

Result<SealState::Epoch> SealState::Take() {
  const Result<UniqueFd> locked = OpenLocked();
  if (!locked.ok()) return locked.status();
  const UniqueFd& fd = *locked;
  Result<Contents> contents = Read(fd);
  if (!contents.ok()) return contents.status();
  Epoch epoch;
  epoch.number = contents->keys.first();
  epoch.verify_id = contents->verify_id;
  // After the last number there is none that it could be forgotten below.
  if (epoch.number == UINT64_MAX)
    return Status::Invalid(what() + " is used up");
  epoch.key = SecretKey(*contents->keys.KeyOf(epoch.number));
  contents->keys.ForgetBelow(epoch.number + 1);

  std::string text = Text(contents->verify_id, contents->keys);
  const std::string next = '.' + name_ + ".next";
  ::unlinkat(folder_.get(), next.c_str(), 0);  // left by a crash
  Status status = CreateNamed(folder_.get(), next, what(), text);
  WipeText(text);
  if (!status.ok()) return status;
  if (::renameat(folder_.get(), next.c_str(), folder_.get(), name_.c_str()) !=
          0 ||
      ::fsync(folder_.get()) != 0) {
    return Status::System(errno, what());
  }
  // The old contents go, as far as the disk lets us.
  struct stat st;
  if (::fstat(fd.get(), &st) == 0) {
    const std::string zeros(static_cast<size_t>(st.st_size), '\0');
    (void)WriteDurably(fd, zeros, what()).ok();
  }
  return epoch;
}

}  // namespace tracefs
