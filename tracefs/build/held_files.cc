#include "tracefs/build/held_files.h"

#include <fcntl.h>

#include "tracefs/build/access.h"

namespace tracefs::build {

void HeldFiles::NoteWrite(ProcessId process, PathTable::Id path) {
  const auto files = held_.find(process);
  if (files == held_.end()) return;
  const auto file = files->second.find(path);
  if (file != files->second.end()) file->second.written = true;
}

void HeldFiles::Note(ProcessId process, const FileStep& step,
                     const StepPaths& paths) {
  if (step.error != 0) return;
  if (step.op == Op::open_ || step.op == Op::create_) {
    if (OpenMode(step.flags) != O_RDONLY && paths.path != PathTable::kNone) {
      held_[process][paths.path] = {.fh = step.fh, .written = false};
    }
  } else if (step.op == Op::release_) {
    const auto files = held_.find(process);
    if (files == held_.end()) return;
    const auto file = files->second.find(paths.path);
    if (file != files->second.end() && file->second.fh == step.fh) {
      files->second.erase(file);
    }
  } else {
    const AccessPair access = AccessOf(step);
    if ((access.path & kWrite) != 0) NoteWrite(process, paths.path);
    if ((access.path2 & kWrite) != 0) NoteWrite(process, paths.path2);
  }
}

}  // namespace tracefs::build
