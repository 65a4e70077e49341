#include "tracefs/format/frame_places.h"

#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "tracefs/base/file_io.h"
#include "tracefs/format/marks.h"

namespace tracefs::format {
namespace {

Result<uint64_t> ReadPreamble(int fd, Preamble* preamble) {
  std::vector<std::byte> bytes(kMinPreambleBytes);
  if (!ReadAllAt(fd, bytes, 0)) {
    return Status::Corrupt("it is too short for a trace");
  }
  const Result<size_t> length = PreambleLength(bytes);
  if (!length.ok()) return length.status();
  bytes.resize(*length);
  if (!ReadAllAt(fd, bytes, 0)) {
    return Status::Corrupt("it is too short for a trace");
  }
  Result<Preamble> decoded = DecodePreamble(bytes);
  if (!decoded.ok()) return decoded.status();
  *preamble = *std::move(decoded);
  return static_cast<uint64_t>(*length);
}

}  // namespace

IndexedPart FramePlaces::PartOf(size_t count, uint64_t events) const {
  IndexedPart part = {.frames = count, .events = events};
  PartLink link;
  for (size_t i = 0; i < count; ++i) link.Add(frames[i].header.crc);
  part.link = link.value();
  part.bytes = count == 0 ? 0 : frames[count - 1].end();
  return part;
}

Result<FramePlaces> FindFrames(int fd) {
  struct stat st;
  if (::fstat(fd, &st) != 0) return Status::System(errno, "fstat");
  if (!S_ISREG(st.st_mode)) return Status::Corrupt("it is no regular file");
  const auto size = static_cast<uint64_t>(st.st_size);
  FramePlaces places;
  const Result<uint64_t> begin = ReadPreamble(fd, &places.preamble);
  if (!begin.ok()) return begin.status();
  places.end = *begin;
  std::array<std::byte, kFrameHeaderBytes> bytes;
  while (places.end + bytes.size() <= size) {
    FramePlace place = {.offset = places.end, .header = {}};
    if (!ReadAllAt(fd, bytes, place.offset)) break;
    if (!DecodeFrameHeader(bytes, &place.header) ||
        place.header.serial != places.preamble.serial ||
        place.header.kind != static_cast<uint16_t>(FrameKind::kMessages) ||
        place.header.sequence != places.frames.size()) {
      return Status::Corrupt("at byte " + std::to_string(place.offset) +
                             " is something else than the next block");
    }
    if (place.end() > size) break;
    places.end = place.end();
    places.frames.push_back(place);
  }
  return places;
}

}  // namespace tracefs::format
