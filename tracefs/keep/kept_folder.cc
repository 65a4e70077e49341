#include "tracefs/keep/kept_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/crc32c.h"
#include "tracefs/base/enclosed_folder.h"
#include "tracefs/base/file_extent.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/folder.h"
#include "tracefs/base/notice.h"
#include "tracefs/base/ownership.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/state_folder.h"
#include "tracefs/keep/kept_mark.h"
#include "tracefs/keep/kept_source.h"

namespace tracefs::keep {
namespace {

constexpr uint64_t kBlock = 4096;
// A clone costs a file of its own, and waits until what is in memory only is on
// the disk: less than this is copied.
constexpr uint64_t kLeastCloned = uint64_t{1} << 20;
// Of an object that copies share: it goes as a whole.
constexpr uint64_t kMostShared = uint64_t{16} << 20;
constexpr size_t kMostCopies = size_t{1} << 16;  // that are remembered
constexpr size_t kMostOlder = 4096;

uint64_t KeyOf(uint64_t length, uint32_t checksum) {
  return length << 32 ^ checksum;
}

bool HasHoles(int fd, uint64_t begin, uint64_t end) {
  if (end - begin < kBlock) return false;
  const std::optional<FileExtent> data = NextData(fd, begin, end);
  return !data || data->begin != begin || data->end != end;
}

// Those that a mount has made. None where it cannot be listed.
std::vector<std::string> NamesIn(int dir, bool (*is_ours)(std::string_view)) {
  Result<std::vector<std::string>> names = NamesInFolder(dir);
  if (!names.ok()) return {};
  std::erase_if(*names, [&](const auto& name) { return !is_ours(name); });
  return *std::move(names);
}

uint64_t RoomOf(int dir) {
  uint64_t bytes = 0;
  for (const std::string& name : NamesIn(dir, IsObjectName)) {
    struct stat st;
    if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
      bytes += static_cast<uint64_t>(st.st_size);
    }
  }
  return bytes;
}

// Whether a folder is the directory `source`, if there is one, or lies in it.
// Nothing, and errno, if that cannot be found out.
std::optional<bool> LiesIn(int folder, int source) {
  if (source < 0) return false;
  struct stat a;
  struct stat b;
  if (::fstatat(folder, "", &a, AT_EMPTY_PATH) != 0 ||
      ::fstatat(source, "", &b, AT_EMPTY_PATH) != 0) {
    return std::nullopt;
  }
  if (a.st_dev == b.st_dev && a.st_ino == b.st_ino) return true;
  return IsAbove(source, folder);
}

}  // namespace

Result<std::unique_ptr<KeptFolder>> KeptFolder::Make(const Options& options) {
  const std::string what = "keep_in: " + Printable(options.path);
  struct stat st;
  const bool is_new = ::lstat(options.path.c_str(), &st) != 0;
  if (Status s = MakeFolders(options.path, 0700); !s.ok()) {
    return s.Prefixed("keep_in");
  }
  UniqueFd parent(::open(options.path.c_str(),
                         O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!parent) return Status::System(errno, what);
  if (Status s = CheckOwnership(parent.get(),
                                {.type = S_IFDIR, .forbidden = 077}, what);
      !s.ok()) {
    return s;
  }
  const std::optional<bool> inside = LiesIn(parent.get(), options.source);
  if (!inside) return Status::System(errno, what);
  if (*inside) {
    if (is_new) ::rmdir(options.path.c_str());
    return Status::Invalid(what +
                           " lies in the source, where the mount would show "
                           "it; name a folder beside it");
  }
  parent = EncloseFolder(std::move(parent));
  if (Status s = TakeAsKept(parent.get(), what); !s.ok()) return s;
  if (::mkdirat(parent.get(), options.name.c_str(), 0700) != 0) {
    return Status::System(errno, what + "/" + options.name);
  }
  UniqueFd folder(::openat(parent.get(), options.name.c_str(),
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    return Status::System(errno, what + "/" + options.name);
  }
  std::unique_ptr<KeptFolder> made(
      new KeptFolder(std::move(parent), std::move(folder),
                     options.path + "/" + options.name, options.max_bytes));
  made->FindOlder(options.name);
  return made;
}

KeptFolder::KeptFolder(UniqueFd parent, UniqueFd folder, std::string path,
                       uint64_t max_bytes)
    : parent_(std::move(parent)),
      folder_(std::move(folder)),
      path_(std::move(path)),
      max_bytes_(max_bytes) {}

// What earlier traces have there counts, too, and goes first.
void KeptFolder::FindOlder(const std::string& own) {
  std::multimap<uint64_t, Older> by_time;
  for (const std::string& name : NamesIn(parent_.get(), IsTraceName)) {
    struct stat st;
    if (name == own || by_time.size() >= kMostOlder ||
        ::fstatat(parent_.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(st.st_mode)) {
      continue;
    }
    const UniqueFd dir(
        ::openat(parent_.get(), name.c_str(),
                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!dir) continue;
    const uint64_t bytes = RoomOf(dir.get());
    totals_.held += bytes;
    by_time.emplace(NsOf(st.st_mtim), Older{name, bytes});
  }
  for (auto& [time, older] : by_time) older_.push_back(std::move(older));
  const std::lock_guard lock(mu_);
  (void)MakeRoom();
}

// With mu_ held.
std::shared_ptr<KeptFolder::Object> KeptFolder::NewObject(int* error) {
  auto object = std::make_shared<Object>();
  object->number = next_;
  object->fd.Reset(::openat(folder_.get(), std::to_string(next_).c_str(),
                            O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                            0600));
  if (!object->fd) {
    *error = errno;
    return nullptr;
  }
  ++next_;
  objects_.push_back(object);
  return object;
}

// Room for that many bytes, which nobody else gets. Where blocks lie in a file
// as they did in the other, holes can stay holes.
Result<KeptFolder::Place> KeptFolder::Take(uint64_t begin, uint64_t length) {
  const std::lock_guard lock(mu_);
  const uint64_t share =
      std::clamp(max_bytes_ / 16, uint64_t{1} << 16, kMostShared);
  if (open_ != nullptr && open_->bytes == 0) open_->end = 0;
  if (open_ == nullptr || (open_->end != 0 && open_->end + length > share)) {
    int error = 0;
    std::shared_ptr<Object> object = NewObject(&error);
    if (object == nullptr) return Status::System(error, "kept bytes");
    open_ = std::move(object);
  }
  uint64_t at = open_->end;
  if (length >= kBlock) at += (begin - at) % kBlock;
  open_->end = at + length;
  open_->bytes += length;
  totals_.held += length;
  return Place{open_, at};
}

int KeptFolder::Keep(int fd, uint64_t begin, uint64_t end, uint64_t size,
                     KeptPart* part) {
  *part = {};
  end = std::min(end, size);
  if (begin >= end) return 0;
  const uint64_t length = end - begin;
  int error = EFBIG;
  if (length <= max_bytes_) {
    error = ENOTSUP;
    if (length >= kLeastCloned && clones_.load(std::memory_order_relaxed)) {
      error = Clone(fd, begin, end, size, part);
    }
    if (error == ENOTSUP) {
      error = length <= kMostInMemory && !HasHoles(fd, begin, end)
                  ? CopySmall(fd, begin, length, part)
                  : CopyLarge(fd, begin, length, part);
    }
  }
  if (error != 0) {
    *part = {};
    return error;
  }
  part->length = length;
  return 0;
}

// ENOTSUP: it has to be copied.
int KeptFolder::Clone(int fd, uint64_t begin, uint64_t end, uint64_t size,
                      KeptPart* part) {
  std::shared_ptr<Object> object;
  int error = 0;
  {
    const std::lock_guard lock(mu_);
    object = NewObject(&error);
    if (object == nullptr) return error;
    object->bytes = end - begin;
    totals_.held += object->bytes;
  }
  const UniqueFd to = std::move(object->fd);
  // Whole blocks, but at the end of the file; 0: up to there.
  const uint64_t from = begin / kBlock * kBlock;
  const uint64_t until = (end + kBlock - 1) / kBlock * kBlock;
  const file_clone_range range = {
      .src_fd = fd,
      .src_offset = from,
      .src_length = until >= size ? 0 : until - from,
      .dest_offset = 0};
  struct stat st;
  if (::ioctl(to.get(), FICLONERANGE, &range) != 0) {
    error = errno;
  } else if (::fstat(to.get(), &st) != 0) {
    error = errno;
  }
  if (error == 0) {
    *part = {.object = object->number,
             .at = begin - from,
             .changed_ns = NsOf(st.st_ctim)};
    return 0;
  }
  part->object = object->number;
  Drop(*part);
  const bool never = error == EXDEV || error == EOPNOTSUPP || error == ENOTTY;
  if (never) clones_.store(false, std::memory_order_relaxed);
  return never || error == EINVAL ? ENOTSUP : error;
}

int KeptFolder::CopySmall(int fd, uint64_t begin, uint64_t length,
                          KeptPart* part) {
  thread_local std::vector<std::byte> room;
  if (room.size() < length) room.resize(length);
  const std::span<std::byte> bytes(room.data(), length);
  if (const int error = ReadBytes(fd, bytes, begin); error != 0) return error;
  part->is_copy = true;
  part->checksum = Crc32c(bytes);
  part->length = length;
  if (FindSame(bytes, part)) return 0;
  const Result<Place> place = Take(begin, length);
  if (!place.ok()) return place.status().error();
  part->object = place->object->number;
  part->at = place->at;
  const Status written =
      WriteAllAt(place->object->fd.get(), bytes, place->at, "kept bytes");
  if (!written.ok()) {
    const std::lock_guard lock(mu_);
    GiveBack(place->object, place->at, length);
    return written.error();
  }
  part->may_be_shared = true;
  return 0;
}

int KeptFolder::CopyLarge(int fd, uint64_t begin, uint64_t length,
                          KeptPart* part) {
  const Result<Place> place = Take(begin, length);
  if (!place.ok()) return place.status().error();
  part->object = place->object->number;
  part->at = place->at;
  part->is_copy = true;
  int error = CopyBytes(fd, begin, length, place->object->fd.get(), place->at,
                        &part->checksum);
  struct stat st;
  const uint64_t end = place->at + length;
  constexpr std::array kZero = {std::byte{0}};
  // A hole at its end is none of the object's bytes otherwise.
  if (error == 0 && (::fstat(place->object->fd.get(), &st) != 0 ||
                     (static_cast<uint64_t>(st.st_size) < end &&
                      ::pwrite(place->object->fd.get(), kZero.data(), 1,
                               static_cast<off_t>(end - 1)) != 1))) {
    error = errno;
  }
  if (error != 0) {
    const std::lock_guard lock(mu_);
    GiveBack(place->object, place->at, length);
  }
  return error;
}

// What was not written as a whole, or not destroyed, takes no room. With mu_
// held.
void KeptFolder::GiveBack(const std::shared_ptr<Object>& object, uint64_t at,
                          uint64_t length) {
  ::fallocate(object->fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(at), static_cast<off_t>(length));
  object->bytes -= length;
  // It may have gone meanwhile, and all of it with it.
  const auto place = std::ranges::find(objects_, object);
  if (place == objects_.end()) return;
  totals_.held -= length;
  if (object == open_) {
    if (object->end == at + length) object->end = at;
  } else if (object->bytes == 0) {
    Remove(object->number);
    objects_.erase(place);
  }
}

// Whether the same bytes are there: compared, not believed. What would go soon
// does not count.
bool KeptFolder::FindSame(ByteSpan bytes, KeptPart* part) {
  KeptPart same;
  {
    const std::lock_guard lock(mu_);
    const auto at = copies_.find(KeyOf(bytes.size(), part->checksum));
    if (at == copies_.end() ||
        at->second.object < first_ + (next_ - first_) / 2) {
      return false;
    }
    same = at->second;
  }
  const UniqueFd fd(::openat(folder_.get(), std::to_string(same.object).c_str(),
                             O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  std::vector<std::byte> there(bytes.size());
  if (!fd || !ReadAllAt(fd.get(), there, same.at) ||
      std::memcmp(there.data(), bytes.data(), bytes.size()) != 0) {
    return false;
  }
  *part = same;
  return true;
}

// With mu_ held.
void KeptFolder::Remove(uint64_t number) {
  ::unlinkat(folder_.get(), std::to_string(number).c_str(), 0);
}

void KeptFolder::Drop(const KeptPart& part) {
  if (part.object == 0 || part.was_there) return;
  const std::lock_guard lock(mu_);
  const auto at = std::ranges::find(objects_, part.object, &Object::number);
  if (at == objects_.end()) return;
  if (part.is_copy) {
    // Others are in that object.
    const std::shared_ptr<Object> object = *at;
    return GiveBack(object, part.at, part.length);
  }
  totals_.held -= (*at)->bytes;
  Remove(part.object);
  objects_.erase(at);
}

uint64_t KeptFolder::Settle(const KeptPart& part) {
  if (part.object == 0) return 0;
  const std::lock_guard lock(mu_);
  ++totals_.parts;
  totals_.bytes += part.length;
  if (!part.is_copy) totals_.cloned += part.length;
  if (part.was_there) totals_.same += part.length;
  if (part.may_be_shared) {
    if (copies_.size() >= kMostCopies) copies_.clear();
    KeptPart& copy = copies_[KeyOf(part.length, part.checksum)];
    copy = part;
    copy.may_be_shared = false;
    copy.was_there = true;
  }
  return totals_.held > max_bytes_ ? MakeRoom() : 0;
}

void KeptFolder::NoteFailure(int error) {
  if (failed_.fetch_add(1, std::memory_order_relaxed) != 0) return;
  Notify(NoticeId::kDiskFull,
         Status::System(error, "STR_KEEP: " + Printable(path_) +
                                   ": what an operation destroys is not kept")
             .message());
}

// With mu_ held.
bool KeptFolder::RemoveOlder() {
  if (older_.empty()) return false;
  const Older older = std::move(older_.front());
  older_.pop_front();
  const UniqueFd dir(::openat(parent_.get(), older.name.c_str(),
                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  totals_.held -= std::min(totals_.held, older.bytes);
  // Of a mount that still runs: its own budget holds for it.
  if (!dir || ::flock(dir.get(), LOCK_EX | LOCK_NB) != 0) return true;
  for (const std::string& name : NamesIn(dir.get(), IsObjectName)) {
    ::unlinkat(dir.get(), name.c_str(), 0);
  }
  ::unlinkat(parent_.get(), older.name.c_str(), AT_REMOVEDIR);
  return true;
}

// With mu_ held. The first object that is left, if one had to go.
uint64_t KeptFolder::MakeRoom() {
  bool went = false;
  while (totals_.held > max_bytes_) {
    if (RemoveOlder()) continue;
    if (objects_.size() < 2) break;
    const std::shared_ptr<Object> oldest = std::move(objects_.front());
    objects_.pop_front();
    if (oldest == open_) open_.reset();
    totals_.held -= oldest->bytes;
    if (totals_.removed++ == 0) {
      Notify(NoticeId::kDiskFull,
             "STR_KEEP: " + Printable(path_) +
                 ": keep_max is used up: of what was kept the oldest goes");
    }
    Remove(oldest->number);
    first_ = objects_.front()->number;
    went = true;
  }
  return went ? first_ : 0;
}

KeptTotals KeptFolder::Totals() const {
  const std::lock_guard lock(mu_);
  KeptTotals totals = totals_;
  totals.failed = failed_.load(std::memory_order_relaxed);
  return totals;
}

}  // namespace tracefs::keep
