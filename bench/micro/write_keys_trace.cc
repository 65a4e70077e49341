// Writes a trace of many files to standard output, for scripts that time what
// sums up traces:
//   write_keys_trace OPERATIONS FILES
// Operations as those of sample_trace.h, but each is about another file, chosen
// evenly: as many different paths and inodes as can be, as far apart as can be.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "bench/micro/sample_trace.h"
#include "tracefs/query/distinct_count.h"

namespace tracefs::bench {
namespace {

constexpr uint64_t kFilesInDirectory = 100;

class KeysTrace {
 public:
  explicit KeysTrace(uint64_t files) : files_(files) {}

  bool Write(uint64_t operations) {
    for (uint64_t n = 0; n < operations; ++n) {
      if (n % kOperationsInBlock == 0) {
        if (n != 0) trace_.EndBlock();
        if (!Flush()) return false;
        Begin();
      }
      Add(n);
    }
    trace_.EndBlock();
    trace_.Finish();
    return Flush();
  }

 private:
  bool Flush() {
    const std::string bytes = trace_.Take();
    return std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
  }

  void Begin() {
    process_ = trace_.DefineProcess(SampleCaller());
    source_ = trace_.DefinePath(
        trace_.DefinePath(trace_.DefinePath(0, ""), "build"), "src");
    directories_.clear();
    paths_.clear();
  }

  uint32_t Directory(uint64_t file) {
    uint32_t& id = directories_[file / kFilesInDirectory];
    if (id == 0) {
      id = trace_.DefinePath(
          source_, "part_" + std::to_string(file / kFilesInDirectory));
    }
    return id;
  }

  void Add(uint64_t n) {
    const uint64_t file = query::MixedHash(n) % files_;
    const std::string name = "module_" + std::to_string(file) + ".cc";
    Event event = SampleEvent(n);
    event.Set(Field::kInode, 5'000'000 + file);
    test::References references = {.process = process_};
    if (event.op == Op::lookup_) {
      event.name = name;
      references.parent = Directory(file);
    } else {
      uint32_t& id = paths_[file];
      if (id == 0) id = trace_.DefinePath(Directory(file), name);
      references.path = id;
    }
    trace_.Add(event, references);
  }

  const uint64_t files_;
  test::TraceBuilder trace_;
  uint32_t process_ = 0;
  uint32_t source_ = 0;
  // Of this block.
  std::map<uint64_t, uint32_t> directories_;
  std::map<uint64_t, uint32_t> paths_;
};

}  // namespace
}  // namespace tracefs::bench

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const uint64_t files = std::strtoull(argv[2], nullptr, 10);
  if (files == 0) return 2;
  const bool ok = tracefs::bench::KeysTrace(files).Write(
      std::strtoull(argv[1], nullptr, 10));
  return ok && std::fflush(stdout) == 0 ? 0 : 1;
}
