// Backlog: the frames of a trace that its receiver does not have for certain
// yet, oldest first, in memory or on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

struct FrameDelete {
  bool owns = true;
  void operator()(std::byte* at) const {
    if (owns) delete[] at;
  }
};

// Threads: the owner serialises all calls. A frame that Locate found stays
// where it is until it is dropped.
class Backlog {
 public:
  virtual ~Backlog() = default;

  struct Frame {
    uint64_t bytes = 0;
    BlockInfo info;
    // One of the two. Memory may be somebody else's.
    std::unique_ptr<std::byte[], FrameDelete> memory = {};
    std::shared_ptr<struct SpillSegment> segment = {};
    uint64_t offset = 0;  // in the segment
  };

  // Appends a whole frame or, on failure, nothing.
  virtual Status Append(ByteSpan header, ByteSpan payload,
                        const BlockInfo& info) = 0;
  // What it takes up, in memory or on disk.
  virtual uint64_t bytes() const = 0;
  // True if what is held outlives this process.
  virtual bool persistent() const = 0;

  bool empty() const { return frames_.empty(); }
  size_t size() const { return frames_.size(); }
  const Frame& frame(size_t index) const { return frames_[index]; }

  // Forgets the frames with numbers below `next`; returns how many they were.
  size_t DropBefore(uint64_t next);
  // Forgets one.
  void Drop(size_t index);

 protected:
  // Before a frame is forgotten.
  virtual void Forget(const Frame& frame) = 0;
  // After some were.
  virtual void Shrink() {}

  std::deque<Frame> frames_;
};

std::unique_ptr<Backlog> MakeMemoryBacklog();

// --- On disk: files "SERIAL.NUMBER.spill" in a directory of the operator's.
// Each is a trace by itself (FORMAT.md): preamble and frames, so that it can be
// read by hand. Every frame is written there at once, and a file goes when the
// receiver has all its frames, so what is here survives the process. One that
// is damaged stays then, as "SERIAL.NUMBER.spill.damaged".

struct SpillSegment {
  UniqueFd fd;  // locked (flock) while a process uses it
  std::string name;
  uint64_t size = 0;
  size_t frames = 0;     // held
  bool damaged = false;  // it has more, which cannot be sent
};

class SpillDirectory {
 public:
  // The directory must be there. kInvalid if others may write to it.
  // `given`: it, where somebody else has opened it, to read.
  static Result<std::shared_ptr<const SpillDirectory>> Open(
      const std::string& path, UniqueFd given = {});

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }

  // A trace that a process which is gone left here.
  struct Leftover {
    std::string preamble;
    format::Serial serial{};
    std::unique_ptr<Backlog> backlog;
  };
  // All that nobody else is sending. What is damaged is left out, with a
  // notice, and its file stays.
  std::vector<Leftover> TakeLeftovers() const;

 private:
  std::string path_;
  UniqueFd fd_;
};

// For a new trace. `limit` decides the size of files. Used after the process
// has gone into its sandbox: opens nothing by path.
std::unique_ptr<Backlog> MakeSpillBacklog(
    std::shared_ptr<const SpillDirectory> directory,
    const std::string& preamble, const format::Serial& serial, uint64_t limit);

}  // namespace tracefs
