// What tracefs-run --embed puts into a trace: the contents of files that the
// command read, so that a trace of a build tells what it was built by.
//
// While the trace is read at its end, Note finds the files and when each was
// first opened. Then Write reads them where they lie, below the mount, and
// leaves out what may not be what the command saw: a file that was changed,
// replaced or removed since, as its change time, its number and the trace tell.
// The command is over by then: nothing waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/format/record.h"

namespace tracefs {

struct EmbedOptions {
  static constexpr uint64_t kMostFile = uint64_t{16} << 20;
  static constexpr uint64_t kMostTotal = uint64_t{1} << 30;

  // Of names without a directory or, where they have a '/', of paths below the
  // mount point; as of fnmatch(3). Empty: nothing is embedded.
  std::vector<std::string> patterns;
  uint64_t max_file = uint64_t{1} << 20;    // bytes
  uint64_t max_total = uint64_t{32} << 20;  // each content once
};

// Files that say how a project is built, by the names that build tools give
// them.
const std::vector<std::string>& UsualBuildFiles();

// Used by one thread.
class Embedder {
 public:
  // Takes whole messages, which become a block.
  using Put = std::function<void(ByteSpan messages)>;
  struct Totals {
    uint64_t files = 0;
    uint64_t contents = 0;                     // different ones
    uint64_t bytes = 0;                        // of these
    std::map<std::string, uint64_t> left_out;  // by reason
  };

  // `folder`: what is traced, opened before the mount covered it.
  Embedder(EmbedOptions options, UniqueFd folder);

  // An operation, in order of time.
  void Note(const format::Record& record);
  // Reads the files and hands on their messages. Once, after all.
  Totals Write(const Put& put);

 private:
  struct Found {
    std::string path;  // below the mount point
    uint64_t inode = 0;
    uint64_t opened_ns = 0;  // since the epoch: when it was first
    bool written = false;    // after that, as the trace tells
  };
  struct Kept;

  bool Matches(std::string_view path);
  void NoteOpen(const format::Record& record);
  void NoteChange(uint64_t inode);
  // Empty, or why it is left out.
  std::string_view Read(const Found& found, Kept* kept);
  std::string_view ReadOpen(const Found& found, int fd, Kept* kept);

  const EmbedOptions options_;
  const UniqueFd folder_;
  std::vector<Found> found_;  // in order of the first opens
  std::unordered_map<std::string, size_t> by_path_;     // in found_
  std::unordered_multimap<uint64_t, size_t> by_inode_;  // likewise
  std::unordered_map<std::string, bool> by_name_;       // whether it matches
  PathBuffer buffer_;
  uint64_t left_ = 0;  // bytes
};

// "embedded 12 files (34.1 KiB); left out 2: 1 changed since it was read, …"
std::string EmbeddedText(const Embedder::Totals& totals);

}  // namespace tracefs
