// What becomes of a change whose caller is held (hold_lot.h).
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tracefs/event/op_set.h"
#include "tracefs/fs/describe.h"
#include "tracefs/fs/hand_over.h"
#include "tracefs/fs/hold_lot.h"
#include "tracefs/fs/op_scope.h"

namespace tracefs {

// Changes of files may wait for the end of a hold, those of names may not
// (hold_lot.h).
constexpr bool CanBeHeld(Op op) { return ChangesFiles(op) || ChangesNames(op); }

// Whether it changes anything, as far as a handle tells: opens do so that may
// write. What the kernel writes by itself, nobody waits for.
template <Op kOp, typename T>
bool IsHarmless(const T& argument) {
  if constexpr (std::is_same_v<T, fuse_file_info*>) {
    if (argument == nullptr) return false;
    if constexpr (kOp == Op::open_) {
      return (argument->flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY;
    }
    if constexpr (kOp == Op::write_) return argument->writepage != 0;
  }
  return false;
}

// The path of the file that is changed, by the arguments of a handler.
template <Op kOp, typename... Arguments>
std::string ChangedPath(FileSystem& fs, const Arguments&... arguments) {
  constexpr size_t kAt = kOp == Op::copy_file_range_ ? 3 : 0;
  const auto node =
      static_cast<fuse_ino_t>(std::get<kAt>(std::tie(arguments...)));
  PathBuffer buffer;
  return std::string(PathOf(fs, node, "", buffer));
}

// Waits for the end of the hold that `place` is of, and of all others that its
// caller is held by when that is over. 0, EPERM or EINTR.
template <Op kOp>
int WaitForAll(fuse_req_t req, std::shared_ptr<HoldLot::Place> place,
               const std::string& path) {
  FileSystem& fs = FileSystem::Of(req);
  for (;;) {
    if (const int error = place->Wait(); error != 0) return error;
    place.reset();
    HoldLot::Waiter who;
    const std::shared_ptr<HoldLot::Hold> hold = fs.HoldOf(req, kOp, &who);
    if (hold == nullptr) return 0;
    if (HoldLot::Refuses(*hold)) {
      fs.holds().NoteRefused(hold);
      return EPERM;
    }
    who.path = path;
    place = fs.holds().Enter(hold, std::move(who));
    if (place == nullptr) return HoldLot::Fails(*hold) ? EPERM : 0;
  }
}

// Makes a change wait, or refuses it, if its caller is held. False: it is not.
template <Op kOp, typename Handler, typename... Arguments>
bool IsHeld(fuse_req_t req, Handler handler, Arguments... arguments) {
  FileSystem& fs = FileSystem::Of(req);
  if ((IsHarmless<kOp>(arguments) || ...)) return false;
  HoldLot::Waiter who;
  const std::shared_ptr<HoldLot::Hold> hold = fs.HoldOf(req, kOp, &who);
  if (hold == nullptr) return false;
  OpScope op(req, kOp);
  Describe<kOp>(op, arguments...);
  if (ChangesNames(kOp) || HoldLot::Refuses(*hold)) {
    fs.holds().NoteRefused(hold);
    op.ReplyError(EPERM);
    return true;
  }
  if constexpr (ChangesFiles(kOp))
    who.path = ChangedPath<kOp>(fs, arguments...);
  std::string path = who.path;
  std::shared_ptr<HoldLot::Place> place =
      fs.holds().Enter(hold, std::move(who));
  if (place != nullptr &&
      op.HandOver(
          [req, handler, place, path = std::move(path),
           kept = std::make_tuple(Keep(arguments)...)]() mutable {
            const int error = WaitForAll<kOp>(req, std::move(place), path);
            std::apply(
                [&](auto&... a) {
                  if (error == 0) return handler(req, a.get()...);
                  OpScope refused(req, kOp);
                  Describe<kOp>(refused, a.get()...);
                  refused.ReplyError(error);
                },
                kept);
          },
          /*told=*/false, OpScope::IfFull::kHere,
          (0 + ... + BytesOf(arguments)))) {
    return true;
  }
  if (!HoldLot::Fails(*hold)) return false;
  if (place != nullptr) fs.holds().NoteRefused(hold);
  op.ReplyError(EPERM);
  return true;
}

}  // namespace tracefs
