// What an operation is about, told without its handler: of one that is refused,
// or ended before it began. Nothing is asked below, for that may hang.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>

#include "tracefs/event/op_set.h"
#include "tracefs/fs/op_scope.h"

namespace tracefs {

// Through the open file, if the request names one.
inline void DescribeHandle(OpScope& op, const fuse_file_info* fi) {
  if (fi == nullptr || fi->fh == 0) return;
  op.About(HandleOf(fi).inode);
  op.Through(HandleOf(fi));
}
template <typename T>
void DescribeHandle(OpScope& /*op*/, const T& /*argument*/) {}

// By the arguments of its handler (operations.h): inodes, and names in them.
template <Op kOp, typename... Arguments>
void Describe(OpScope& op, Arguments... arguments) {
  if (!op.traced()) return;
  const std::tuple<Arguments...> all(arguments...);
  constexpr auto kIsName = []<size_t i>() {
    if constexpr (i < sizeof...(Arguments)) {
      using T = std::tuple_element_t<i, std::tuple<Arguments...>>;
      return std::is_same_v<T, const char*>;
    }
    return false;
  };
  const auto inode = [&]<size_t i>() -> Inode& {
    return op.fs().InodeOf(std::get<i>(all));
  };
  constexpr bool kOfXattr = ChangesXattrs(kOp) || kOp == Op::getxattr_;
  if constexpr (kOp == Op::symlink_) {
    op.In(inode.template operator()<1>(), std::get<2>(all));
    op.Target(std::get<0>(all));
  } else if constexpr (kOp == Op::tmpfile_) {
    op.In(inode.template operator()<0>(), "");
  } else if constexpr (kIsName.template operator()<1>() && !kOfXattr) {
    op.In(inode.template operator()<0>(), std::get<1>(all));
  } else {
    op.About(inode.template operator()<0>());
    if constexpr (kOfXattr) op.XattrName(std::get<1>(all));
    // It has none before it is open.
    if constexpr (kOp != Op::open_ && kOp != Op::opendir_ &&
                  kOp != Op::copy_file_range_) {
      (DescribeHandle(op, arguments), ...);
    }
  }
  if constexpr (kOp == Op::rename_) {
    op.Into(inode.template operator()<2>(), std::get<3>(all));
  } else if constexpr (kOp == Op::link_) {
    op.Into(inode.template operator()<1>(), std::get<2>(all));
  } else if constexpr (kOp == Op::copy_file_range_) {
    DescribeHandle(op, std::get<2>(all));
    op.Onto(HandleOf(std::get<5>(all)));
  } else if constexpr (kOp == Op::read_) {
    op.Set(Field::kLength, std::get<1>(all));
    op.Set(Field::kOffset, static_cast<uint64_t>(std::get<2>(all)));
  } else if constexpr (kOp == Op::write_) {
    op.Set(Field::kLength, std::get<1>(all).size);
    op.Set(Field::kOffset, static_cast<uint64_t>(std::get<2>(all)));
  }
}

}  // namespace tracefs
