// Fuzz target: Parquet files that a receiver finds and merges. The input is one
// such file; it is merged alone and with itself.
#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/fuzz/structured.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/export/parquet_merge.h"

namespace tracefs {
namespace {

// Length and magic number behind the description of a file.
constexpr size_t kTailBytes = 8;

void Require(bool holds) {
  if (!holds) std::abort();
}

UniqueFd InMemory(std::string_view bytes) {
  UniqueFd fd(::memfd_create("parquet", MFD_CLOEXEC));
  Require(fd && WriteAllAt(fd.get(), AsBytes(bytes), 0, "memory").ok());
  return fd;
}

void MergeOne(std::string_view input) {
  const UniqueFd file = InMemory(input);
  const std::array<int, 2> files = {file.get(), file.get()};
  for (size_t count = 1; count <= files.size(); ++count) {
    StringOutput out;
    if (!MergeParquet(std::span(files).first(count), "merged", out).ok()) {
      return;
    }
    // What comes of it is one of ours.
    Require(out.Flush().ok());
    const UniqueFd merged = InMemory(out.text());
    const std::array<int, 1> again = {merged.get()};
    StringOutput same;
    Require(MergeParquet(again, "merged", same).ok() && same.Flush().ok());
    Require(same.text() == out.text());
  }
}

}  // namespace
}  // namespace tracefs

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tracefs::MergeOne({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max, unsigned seed) {
  // Bytes of the description or of pages, and nothing moves; now and then
  // anything.
  tracefs::fuzz::Dice dice(seed + 1);
  if (size <= tracefs::kTailBytes || tracefs::fuzz::Below(dice, 4) == 0) {
    return LLVMFuzzerMutate(data, size, max);
  }
  const size_t body = size - tracefs::kTailBytes;
  const size_t changes = 1 + tracefs::fuzz::Below(dice, 4);
  for (size_t i = 0; i < changes; ++i) {
    data[tracefs::fuzz::Below(dice, body)] =
        static_cast<uint8_t>(tracefs::fuzz::Below(dice, 256));
  }
  return size;
}
