#include "tracefs/tally/transfer.h"

namespace tracefs::tally {
namespace {

// A negative result comes of damage or malice: what fails has an errno.
uint64_t Transferred(int64_t result) {
  return result > 0 ? static_cast<uint64_t>(result) : 0;
}

int64_t ResultOf(const Event& event) {
  return event.Has(Field::kResult)
             ? static_cast<int64_t>(event.Get(Field::kResult))
             : 0;
}

}  // namespace

TransferList TransfersOf(const Event& event) {
  TransferList list;
  if (event.before || Failed(event)) return list;
  const uint64_t bytes = Transferred(ResultOf(event));
  if (Reads(event.op)) {
    list.Add({.way = Way::kRead, .end = End::kFile, .bytes = bytes});
  }
  if (Writes(event.op)) {
    const End end = HasTwoFiles(event.op) ? End::kSecond : End::kFile;
    list.Add({.way = Way::kWrite, .end = end, .bytes = bytes});
  }
  return list;
}

Bytes BytesOf(const Event& event) {
  if (event.before || Failed(event)) return {};
  return BytesOf(event.op, ResultOf(event));
}

Bytes BytesOf(Op op, int64_t result) {
  const uint64_t bytes = Transferred(result);
  return {.read = Reads(op) ? bytes : 0, .written = Writes(op) ? bytes : 0};
}

Bytes BytesOf(Op op, int64_t result, End end) {
  Bytes bytes = BytesOf(op, result);
  if (HasTwoFiles(op)) {
    (end == End::kFile ? bytes.written : bytes.read) = 0;
  } else if (end == End::kSecond) {
    return {};
  }
  return bytes;
}

}  // namespace tracefs::tally
