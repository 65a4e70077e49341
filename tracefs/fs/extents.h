// Where on the device lies what an operation wrote, or had to fetch
// (STR_EXTENTS).
//
// The file system is asked after the reply wherever the record is made then. It
// is never asked to allocate what it has put off (FIEMAP_FLAG_SYNC): that would
// write in the middle of a close. Nor is one asked that asks a server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tracefs/event/extents.h"
#include "tracefs/fs/op_scope.h"
#include "tracefs/fs/written_ranges.h"

namespace tracefs {

// Threads: that of the operation.
class ExtentsOf : public ExtentSource {
 public:
  ExtentsOf(const ExtentsOf&) = delete;
  ExtentsOf& operator=(const ExtentsOf&) = delete;

  Answer Ask(Event& event) final;

 protected:
  ExtentsOf(OpScope& op, const Handle& handle) : op_(op), handle_(handle) {}
  // It may outlive the RELEASE of the handle.
  ~ExtentsOf();

  // From now on the event has it: once, before the reply, when `ranges_` and
  // `of_` are there.
  void Offer();

  OpScope& op_;
  const Handle& handle_;
  // There once somebody wants to know: no other operation pays for its room.
  std::optional<WrittenRanges> ranges_;
  std::string_view of_;
  // Why it cannot be known what is to be asked for; 0: it can.
  int unknown_ = 0;

 private:
  bool offered_ = false;
  bool asked_ = false;
  int fd_ = -1;
  uint64_t device_ = 0;
  std::string of_text_;
};

// fsync and release: what was written to the file since the last time, by
// whichever handle. Made before the call below, as what is written while that
// runs belongs to the next one.
class ExtentsOfWrites final : public ExtentsOf {
 public:
  ExtentsOfWrites(OpScope& op, const Handle& handle);
  // What was not settled is left for the next one.
  ~ExtentsOfWrites() = default;

  // The call below has ended; before the reply.
  void Settle(bool done);

 private:
  bool looks_ = false;
  bool unknown_writes_ = false;
};

// A write: `inode` was written from `begin` to `end`, or may have been.
void NoteWritten(const OpScope& op, Inode& inode, uint64_t begin, uint64_t end);

// read: the part that had to be fetched, if some of its pages were not in
// memory. That is asked before the read, which fetches them.
class ExtentsOfRead final : public ExtentsOf {
 public:
  // What is known of the pages of a read before it: how many of them are in
  // memory, or that nobody wants to know, or less than 0: why that cannot be
  // known, as a negative errno.
  static constexpr int64_t kNotAsked = INT64_MAX;

  // `cached`: known from before the request was handed over.
  ExtentsOfRead(OpScope& op, const Handle& handle, int64_t cached)
      : ExtentsOf(op, handle), cached_(cached) {}

  // Before the read.
  void Look(int fd, uint64_t offset, uint64_t size);
  int64_t cached() const { return cached_; }
  // After it, before the reply.
  void Settle(uint64_t offset, uint64_t got);

 private:
  int64_t cached_;
};

}  // namespace tracefs
