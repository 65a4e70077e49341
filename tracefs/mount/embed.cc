#include "tracefs/mount/embed.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/file_io.h"
#include "tracefs/build/access.h"
#include "tracefs/build/patterns.h"
#include "tracefs/crypto/hash.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/embedded_file.h"
#include "tracefs/format/message_writer.h"
#include "tracefs/text/units.h"

namespace tracefs {
namespace {

using format::EmbeddedFile;

constexpr std::string_view kTooLarge = "too large";
constexpr std::string_view kNoRoom = "no room left";
constexpr std::string_view kChanged = "changed since it was read";
constexpr std::string_view kReplaced = "replaced since it was read";
constexpr std::string_view kRemoved = "removed since it was read";
constexpr std::string_view kNotRegular = "no regular file";
constexpr std::string_view kUnreadable = "cannot be read";

// Change times are those of the last tick of the kernel's clock, 100 Hz at
// worst, and may be taken a moment before the time of an operation.
constexpr uint64_t kTickNs = 20'000'000;
// More are counted without their names.
constexpr uint64_t kMostNamed = 1000;
// Names that tell nothing new; a build has some ten thousand.
constexpr size_t kMostNames = size_t{1} << 20;
constexpr size_t kMostFound = size_t{1} << 20;
constexpr size_t kBlockBytes = size_t{1} << 20;
constexpr size_t kMessageRoom = size_t{16} << 10;  // paths and numbers

UniqueFd OpenBelow(int folder, const std::string& path) {
  open_how how = {};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  // A path of a trace has no links: if it has one now, it is another file's.
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(static_cast<int>(
      ::syscall(SYS_openat2, folder, path.c_str() + 1, &how, sizeof how)));
}

bool SameState(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && NsOf(a.st_ctim) == NsOf(b.st_ctim) &&
         NsOf(a.st_mtim) == NsOf(b.st_mtim);
}

}  // namespace

const std::vector<std::string>& UsualBuildFiles() {
  static const std::vector<std::string> names = {
      // make, CMake, Ninja, Meson, autotools
      "Makefile", "makefile", "GNUmakefile", "Makefile.*", "*.mk", "*.mak",
      "CMakeLists.txt", "*.cmake", "CMakePresets.json", "CMakeCache.txt",
      "*.ninja", "meson.build", "meson.options", "meson_options.txt",
      "configure", "configure.ac", "configure.in", "config.status", "*.m4",
      "*.am", "Kbuild", "Kconfig", "Kconfig.*", ".config",
      // others
      "*.sh", "BUILD", "BUILD.bazel", "WORKSPACE", "MODULE.bazel", "*.bzl",
      "SConstruct", "SConscript", "wscript", "Rakefile", "Jamfile", "*.pro",
      "*.pri", "*.gn", "*.gni", "build.xml", "pom.xml", "build.gradle",
      "build.gradle.kts", "settings.gradle", "settings.gradle.kts",
      "gradle.properties", "pyproject.toml", "setup.py", "setup.cfg",
      "requirements*.txt", "tox.ini", "package.json", "package-lock.json",
      "tsconfig*.json", "Cargo.toml", "Cargo.lock", "build.rs", "go.mod",
      "go.sum", "compile_commands.json", "*.spec", "debian/control",
      "*/debian/rules", "*/debian/control", "*.csproj", "*.props", "*.targets",
      "Dockerfile"};
  return names;
}

struct Embedder::Kept {
  struct stat st {};
  EmbeddedFile::Sure sure = EmbeddedFile::Sure::kYes;
  std::vector<std::byte> bytes;
  Digest hash{};
};

Embedder::Embedder(EmbedOptions options, UniqueFd folder)
    : options_(std::move(options)),
      folder_(std::move(folder)),
      left_(options_.max_total) {}

bool Embedder::Matches(std::string_view path) {
  const auto of_path = [](const std::string& pattern) {
    return pattern.find('/') != pattern.npos;
  };
  const std::string name(path.substr(path.rfind('/') + 1));
  const auto [known, fresh] = by_name_.emplace(name, false);
  if (fresh) {
    known->second = std::any_of(
        options_.patterns.begin(), options_.patterns.end(),
        [&](const std::string& pattern) {
          return !of_path(pattern) && build::MatchesAny({pattern}, name);
        });
  }
  const bool by_name = known->second;
  if (by_name_.size() > kMostNames) by_name_.clear();
  return by_name ||
         std::any_of(options_.patterns.begin(), options_.patterns.end(),
                     [&](const std::string& pattern) {
                       return of_path(pattern) &&
                              build::MatchesAny({pattern}, std::string(path));
                     });
}

void Embedder::NoteOpen(const format::Record& record) {
  const Event& event = record.event;
  const auto flags = static_cast<uint32_t>(event.Get(Field::kFlags));
  if (build::OpenMode(flags) == O_WRONLY || (flags & O_TRUNC) != 0) return;
  const std::string_view path = format::PathOf(record, buffer_);
  if (path.size() < 2 || path[0] != '/' || !Matches(path)) return;
  if (found_.size() >= kMostFound) return;
  const auto [known, fresh] =
      by_path_.emplace(std::string(path), found_.size());
  const uint64_t inode = event.GetOr0(Field::kInode);
  if (!fresh) {
    // Another file has the name now: what was read first is gone.
    Found& before = found_[known->second];
    before.written |= before.inode != inode;
    return;
  }
  by_inode_.emplace(inode, found_.size());
  found_.push_back({known->first, inode, record.real_ns, false});
}

void Embedder::NoteChange(uint64_t inode) {
  const auto [begin, end] = by_inode_.equal_range(inode);
  for (auto at = begin; at != end; ++at) found_[at->second].written = true;
}

void Embedder::Note(const format::Record& record) {
  const Event& event = record.event;
  if (event.before || format::OutcomeOf(record) == format::Outcome::kFailure) {
    return;
  }
  const bool opens = event.op == Op::open_;
  if (opens && event.Has(Field::kFlags)) NoteOpen(record);
  // A new size; other attributes change no byte.
  const bool resizes = event.op == Op::setattr_ &&
                       (event.GetOr0(Field::kValid) & FATTR_SIZE) != 0;
  if (event.op == Op::copy_file_range_) {
    NoteChange(event.GetOr0(Field::kInodeOut));
  } else if (event.op == Op::write_ || event.op == Op::fallocate_ || resizes ||
             (opens && (event.GetOr0(Field::kFlags) & O_TRUNC) != 0)) {
    NoteChange(event.GetOr0(Field::kInode));
  }
}

std::string_view Embedder::ReadOpen(const Found& found, int fd, Kept* kept) {
  if (::fstat(fd, &kept->st) != 0) return kUnreadable;
  const struct stat& st = kept->st;
  if (!S_ISREG(st.st_mode)) return kNotRegular;
  if (found.inode != 0 && found.inode != st.st_ino) return kReplaced;
  if (found.written) return kChanged;
  if (NsOf(st.st_ctim) > found.opened_ns + kTickNs) {
    if (NsOf(st.st_mtim) > found.opened_ns + kTickNs) return kChanged;
    kept->sure = EmbeddedFile::Sure::kByTime;
  }
  const auto size = static_cast<uint64_t>(st.st_size);
  if (size > options_.max_file) return kTooLarge;
  const UniqueFd opened(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(),
                               O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!opened) return kUnreadable;
  kept->bytes.resize(size);
  if (!ReadAllAt(opened.get(), kept->bytes, 0)) return kChanged;
  struct stat after;
  if (::fstat(opened.get(), &after) != 0 || !SameState(st, after)) {
    return kChanged;
  }
  Sha256 hash;
  hash.Update(kept->bytes);
  kept->hash = hash.Finish();
  return {};
}

std::string_view Embedder::Read(const Found& found, Kept* kept) {
  const UniqueFd fd = OpenBelow(folder_.get(), found.path);
  if (fd) return ReadOpen(found, fd.get(), kept);
  if (errno == ENOENT || errno == ENOTDIR) return kRemoved;
  return errno == ELOOP || errno == EXDEV ? kReplaced : kUnreadable;
}

Embedder::Totals Embedder::Write(const Put& put) {
  Totals totals;
  std::set<Digest> there;
  std::map<std::string_view, uint64_t> unnamed;
  std::vector<std::byte> memory(kBlockBytes + kMessageRoom +
                                EmbedOptions::kMostFile);
  format::MessageWriter out(memory);
  const auto hand_on = [&](size_t room) {
    if (out.size() == 0 || out.size() + room < kBlockBytes) return;
    put(out.bytes());
    out.Clear();
  };
  uint64_t named = 0;
  for (const Found& found : found_) {
    Kept kept;
    std::string_view why = Read(found, &kept);
    const bool fresh = why.empty() && !there.contains(kept.hash);
    if (fresh && kept.bytes.size() > left_) why = kNoRoom;
    if (!why.empty()) {
      ++totals.left_out[std::string(why)];
      if (++named > kMostNamed) {
        ++unnamed[why];
        continue;
      }
    } else {
      ++totals.files;
    }
    EmbeddedFile file = {.path = found.path,
                         .size = static_cast<uint64_t>(kept.st.st_size),
                         .mtime_ns = NsOf(kept.st.st_mtim),
                         .mode = kept.st.st_mode,
                         .left_out = why,
                         .sure = kept.sure,
                         .hash = kept.hash,
                         .has_content = why.empty() && fresh,
                         .content = kept.bytes};
    if (file.has_content) {
      there.insert(kept.hash);
      left_ -= kept.bytes.size();
      ++totals.contents;
      totals.bytes += kept.bytes.size();
    }
    hand_on(file.has_content ? kept.bytes.size() : 0);
    static_cast<void>(WriteEmbeddedFile(out, file));
  }
  for (const auto& [why, count] : unnamed) {
    EmbeddedFile unnamed_ones;
    unnamed_ones.left_out = why;
    unnamed_ones.count = count;
    static_cast<void>(WriteEmbeddedFile(out, unnamed_ones));
  }
  hand_on(kBlockBytes);
  return totals;
}

std::string EmbeddedText(const Embedder::Totals& totals) {
  std::string text = "embedded " + std::to_string(totals.files) + " files, " +
                     SizeText(totals.bytes);
  uint64_t all = 0;
  std::string why;
  for (const auto& [reason, count] : totals.left_out) {
    all += count;
    why += (why.empty() ? ": " : ", ") + std::to_string(count) + ' ' + reason;
  }
  if (all != 0) text += "; left out " + std::to_string(all) + why;
  return text;
}

}  // namespace tracefs
