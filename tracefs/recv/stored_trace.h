// StoredTrace: the file of one trace at its receiver.
#ifndef TRACEFS_RECV_STORED_TRACE_H_
#define TRACEFS_RECV_STORED_TRACE_H_

#include <cstdint>
#include <string>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/format/constants.h"

namespace tracefs {

// Used by one thread at a time, but for Sync.
class StoredTrace {
 public:
  // A trace whose file, if there is one, is `name` in `directory`; both outlive
  // it.
  StoredTrace(int directory, std::string name, std::string preamble,
              const format::Serial& serial)
      : directory_(directory),
        name_(std::move(name)),
        preamble_(std::move(preamble)),
        serial_(serial) {}

  // Looks for the file and for its last whole frame. What follows that is cut
  // off; if it is more than a frame that was cut short, it is kept in another
  // file. kInvalid if the file is of another trace.
  Status Find();
  bool exists() const { return fd_.valid(); }

  // Appends; the first time, makes the file.
  Status Append(ByteSpan bytes, size_t whole, uint64_t next);
  // Cuts off what is not whole.
  void Abandon();
  // Threads: any.
  Status Sync() const;

  const std::string& name() const { return name_; }
  uint64_t next() const { return next_; }  // number after the last whole frame
  uint64_t size() const { return written_; }

 private:
  Status Quote(int error) const;
  Status Scan(uint64_t size);
  Status KeepRest(uint64_t from, uint64_t to) const;

  const int directory_;
  const std::string name_;
  const std::string preamble_;
  const format::Serial serial_;
  UniqueFd fd_;
  uint64_t end_ = 0;      // of the last whole frame
  uint64_t written_ = 0;  // of all
  uint64_t next_ = 0;
};

}  // namespace tracefs

#endif  // TRACEFS_RECV_STORED_TRACE_H_
