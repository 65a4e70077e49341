// DayFiles: a trace at the receivers of a fleet, a file for each day:
// date=D/SERIAL.trace. They are the parts of one trace (FORMAT.md section 2.1).
//
// Any receiver may append, under the lock of the host's folder. What another
// one has done meanwhile is found by reading on from where it was known.
#pragma once

#include <optional>
#include <string>

#include "tracefs/base/bytes.h"
#include "tracefs/base/ranges.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/format/marks.h"
#include "tracefs/recv/fleet/places.h"

namespace tracefs {

// Used by one thread, with the lock held.
class DayFiles {
 public:
  // `folder` outlives it.
  DayFiles(const HostFolder& folder, std::string preamble,
           const format::Serial& serial);

  // Before all else: what is there by now. kInvalid: it is another trace.
  Status Refresh();
  // The number after the highest block.
  uint64_t next() const { return next_; }
  // A block below that is not there.
  bool Missing(uint64_t sequence) const { return missing_.Has(sequence); }

  // For a trace of which only the head is left (KeepHeads): it goes on
  // with that block.
  void ResumeAt(uint64_t sequence);

  // A block with a number from next() on. In the file of that day or, where
  // there is one of a later day already, in that.
  Status Append(const std::string& day, uint64_t sequence, ByteSpan frame);
  // One that is Missing: into a file beside, SERIAL.late.trace, a part of the
  // trace for itself.
  Status AppendLate(const std::string& day, uint64_t sequence, ByteSpan frame);
  // What was appended is on the disk. After an error, also of one that syncs
  // in another way (Doubt), it is not there any more, and all is read again:
  // the kernel tells of such an error once, and takes for written what was not.
  Status Sync();
  void Doubt();
  // It was synced in another way: an error if one of what was appended since
  // the last time is gone, as syncing it in between had failed.
  Status NoteSynced();

 private:
  // One file as it is read.
  struct File {
    UniqueFd fd;
    std::string day;
    uint64_t end = 0;  // of what was read: whole frames
    // Where begins what was appended here and not synced yet.
    std::optional<uint64_t> unsynced;
    uint64_t part = 0;
    format::PartLink link;
    bool closed = false;  // has its mark at the end
  };
  Status OpenAll();
  void ReadKeptHead();
  Status Open(const std::string& day, const std::string& name, File* file);
  Status SyncFound(const File& file, const std::string& path) const;
  // Reads on to the last whole frame, and cuts off what follows; if that is
  // damage, it is kept in another file.
  Status ReadOn(File* file, bool late);
  Status CutOff(const File& file, uint64_t size, bool damaged, bool late) const;
  void Take(const format::FrameHeader& header, ByteSpan mark, bool late,
            File* file);
  Status Begin(const std::string& day, uint64_t sequence, File* file);
  Status Write(ByteSpan bytes, File* file);
  Status SyncFile(File* file);
  std::string FileName(bool late) const {
    return name_ + (late ? ".late.trace" : ".trace");
  }

  const HostFolder& folder_;
  const std::string preamble_;
  const format::Serial serial_;
  const std::string name_;  // without what follows the dot
  bool opened_ = false;
  bool any_ = false;      // there is a file
  bool resumed_ = false;  // there is a head alone
  File last_;
  File late_;
  uint64_t next_ = 0;
  Ranges missing_;
  std::string block_zero_;  // its frame, once it is known
  Status failed_;           // of a sync, until Sync tells
};

// Before the folder of a day goes: of the traces of which nothing else is there
// preamble and block 0 are kept, in .heads, so that they can go on. With the
// lock held.
Status KeepHeads(const HostFolder& folder, const std::string& date);

}  // namespace tracefs
