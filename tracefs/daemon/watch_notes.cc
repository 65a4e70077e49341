#include "tracefs/daemon/watch_notes.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "tracefs/base/passed_files.h"

namespace tracefs {
namespace {

// Between processes of one program.
struct NoteHead {
  bool goodbye = false;
  bool stays_shut = false;
  bool guards = false;
  uint64_t id = 0;
  uint64_t device = 0;
  size_t name_bytes = 0;  // what follows; the path is the rest
};

}  // namespace

Result<WatchNotes> WatchNotes::Make() {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) !=
      0) {
    return Status::System(errno, "the watchdog's notes");
  }
  WatchNotes notes;
  notes.reading_.Reset(ends[0]);
  notes.writing_.Reset(ends[1]);
  return notes;
}

void WatchNotes::Leave(const WatchNote& note) const {
  const NoteHead head = {.goodbye = note.goodbye,
                         .stays_shut = note.stays_shut,
                         .guards = note.guards,
                         .id = note.place.id,
                         .device = note.place.device,
                         .name_bytes = note.place.name.size()};
  std::string bytes(sizeof head, '\0');
  std::memcpy(bytes.data(), &head, sizeof head);
  bytes += note.place.name + note.path;
  const int parent = note.place.parent.get();
  static_cast<void>(SendWithFiles(writing_.get(), AsBytes(bytes),
                                  std::span(&parent, note.place.parent ? 1 : 0),
                                  MSG_DONTWAIT));
}

WatchNote WatchNotes::Take() {
  WatchNote note;
  bool any = false;
  std::vector<char> bytes(sizeof(NoteHead) + size_t{2} * PATH_MAX);
  for (;;) {
    std::vector<UniqueFd> files;
    const ssize_t n = ReceiveWithFiles(
        reading_.get(), std::as_writable_bytes(std::span(bytes)), &files,
        /*cut=*/nullptr, MSG_DONTWAIT);
    NoteHead head;
    if (n < static_cast<ssize_t>(sizeof head)) break;
    std::memcpy(&head, bytes.data(), sizeof head);
    const std::string names(bytes.data() + sizeof head,
                            static_cast<size_t>(n) - sizeof head);
    note = {.goodbye = head.goodbye,
            .stays_shut = head.stays_shut,
            .guards = head.guards};
    note.place.name = names.substr(0, head.name_bytes);
    note.place.id = head.id;
    note.place.device = head.device;
    if (!files.empty()) note.place.parent = std::move(files.front());
    note.path = names.substr(note.place.name.size());
    any = true;
  }
  if (any) Leave(note);
  return note;
}

}  // namespace tracefs
