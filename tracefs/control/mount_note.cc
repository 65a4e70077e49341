#include "tracefs/control/mount_note.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "tracefs/base/file_io.h"
#include "tracefs/base/ownership.h"
#include "tracefs/base/text.h"

namespace tracefs {
namespace {

// Keys and paths, each shorter than PATH_MAX, and 64 keys at most.
constexpr size_t kMaxBytes = size_t{1} << 19;

std::string NameOf(const MountIdentity& mount) {
  return std::to_string(mount.major) + ':' + std::to_string(mount.minor) +
         ".config";
}

// Where root's notes lie: not below what the daemon keeps open for its socket.
std::vector<std::string> NoteDirectories(uid_t owner) {
  if (owner == 0) return {"/run/tracefs-configs", "/tmp/tracefs-0-configs"};
  return EveryControlDirectory(owner);
}

// Nothing if it is missing or may be another user's.
std::optional<std::string> TextIn(const std::string& directory,
                                  const MountIdentity& mount) {
  const Result<UniqueFd> folder =
      OpenControlDirectory(directory, mount.owner, /*create=*/false);
  if (!folder.ok()) return std::nullopt;
  const UniqueFd file(::openat(folder->get(), NameOf(mount).c_str(),
                               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return std::nullopt;
  const Status ours = CheckOwnership(
      file.get(), {.owner = mount.owner, .one_name = true}, "note");
  if (!ours.ok()) return std::nullopt;
  Result<std::string> text = ReadText(file.get(), kMaxBytes, "note");
  if (!text.ok()) return std::nullopt;
  return *std::move(text);
}

}  // namespace

// key=value, each with a zero byte at its end: paths hold any other.
std::string MountNoteText(const MountNote& note, std::string_view mount_point) {
  std::string text;
  const auto put = [&text](std::string_view key, std::string_view value) {
    text.append(key).append("=").append(value).push_back('\0');
  };
  put("mount", mount_point);
  if (!note.config.empty()) put("config", note.config);
  if (!note.config_dir.empty()) {
    put("config_dir", note.config_dir);
    for (const std::string& key : note.config_keys) put("config_key", key);
    put("config_state", note.config_state);
  }
  for (const std::string& trace : note.traces) put("trace", trace);
  if (!note.kept.empty()) put("kept", note.kept);
  return text;
}

Result<MountNote> ParseMountNote(std::string_view text,
                                 std::string_view mount_point) {
  const Status bad = Status::Corrupt("it is no note of this mount");
  if (text.empty() || text.back() != '\0') return bad;
  MountNote note;
  bool named = false;
  while (!text.empty()) {
    const std::string_view line = TakeUpTo(text, '\0');
    const size_t equals = line.find('=');
    if (equals == line.npos) return bad;
    const std::string_view key = line.substr(0, equals);
    const std::string value(line.substr(equals + 1));
    if (value.empty() || value[0] != '/') return bad;
    if (key == "mount") {
      if (value != mount_point) return bad;
      named = true;
    } else if (key == "config") {
      note.config = value;
    } else if (key == "config_dir") {
      note.config_dir = value;
    } else if (key == "config_key") {
      note.config_keys.push_back(value);
    } else if (key == "config_state") {
      note.config_state = value;
    } else if (key == "trace") {
      note.traces.push_back(value);
    } else if (key == "kept") {
      note.kept = value;
    } else {
      return bad;
    }
  }
  if (!named || note.config_dir.empty() != note.config_state.empty()) {
    return bad;
  }
  return note;
}

Result<UniqueFd> OpenNoteFolder(const ControlFolder& control,
                                const std::string& mount_point) {
  if (::geteuid() != 0) {
    UniqueFd same(::fcntl(control.fd.get(), F_DUPFD_CLOEXEC, 0));
    if (!same) return Status::System(errno, control.path);
    return same;
  }
  Result<ControlFolder> folder =
      OpenControlFolder(NoteDirectories(0), 0, mount_point);
  if (!folder.ok()) return folder.status();
  return std::move(folder->fd);
}

Status WriteMountNote(int folder, const MountIdentity& mount,
                      const std::string& mount_point, const MountNote& note) {
  const std::string name = NameOf(mount);
  const std::string what = "note '" + name + "'";
  if (::unlinkat(folder, name.c_str(), 0) != 0 && errno != ENOENT) {
    return Status::System(errno, what);
  }
  if (!note.names_config() && note.traces.empty()) return Status::Ok();
  const UniqueFd file(
      ::openat(folder, name.c_str(),
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return Status::System(errno, what);
  return WriteAll(file.get(), AsBytes(MountNoteText(note, mount_point)), what);
}

Result<MountNote> ReadMountNote(const MountIdentity& mount) {
  for (const std::string& directory : NoteDirectories(mount.owner)) {
    const std::optional<std::string> text = TextIn(directory, mount);
    if (!text) continue;
    for (const std::string& point : MountPointsOf(mount)) {
      Result<MountNote> note = ParseMountNote(*text, point);
      if (note.ok()) return note;
    }
  }
  return Status::Invalid("there is no note of what the mount was made with");
}

}  // namespace tracefs
