// TracePlace: where the paths of a trace lie on the machine that it is of, and
// what a path that somebody names means in the trace.
//
// Paths of a trace begin at the root of its mount: "/a/b". People name files as
// reports print them, by their path on the machine ("/mnt/a/b", or "/src/a/b"
// in the directory that was mounted), or from where they stand ("b", "../b").
// Only the operations show which of these is meant: a look-up tries the
// readings in turn.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/format/trace_header.h"

namespace tracefs::reader {

class TracePlace {
 public:
  explicit TracePlace(const format::TraceHeader& header);
  // Empty where it is not known.
  TracePlace(std::string_view mount_point, std::string_view source)
      : mount_point_(mount_point), source_(source) {}

  // The paths of the trace that `given` may mean, the likeliest first, none
  // twice. `folder`: where a relative one begins. None: it lies outside.
  std::vector<std::string> Readings(std::string_view given,
                                    std::string_view folder) const;

  // Whether an absolute path lies in the mount, or the directory below it, by
  // its name on the machine.
  bool Holds(std::string_view absolute) const;

  // "/mnt, from /src"; empty if neither is known.
  std::string Text() const;

 private:
  std::string mount_point_;
  std::string source_;
};

// Why there is nothing to say of `given`, in words that follow its name and
// ": ": it lies outside of all of these, or nothing was recorded on it. `of`:
// of which operations, as " that match"; may be empty.
std::string WhyNotSeen(std::span<const TracePlace> places,
                       std::string_view given, std::string_view folder,
                       std::string_view of = {});

// The working directory; "/" if it has no name any more.
std::string WorkingFolder();

}  // namespace tracefs::reader
