#include "tracefs/report/file_uses.h"

#include <utility>

namespace tracefs::report {

void FileUses::Join(const Use& from, Use* to) {
  to->count = tally::AddTo(to->count, from.count);
  to->errors = tally::AddTo(to->errors, from.errors);
  to->bytes = tally::AddTo(to->bytes, from.bytes);
  to->time_ns = tally::AddTo(to->time_ns, from.time_ns);
}

FileUses::Use* FileUses::Find(NodeId file, NodeId process) {
  const uint64_t hash =
      (uint64_t{file} << 32 | process) * 0x9e3779b97f4a7c15u >> 32;
  const auto place = static_cast<uint32_t>(uses_.size());
  const auto is = [&](uint32_t i) {
    return uses_[i].file == file && uses_[i].process == process;
  };
  const uint32_t found = uses_.size() < kMost
                             ? by_pair_.FindOrAdd(hash, place, is)
                             : by_pair_.Find(hash, is);
  if (found == HashIndex::kNone) return nullptr;
  if (found != place) return &uses_[found];
  uses_.push_back({.file = file, .process = process});
  return &uses_.back();
}

void FileUses::Add(NodeId file, NodeId process, const tally::Sums& what) {
  Use* const use = Find(file, process);
  if (use == nullptr) {
    missed_ = tally::AddTo(missed_, what.count);
    return;
  }
  Join({.count = what.count,
        .errors = what.errors,
        .bytes = what.bytes,
        .time_ns = what.time_ns},
       use);
}

void FileUses::Renumber(const std::vector<NodeId>& files,
                        const std::vector<NodeId>& processes) {
  const std::vector<Use> before = std::move(uses_);
  uses_.clear();
  by_pair_.Clear();
  for (const Use& use : before) {
    const NodeId file = files.empty() ? use.file : files[use.file];
    const NodeId process =
        processes.empty() ? use.process : processes[use.process];
    Join(use, Find(file, process));
  }
}

}  // namespace tracefs::report
