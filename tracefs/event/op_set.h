// Sets of operations, written down where they are used; here are those that
// several rooms use.
#pragma once

#include <cstddef>

#include "tracefs/event/op.h"

namespace tracefs {

// Whether it is one of `ops`. `known`: how many operations there were when the
// list was written. With another one it does not compile before somebody has
// decided whether that belongs to the list.
template <size_t known, Op... ops>
constexpr bool IsAmong(Op op) {
  static_assert(known == kOpCount, "a new operation: is it one of these?");
  return ((op == ops) || ...);
}

// Changes of a file: its contents, size, attributes. An open may be one.
constexpr bool ChangesFiles(Op op) {
  return IsAmong<38, Op::setattr_, Op::open_, Op::write_, Op::setxattr_,
                 Op::removexattr_, Op::fallocate_, Op::copy_file_range_>(op);
}

// Changes of the names in a directory; a file without a name may get one.
constexpr bool ChangesNames(Op op) {
  return IsAmong<38, Op::mknod_, Op::mkdir_, Op::unlink_, Op::rmdir_,
                 Op::symlink_, Op::rename_, Op::link_, Op::create_,
                 Op::tmpfile_>(op);
}

constexpr bool ChangesXattrs(Op op) {
  return IsAmong<38, Op::setxattr_, Op::removexattr_>(op);
}

}  // namespace tracefs
