// What others wrote, as bytes of a fuzzer: 'F' and an iolog of fio, or what
// strace wrote. What comes out of any text is a whole trace, the same each
// time, that has as many operations as were counted, and a plan can be made of
// it.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "tests/fuzz/structured.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/format/byte_source.h"
#include "tracefs/format/trace_merger.h"
#include "tracefs/format/trace_reader.h"
#include "tracefs/import/import.h"
#include "tracefs/replay/plan_builder.h"

namespace {

using namespace tracefs;  // NOLINT: a fuzz target

void Require(bool condition) {
  if (!condition) std::abort();
}

struct Made {
  Status status;
  std::string trace;
  import::ImportCounts counts;
};

UniqueFd InMemory(std::string_view text) {
  UniqueFd fd(::memfd_create("fuzz", MFD_CLOEXEC));
  Require(WriteAll(fd.get(), AsBytes(text), "memory").ok());
  return fd;
}

// What strace -ff writes: a file for each thread, here between bytes 1.
std::vector<import::StraceFile> StraceFiles(std::string_view input) {
  std::vector<import::StraceFile> files;
  while (files.size() < 16) {
    const size_t end = input.find('\1');
    const std::string text(input.substr(0, end));
    files.push_back({.open = [text] { return Result(InMemory(text)); },
                     .tid = static_cast<uint32_t>(files.size())});
    if (end == input.npos) break;
    input.remove_prefix(end + 1);
  }
  return files;
}

Made Import(std::string_view input) {
  Made made;
  const auto write = [&](ByteSpan bytes) {
    made.trace += AsText(bytes);
    return Status();
  };
  const import::ImportOptions options = {
      .below = "/w", .folder = "/w", .name = "fuzz"};
  if (input.starts_with('F')) {
    made.status = import::ImportFio(InMemory(input.substr(1)).get(), options,
                                    write, &made.counts);
  } else {
    made.status =
        import::ImportStrace(StraceFiles(input), options, write, &made.counts);
  }
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const Made made = Import(input);
  const Made again = Import(input);
  Require(made.trace == again.trace && made.status.ok() == again.status.ok());
  if (!made.status.ok()) return 0;

  format::TraceMerger merger;
  format::TraceReaderOptions how;
  how.report = [](const format::Report&) { Require(false); };
  merger.Add(std::make_unique<format::TraceReader>(
      std::make_unique<format::MemorySource>(AsBytes(made.trace)),
      std::move(how)));
  replay::PlanBuilder plan({}, nullptr);
  format::Record record;
  uint64_t operations = 0;
  while (merger.Next(&record) == format::ReadStep::kItem) {
    ++operations;
    Require(plan.Take(record, /*selected=*/true).ok());
  }
  Require(merger.status(0).ok() && plan.Finish().ok());
  Require(operations == made.counts.operations);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max, unsigned seed) {
  return tracefs::fuzz::MutateText(data, size, max, seed);
}
