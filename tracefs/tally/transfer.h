// What one operation read and wrote, and which of its files it concerned. This
// is the only definition of `bytes`, `read` and `written`; docs/questions.md
// says the same for users.
//
//   operation         read of            written to
//   read              its file           -
//   write             -                  its file
//   copy_file_range   its file (source)  its second file (destination)
//
// Mapped reads and writes, appends, splice and sendfile are reads and writes of
// that kind. The number of bytes is the result: what was transferred, not what
// was asked for. An operation that failed, has not run yet (STR_PRE_OP), or was
// recorded without its result transfers nothing. Truncating, extending and
// fallocate(2) change the size of a file without transferring bytes; names,
// attributes and lists of names are no content and do not count either.
//
// Nothing here owns or allocates; any thread may call anything.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "tracefs/event/event.h"

namespace tracefs::tally {

enum class Way : uint8_t { kRead, kWrite };

// A file of an operation, by the fields that tell of it.
enum class End : uint8_t {
  kFile,    // path, inode, fh, offset
  kSecond,  // of a copy, the destination: path2, ino_out, fh_out, offset_out
};
constexpr Field InodeField(End end) {
  return end == End::kFile ? Field::kInode : Field::kInodeOut;
}
constexpr Field HandleField(End end) {
  return end == End::kFile ? Field::kFh : Field::kFhOut;
}
constexpr Field OffsetField(End end) {
  return end == End::kFile ? Field::kOffset : Field::kOffsetOut;
}

constexpr bool Reads(Op op) {
  return op == Op::read_ || op == Op::copy_file_range_;
}
constexpr bool Writes(Op op) {
  return op == Op::write_ || op == Op::copy_file_range_;
}
// Whether it transfers content at all.
constexpr bool Transfers(Op op) { return Reads(op) || Writes(op); }
static_assert(Reads(Op::copy_file_range_) && Writes(Op::copy_file_range_) &&
                  HasTwoFiles(Op::copy_file_range_),
              "what reads and writes has a file for each");

inline bool Failed(const Event& event) {
  return event.Has(Field::kErrno) && event.Get(Field::kErrno) != 0;
}

// What an operation did with one of its files.
struct Transfer {
  Way way{};
  End end{};
  uint64_t bytes = 0;  // may be 0: at the end of a file

  bool reads() const { return way == Way::kRead; }
  bool writes() const { return way == Way::kWrite; }
};

// The transfers of an operation: none, one, or the two of a copy, whose read
// comes first.
class TransferList {
 public:
  const Transfer* begin() const { return all_.data(); }
  const Transfer* end() const { return all_.data() + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  void Add(Transfer transfer) { all_[size_++] = transfer; }

 private:
  std::array<Transfer, 2> all_;
  size_t size_ = 0;
};

// None for what failed or has not run yet. `bytes` is 0 where the result is
// not known.
TransferList TransfersOf(const Event& event);

// What one operation, or one of its files, transferred.
struct Bytes {
  uint64_t read = 0;
  uint64_t written = 0;

  // `bytes`: each byte once. What a copy reads it writes; counted by file, it
  // is read from one and written to the other.
  uint64_t moved() const { return std::max(read, written); }
};

// Of an operation, all of its files together.
Bytes BytesOf(const Event& event);
// The same by numbers, where there is no event: `result` of an operation that
// succeeded.
Bytes BytesOf(Op op, int64_t result);
// Of one of its files alone.
Bytes BytesOf(Op op, int64_t result, End end);

}  // namespace tracefs::tally
