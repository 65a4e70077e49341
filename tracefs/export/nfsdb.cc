#include "tracefs/export/nfsdb.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracefs/build/compilation.h"
#include "tracefs/build/process_tracker.h"
#include "tracefs/build/record_step.h"
#include "tracefs/export/nfsdb_lines.h"
#include "tracefs/export/packed.h"
#include "tracefs/text/spool.h"

namespace tracefs {
namespace {

using build::FileStep;
using build::Process;
using build::ProcessId;

// Numbers for unknown descriptors, beyond any that a process can have: where a
// pipe really is has its own number.
constexpr uint32_t kFirstFile = uint32_t{1} << 28;
constexpr uint32_t kFirstPipe = uint32_t{1} << 30;

// Pipes are known only once a program runs that holds them, and are to be told
// before their holders are forked: so everything is spooled first.
class NfsdbExporter final : public Exporter, private build::TrackerListener {
 public:
  NfsdbExporter(OutputBuffer& out, const NfsdbRawOptions& options)
      : out_(out),
        options_(options),
        tracker_(*this),
        entries_(options.memory_bytes) {}

  void Write(const format::Record& record) override {
    if (const FileStep* const step = steps_.Of(record)) tracker_.Take(*step);
  }
  void WriteProcess(const ProcessRecord& record) override {
    tracker_.Take(record);
  }
  void Summarize(const ExportSummary& summary) override {
    for (const format::TraceContext* trace : summary.traces) {
      const auto& header = trace->description.header;
      if (initial_.empty()) initial_ = header.Get("mount.point");
      if (options_.mounts && first_upid_ != 0) AddMount(header);
    }
  }
  void Finish() override {
    tracker_.Finish();
    PlacePipes();
    std::ranges::replace(initial_, '\n', '?');
    if (!NfsdbLines::Fits(initial_)) initial_ = "?";
    out_.Append("INITCWD=" + (initial_.empty() ? "/" : initial_) + "\n");
    Put(first_upid_, 0, first_ns_, mounts_.text());
    status_ =
        entries_.ForEach([this](std::string_view entry) { WriteEntry(entry); });
  }
  uint64_t left_out() const override { return left_out_; }
  Status status() const override {
    return status_.ok() ? entries_.status() : status_;
  }

 private:
  enum Kind : uint8_t { kLines, kFork, kExit };
  // Of a pipe, by all its holders; bits.
  enum Seen : uint8_t { kSeenReading = 1, kSeenWriting = 2, kSeenSaying = 4 };

  // A pipe, in the process that made it.
  struct Pipe {
    ProcessId first_holder = build::kNobody;
    ProcessId last_holder = build::kNobody;  // that has the same parent
    bool parent_reads = false;
    bool parent_writes = false;
    uint32_t descriptor = 0;  // of its end for reading; the other is one more
  };
  struct Held {
    uint64_t pipe;
    uint32_t fd;
    PipeEnd::Access access;
  };
  struct Known {
    ProcessId parent = build::kNobody;
    uint32_t cpu = 0;                 // where it was last seen; 0 before
    bool told = false;                // a line has its number
    bool done = false;                // its end has been written
    std::vector<Held> held;           // as its first program began
    std::vector<uint64_t> pipes;      // it makes, by inode, in order of forks
    size_t made = 0;                  // of these, so far
    std::vector<uint64_t> last;       // pipes that no later child holds
    std::vector<uint32_t> open;       // descriptors of pipes it has just now
    std::vector<uint32_t> inherited;  // of its parent, not closed yet
  };

  struct Named {
    ProcessId id = build::kNobody;
    uint32_t upid = 0;
  };

  // `other`: of a fork whom it made, of an end the parent.
  void AddEntry(Kind kind, Named process, Named other, const NfsdbLines& lines,
                uint64_t time_ns) {
    if (lines.text().empty()) return;
    known_[process.id].told = true;
    Packer entry;
    entry.Number(kind);
    entry.Number(process.id);
    entry.Number(process.upid);
    entry.Number(other.id);
    entry.Number(other.upid);
    entry.Number(known_[process.id].cpu);
    entry.Number(time_ns);
    entry.Text(lines.text());
    entries_.Append(entry.bytes());
  }
  void AddLines(const Process& process, const NfsdbLines& lines,
                uint64_t time_ns) {
    AddEntry(kLines, {process.id, process.number}, {}, lines, time_ns);
  }

  // The first process that is told of has it from the beginning.
  void AddMount(const format::TraceHeader& header) {
    const std::string_view source = header.Get("backing.path");
    const std::string_view target = header.Get("mount.point");
    constexpr std::string_view kType = "fuse.tracefs";
    if (target.empty()) return;
    if (!NfsdbLines::Fits(source) || !NfsdbLines::Fits(target)) return;
    mounts_.Add("Mount", {{"sourcenamesize", source.size()},
                          {"targetnamesize", target.size()},
                          {"typenamesize", kType.size()},
                          {"flags", 0}});
    mounts_.AddName("MS", source);
    mounts_.AddName("MT", target);
    mounts_.AddName("MX", kType);
  }

  // --- What the tracker tells.

  void ProcessBegan(const Process& process) override {
    if (first_upid_ == 0) {
      first_upid_ = process.number;
      first_ns_ = process.begin_ns;
    }
    known_.resize(process.id + size_t{1});
    known_[process.id].parent = process.parent;
    if (process.parent == build::kNobody) return;
    known_[process.id].cpu = known_[process.parent].cpu;
    NfsdbLines lines;
    if (process.clone_flags != 0) {
      lines.Add("SysClone", {{"flags", process.clone_flags}});
    }
    lines.Add("SchedFork", {{"pid", process.number}});
    AddEntry(kFork, {process.parent, process.parent_number},
             {process.id, process.number}, lines, process.begin_ns);
  }

  void ExecutionBegan(const Process& process) override {
    if (process.now.index == 0) return;
    const build::Image& image = *process.now.image;
    const auto fitting = [&](std::string_view name) {
      if (NfsdbLines::Fits(name)) return name;
      ++left_out_;
      return std::string_view();
    };
    const std::string_view binary = fitting(image.Binary());
    const std::string path = build::ProgramPath(image);
    const std::string_view program = fitting(path);
    const std::string_view cwd = fitting(image.cwd);
    size_t size = 0;
    for (const std::string& word : image.argv) size += word.size() + 1;
    NfsdbLines lines;
    lines.Add("New_proc", {{"argsize", size},
                           {"prognameisize", binary.size()},
                           {"prognamepsize", program.size()},
                           {"cwdsize", cwd.size()}});
    lines.AddName("PI", binary);
    lines.AddName("PP", program);
    lines.AddName("CW", cwd);
    for (size_t i = 0; i < image.argv.size(); ++i) {
      lines.AddArgument(i, image.argv[i]);
    }
    lines.Add("End_of_args");
    AddLines(process, lines, process.now.begin_ns);
  }

  void Ran(const Process& process, const ProcessRecord& record) override {
    Known& known = known_[process.id];
    if (record.cpu) known.cpu = *record.cpu;
    if (record.kind == ProcessRecord::Kind::kComm && options_.names) {
      AddName(process, record.comm, record.time_ns);
    }
    if (record.kind != ProcessRecord::Kind::kPipes) return;
    // What it passes on to later programs has been told.
    if (!known.held.empty() || process.parent == build::kNobody) return;
    for (const PipeEnd& end : record.pipes) {
      const bool both = std::any_of(
          record.pipes.begin(), record.pipes.end(), [&](const PipeEnd& other) {
            return other.inode == end.inode && other.access != end.access;
          });
      // A job server's: tokens pass, no data.
      if (both && end.fd > 2) continue;
      known.held.push_back({end.inode, end.fd, end.access});
    }
  }

  void AddName(const Process& process, std::string_view name,
               uint64_t time_ns) {
    NfsdbLines lines;
    if (!NfsdbLines::Fits(name)) name = {};
    lines.Add("Comm", {{"size", name.size()}});
    lines.AddName("CN", name);
    AddLines(process, lines, time_ns);
  }

  // Whether the names of what was done can be told.
  bool Fits(const FileStep& step) {
    const bool fits = NfsdbLines::Fits(step.path) &&
                      NfsdbLines::Fits(step.path2) &&
                      NfsdbLines::Fits(step.target);
    if (!fits) ++left_out_;
    return fits;
  }

  void Did(const Process& process, const FileStep& step) override {
    if (step.error != 0 || !Fits(step)) return;
    NfsdbLines lines;
    switch (step.op) {
      case Op::open_:
      case Op::create_:
      case Op::opendir_:
        AddOpen(process, step, &lines);
        break;
      case Op::release_:
      case Op::releasedir_:
        if (const auto opened = TakeHandle(step.fh)) {
          // Another process has other descriptors.
          if (opened->first != process.id) return;
          lines.Add("Close", {{"fd", opened->second}});
        }
        break;
      case Op::rename_:
        AddPair("Rename", "R", step, &lines);
        break;
      case Op::link_:
        AddPair("Link", "L", step, &lines);
        break;
      case Op::symlink_:
        if (step.path.empty()) return;
        lines.Add("Symlink", {{"targetnamesize", step.target.size()},
                              {"linknamesize", step.path.size()}});
        lines.AddName("ST", step.target);
        lines.AddName("SL", step.path);
        break;
      case Op::lookup_:
      case Op::getattr_:
      case Op::setattr_:
      case Op::readlink_:
      case Op::mknod_:
      case Op::mkdir_:
      case Op::unlink_:
      case Op::rmdir_:
      case Op::tmpfile_:
      case Op::read_:
      case Op::write_:
      case Op::flush_:
      case Op::fsync_:
      case Op::readdir_:
      case Op::fsyncdir_:
      case Op::statfs_:
      case Op::setxattr_:
      case Op::getxattr_:
      case Op::listxattr_:
      case Op::removexattr_:
      case Op::access_:
      case Op::getlk_:
      case Op::setlk_:
      case Op::flock_:
      case Op::fallocate_:
      case Op::lseek_:
      case Op::copy_file_range_:
      case Op::ioctl_:
      case Op::poll_:
      case Op::statx_:
        return;
    }
    AddLines(process, lines, step.time_ns);
  }

  void DidWithout(ProcessId id, uint32_t /*number*/,
                  const FileStep& step) override {
    // What the kernel closes as a process ends has no line, as in CAS.
    if (step.op == Op::release_ || step.op == Op::releasedir_) {
      TakeHandle(step.fh);
    } else if (id == build::kNobody) {
      ++left_out_;
    }
  }

  void ProcessEnded(const Process& process) override {
    next_fd_.erase(process.id);
    if (process.ended) {
      NfsdbLines lines;
      lines.Add("Exit", {{"status", process.ShellStatus().value_or(0)}});
      AddEntry(kExit, {process.id, process.number},
               {process.parent, process.parent_number}, lines, process.end_ns);
    } else if (!known_[process.id].told) {
      // The parser knows processes by their lines only.
      AddName(process, process.comm, process.end_ns);
    }
  }

  void AddOpen(const Process& process, const FileStep& step,
               NfsdbLines* lines) {
    if (step.path.empty()) return;
    const uint32_t fd = kFirstFile + next_fd_[process.id]++;
    if (step.fh != 0) open_[step.fh] = {process.id, fd};
    uint64_t flags = step.flags;
    if (step.op == Op::create_) flags |= O_CREAT;
    if (step.op == Op::opendir_) flags |= O_DIRECTORY;
    lines->Add("Open", {{"fnamesize", step.path.size()},
                        {"forigsize", step.path.size()},
                        {"flags", flags},
                        {"mode", step.mode},
                        {"fd", fd}});
    lines->AddName("FN", step.path);
    lines->AddName("FO", step.path);
  }
  // Removes a closed handle: the process that opened it, and its descriptor.
  std::optional<std::pair<ProcessId, uint32_t>> TakeHandle(uint64_t fh) {
    const auto found = open_.find(fh);
    if (fh == 0 || found == open_.end()) return std::nullopt;
    const auto opened = found->second;
    open_.erase(found);
    return opened;
  }
  static void AddPair(const std::string& name, const std::string& key,
                      const FileStep& step, NfsdbLines* lines) {
    if (step.path.empty() || step.path2.empty()) return;
    lines->Add(name + "From", {{"fnamesize", step.path.size()}});
    lines->AddName(key + "F", step.path);
    lines->Add(name + "To", {{"fnamesize", step.path2.size()}});
    lines->AddName(key + "T", step.path2);
  }

  // --- The end.

  // Who made each pipe, and before which child of his.
  void PlacePipes() {
    for (ProcessId id = 0; id < known_.size(); ++id) {
      for (const Held& held : known_[id].held) {
        Pipe& pipe = pipes_[held.pipe];
        if (pipe.first_holder == build::kNobody) {
          pipe.first_holder = id;
          pipe.descriptor =
              kFirstPipe + 2 * static_cast<uint32_t>(pipes_.size());
          if (known_[id].parent != build::kNobody) {
            known_[known_[id].parent].pipes.push_back(held.pipe);
          }
        }
        if (known_[id].parent == known_[pipe.first_holder].parent) {
          pipe.last_holder = id;
        }
      }
    }
    for (const auto& [inode, pipe] : pipes_) {
      known_[pipe.last_holder].last.push_back(inode);
    }
    // What nobody is seen to read, the maker reads, if it is what a child says
    // to the world; what nobody is seen to write, he writes.
    std::unordered_map<uint64_t, unsigned> ends;
    for (const Known& known : known_) {
      for (const Held& held : known.held) {
        unsigned& seen = ends[held.pipe];
        if (held.access != PipeEnd::kWrite) seen |= kSeenReading;
        if (held.access != PipeEnd::kRead) seen |= kSeenWriting;
        if (held.access != PipeEnd::kRead && held.fd <= 2) seen |= kSeenSaying;
      }
    }
    for (auto& [inode, pipe] : pipes_) {
      const unsigned seen = ends[inode];
      pipe.parent_reads = (seen & (kSeenReading | kSeenSaying)) == kSeenSaying;
      pipe.parent_writes = (seen & kSeenWriting) == 0;
    }
  }

  void Close(ProcessId process, uint32_t fd, NfsdbLines* lines) {
    std::erase(known_[process].open, fd);
    lines->Add("Close", {{"fd", fd}});
  }

  void Put(uint32_t upid, uint32_t cpu, uint64_t time_ns,
           std::string_view lines) {
    buffer_.clear();
    clock_.Append(upid, cpu, time_ns, lines, &buffer_);
    out_.Append(buffer_);
  }

  void WriteEntry(std::string_view bytes) {
    Unpacker entry(bytes);
    const auto kind = static_cast<Kind>(entry.Number());
    const auto process = static_cast<ProcessId>(entry.Number());
    const auto upid = static_cast<uint32_t>(entry.Number());
    const auto other = static_cast<ProcessId>(entry.Number());
    const auto other_upid = static_cast<uint32_t>(entry.Number());
    const auto cpu = static_cast<uint32_t>(entry.Number());
    const uint64_t time_ns = entry.Number();
    const std::string_view text = entry.Text();
    NfsdbLines before;
    NfsdbLines after;
    NfsdbLines of_other;
    if (kind == kFork) {
      MakePipes(process, other, &before);
      LeavePipes(process, other, &after);
      TakePipes(other, &of_other);
    } else if (kind == kExit) {
      known_[process].done = true;
      if (other != build::kNobody && !known_[other].done) {
        ReadToTheEnd(other, process, &of_other);
      }
    }
    Put(upid, cpu, time_ns, before.text());
    Put(upid, cpu, time_ns, text);
    Put(upid, cpu, time_ns, after.text());
    Put(other_upid, cpu, time_ns, of_other.text());
  }

  void MakePipes(ProcessId parent, ProcessId child, NfsdbLines* lines) {
    Known& known = known_[parent];
    for (; known.made < known.pipes.size(); ++known.made) {
      const Pipe& pipe = pipes_[known.pipes[known.made]];
      if (pipe.first_holder != child) break;
      lines->Add("Pipe", {{"fd1", pipe.descriptor},
                          {"fd2", pipe.descriptor + 1},
                          {"flags", 0}});
      known.open.push_back(pipe.descriptor);
      known.open.push_back(pipe.descriptor + 1);
    }
  }

  // The parent lets go of what its last holder has.
  void LeavePipes(ProcessId parent, ProcessId child, NfsdbLines* lines) {
    known_[child].inherited = known_[parent].open;
    for (const uint64_t inode : known_[child].last) {
      const Pipe& pipe = pipes_[inode];
      if (!pipe.parent_reads) Close(parent, pipe.descriptor, lines);
      if (!pipe.parent_writes) Close(parent, pipe.descriptor + 1, lines);
    }
  }

  // With the last child that holds a pipe the parent is done with it as well:
  // a shell would pass what all its commands said to all later ones, else.
  void ReadToTheEnd(ProcessId parent, ProcessId child, NfsdbLines* lines) {
    const std::vector<uint32_t>& open = known_[parent].open;
    for (const uint64_t inode : known_[child].last) {
      const uint32_t descriptor = pipes_[inode].descriptor;
      for (const uint32_t end : {descriptor, descriptor + 1}) {
        if (std::ranges::find(open, end) == open.end()) continue;
        Close(parent, end, lines);
      }
    }
  }

  // What its first program will hold is moved to where that holds it, and the
  // rest is closed: between its fork and that program.
  void TakePipes(ProcessId process, NfsdbLines* lines) {
    Known& known = known_[process];
    for (const Held& held : known.held) {
      const uint32_t from = pipes_[held.pipe].descriptor +
                            (held.access == PipeEnd::kRead ? 0 : 1);
      if (std::find(known.inherited.begin(), known.inherited.end(), from) ==
          known.inherited.end()) {
        continue;
      }
      lines->Add("Dup", {{"oldfd", from}, {"newfd", held.fd}, {"flags", 0}});
    }
    for (const uint32_t fd : known.inherited) lines->Add("Close", {{"fd", fd}});
    known.inherited.clear();
    known.held.clear();
  }

  OutputBuffer& out_;
  const NfsdbRawOptions options_;
  build::ProcessTracker tracker_;
  build::RecordSteps steps_;
  EntrySpool entries_;
  std::vector<Known> known_;                  // by process
  std::unordered_map<uint64_t, Pipe> pipes_;  // by inode
  std::unordered_map<ProcessId, uint32_t> next_fd_;
  // By file handle.
  std::unordered_map<uint64_t, std::pair<ProcessId, uint32_t>> open_;
  NfsdbClock clock_;
  std::string buffer_;  // of one entry, kept for its memory
  std::string initial_;
  NfsdbLines mounts_;
  uint32_t first_upid_ = 0;  // 0: nobody yet
  uint64_t first_ns_ = 0;
  uint64_t left_out_ = 0;
  Status status_;
};

}  // namespace

std::unique_ptr<Exporter> MakeNfsdb(OutputBuffer& out,
                                    const NfsdbRawOptions& options) {
  return std::make_unique<NfsdbExporter>(out, options);
}

std::unique_ptr<Exporter> MakeNfsdbExporter(OutputBuffer& out,
                                            const ExportOptions& options) {
  NfsdbRawOptions chosen;
  chosen.names = options.Choice("comm") == "yes";
  chosen.mounts = options.Choice("mounts") == "yes";
  return MakeNfsdb(out, chosen);
}

}  // namespace tracefs
