// What a receiver of a fleet does to its disk, without a broker:
//
//   fleet_disk store ROOT DAY:BLOCK...   stores these blocks of a trace, one
//                                        after the other, and looks for the
//                                        path /power-cut-mark/BLOCK for each
//                                        that need not come again
//   fleet_disk merge ROOT [one-by-one]   merges tables of host web
//
// For tests that record it (tests/mount/crash/power_cut_test.py).
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/net_world.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/recv/fleet/merge.h"
#include "tracefs/recv/fleet/store.h"

namespace tracefs {
namespace {

FleetStoreOptions AtOnce() {
  FleetStoreOptions options;
  options.gap_patience = {};
  return options;
}

Status Store(int root, char** blocks) {
  const test::FakeTrace trace(/*serial=*/1, /*payload_bytes=*/700);
  const auto store = MakeTraceStore(root, AtOnce());
  for (; *blocks != nullptr; ++blocks) {
    const std::string block = *blocks;
    const size_t colon = block.find(':');
    const uint64_t sequence =
        std::strtoull(block.c_str() + colon + 1, nullptr, 10);
    store->Add({.host = "web",
                .day = block.substr(0, colon),
                .preamble = trace.preamble(),
                .chain = {},
                .frame = trace.Frame(sequence),
                .serial = trace.serial(),
                .sequence = sequence,
                .number = sequence,
                .since = {}});
    std::vector<uint64_t> done;
    std::vector<FleetStore::Refused> refused;
    if (Status s = store->Commit(/*hurry=*/true, &done, &refused); !s.ok()) {
      return s;
    }
    for (const uint64_t number : done) {
      const std::string mark = "/power-cut-mark/" + std::to_string(number);
      struct stat st;
      static_cast<void>(::stat(mark.c_str(), &st));
    }
  }
  return Status::Ok();
}

Status Merge(int root, bool exchanges) {
  Merger merger(root, {.format = "jsonl", .exchanges = exchanges});
  MergeCounts counts;
  // Of an hour that is over.
  return merger.MergeHost("web", ::time(nullptr) + 2 * 3600, &counts);
}

int Main(int argc, char** argv) {
  if (argc < 3) return 2;
  const UniqueFd root(::open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Status status = std::string_view(argv[1]) == "merge"
                            ? Merge(root.get(), argc == 3)
                            : Store(root.get(), argv + 3);
  if (status.ok()) return 0;
  std::fprintf(stderr, "fleet_disk: %s\n", status.message().c_str());
  return 1;
}

}  // namespace
}  // namespace tracefs

int main(int argc, char** argv) { return tracefs::Main(argc, argv); }
