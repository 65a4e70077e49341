// Extents: where on its device lies a part of a file, as FS_IOC_FIEMAP said
// (linux/Documentation/filesystems/fiemap.rst), and the text that traces have
// of it: "0+4096@1052672 8192+4096@1060864:unwritten,last".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tracefs {

struct Event;

// In bytes. What lies between extents is a hole.
struct Extent {
  uint64_t logical = 0;   // where in the file
  uint64_t physical = 0;  // where on the device; 0 where `flags` say so
  uint64_t length = 0;
  uint32_t flags = 0;  // FIEMAP_EXTENT_…

  // Whether `physical` is a place: not of what is still to be allocated, or
  // lies among other data, or somewhere that the file system does not tell.
  bool has_place() const;
  friend bool operator==(const Extent&, const Extent&) = default;
};

// The most that are recorded of one operation; what is beyond is counted
// (ARG_EXTENTS_LEFT_OUT).
inline constexpr size_t kMostExtents = 64;

// Appends it, after a blank if there is something already.
void AppendExtent(const Extent& extent, std::string* text);

// Takes the first one off `text`. False, and nothing else, if what is there is
// none, or reaches beyond 2^64: a trace may hold anything.
bool TakeExtent(std::string_view* text, Extent* extent);

// The words of ARG_EXTENTS_OF, with commas between them.
inline constexpr std::string_view kOfWritten = "written";
inline constexpr std::string_view kOfRead = "read";
inline constexpr std::string_view kOfFile = "file";
inline constexpr std::string_view kWidened = "widened";
inline constexpr std::string_view kColdUnknown = "cold-unknown";
bool SaysOfExtents(std::string_view of, std::string_view word);

// What an operation wrote, or had to fetch: asked for where it lies once some
// tracer records it, by the thread of the operation.
class ExtentSource {
 public:
  struct Answer {
    std::string_view of;    // ARG_EXTENTS_OF
    std::string_view list;  // ARG_EXTENTS
  };
  // The numbers go into the event. The same each time; valid as long as this
  // and until the thread asks another.
  virtual Answer Ask(Event& event) = 0;

 protected:
  ~ExtentSource() = default;
};

}  // namespace tracefs
