#include "tracefs/fs/extents.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

#include "tracefs/fs/ask_extents.h"
#include "tracefs/fs/file_system.h"

namespace tracefs {
namespace {

// cachestat(2), since Linux 6.5: a mapping and mincore(2) say the same of a
// read of 128 KiB in thirty times the time.
constexpr long kCachestat = 451;
struct CachestatRange {
  uint64_t offset;
  uint64_t length;
};
struct CachestatResult {
  uint64_t cached;
  uint64_t dirty;
  uint64_t writeback;
  uint64_t evicted;
  uint64_t recently_evicted;
};

uint64_t PageBytes() {
  static const auto kBytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return kBytes;
}
uint64_t PageBegin(uint64_t at) { return at - at % PageBytes(); }
uint64_t PageEnd(uint64_t at) {
  return at > UINT64_MAX - PageBytes() ? UINT64_MAX
                                       : PageBegin(at + PageBytes() - 1);
}

// How many of the pages of a range are in memory, or a negative errno.
int64_t CachedPages(int fd, uint64_t offset, uint64_t size) {
  CachestatRange range = {PageBegin(offset),
                          PageEnd(offset + size) - PageBegin(offset)};
  CachestatResult result{};
  if (::syscall(kCachestat, fd, &range, &result, 0) != 0) return -errno;
  return static_cast<int64_t>(std::min<uint64_t>(result.cached, INT32_MAX));
}

bool Passes(const Handle& handle) {
  return handle.io_mode == IoMode::kPassthrough ||
         handle.io_mode == IoMode::kPassthroughDirect;
}

}  // namespace

ExtentsOf::~ExtentsOf() {
  if (!offered_ || !handle_.LeaveAsLast()) return;
  op_.fs().CloseAside(std::unique_ptr<Handle>(const_cast<Handle*>(&handle_)));
}

void ExtentsOf::Offer() {
  handle_.Enter();
  offered_ = true;
  device_ = handle_.inode.device();
  if (unknown_ == 0 && op_.fs().may_hang_below()) unknown_ = EREMOTE;
  if (unknown_ == 0) {
    fd_ = handle_.Fd(op_.fs());
    if (fd_ < 0) unknown_ = errno;
  }
  op_.Lies(*this);
}

ExtentSource::Answer ExtentsOf::Ask(Event& event) {
  thread_local std::string list;
  if (!asked_) {
    asked_ = true;
    list.clear();
    of_text_ = of_;
    if (ranges_->widened()) (of_text_ += ',') += kWidened;
    event.Set(Field::kExtentsDevice, device_);
    if (unknown_ == 0) {
      uint64_t left_out = 0;
      unknown_ = AskForExtents(fd_, *ranges_, &list, &left_out);
      if (left_out != 0) event.Set(Field::kExtentsLeftOut, left_out);
    }
    if (unknown_ != 0) {
      event.Set(Field::kExtentsErrno, static_cast<uint32_t>(unknown_));
    }
  }
  return {of_text_, list};
}

ExtentsOfWrites::ExtentsOfWrites(OpScope& op, const Handle& handle)
    : ExtentsOf(op, handle), looks_(op.WantsExtents()) {
  if (!looks_) return;
  unknown_writes_ = Passes(handle) || handle.inode.has_unknown_writes();
  WriteNotes* const notes = handle.inode.write_notes();
  ranges_ = notes != nullptr ? notes->Take() : WrittenRanges();
}

void ExtentsOfWrites::Settle(bool done) {
  if (!looks_) return;
  if (!done) {
    if (!ranges_->empty()) handle_.inode.write_notes()->Return(*ranges_);
    return;
  }
  if (unknown_writes_) {
    handle_.inode.SetUnknownWrites(false);
    ranges_.emplace().Add(0, INT64_MAX);
  }
  if (ranges_->empty()) return;
  of_ = unknown_writes_ ? kOfFile : kOfWritten;
  Offer();
}

void NoteWritten(const OpScope& op, Inode& inode, uint64_t begin,
                 uint64_t end) {
  if (!op.NotesWrites() || begin >= end) return;
  inode.MakeWriteNotes().Add(PageBegin(begin), PageEnd(end));
}

void ExtentsOfRead::Look(int fd, uint64_t offset, uint64_t size) {
  if (!op_.WantsExtents() || cached_ != kNotAsked) return;
  // It goes to the disk, whatever is in memory.
  cached_ = handle_.reads_from_disk() ? 0 : CachedPages(fd, offset, size);
}

void ExtentsOfRead::Settle(uint64_t offset, uint64_t got) {
  if (cached_ == kNotAsked || got == 0 || handle_.inode.is_output()) return;
  const uint64_t begin = PageBegin(offset);
  const uint64_t end = PageEnd(offset + got);
  ranges_.emplace();
  if (cached_ < 0) {
    of_ = kColdUnknown;
    unknown_ = static_cast<int>(-cached_);
  } else if (static_cast<uint64_t>(cached_) < (end - begin) / PageBytes()) {
    of_ = kOfRead;
    ranges_->Add(begin, end);
  } else {
    return;
  }
  Offer();
}

}  // namespace tracefs
