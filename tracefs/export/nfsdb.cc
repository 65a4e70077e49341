#include "tracefs/export/nfsdb.h"

#include <fcntl.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/build/access.h"
#include "tracefs/build/process_tracker.h"
#include "tracefs/build/record_step.h"
#include "tracefs/export/packed.h"
#include "tracefs/export/spool.h"

namespace tracefs {
namespace {

using build::FileStep;
using build::Process;
using build::ProcessId;

// Numbers for descriptors that nobody told: those of files begin here, those of
// pipes in the process that made them beyond all of these.
constexpr uint32_t kFirstFile = 3;
constexpr uint32_t kFirstPipe = 1'000'000;

std::string Field(std::string_view name, uint64_t value) {
  return std::string(name) + "=" + std::to_string(value) + ",";
}

std::string SizeField(std::string_view name, std::string_view text) {
  return Field(name, text.size());
}

// Lines of one process: from the first to the last at one moment.
class Lines {
 public:
  Lines(uint32_t upid, uint32_t cpu, uint64_t time_ns)
      : head_("0: " + std::to_string(upid) + "," + std::to_string(cpu) + "," +
              std::to_string(time_ns / kNsPerSecond) + "," +
              std::to_string(time_ns % kNsPerSecond) + "!") {}

  void Add(std::string_view line) {
    text_ += head_;
    text_ += line;
    text_ += '\n';
  }
  // KEY|text; its ends of lines are split off, as the format has it.
  void AddText(std::string_view key, std::string_view text) {
    size_t end = text.find('\n');
    Add(std::string(key) + "|" + std::string(text.substr(0, end)));
    while (end != text.npos) {
      text.remove_prefix(end + 1);
      end = text.find('\n');
      Add(std::string(end == text.npos ? "Cont_end|" : "Cont|") +
          std::string(text.substr(0, end)));
    }
  }
  const std::string& text() const { return text_; }

 private:
  const std::string head_;
  std::string text_;
};

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
    cpu_ = record.cpu.value_or(0);
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
    std::replace(initial_.begin(), initial_.end(), '\n', '?');
    out_.Append("INITCWD=" + (initial_.empty() ? "/" : initial_) + "\n");
    out_.Append(mounts_);
    status_ =
        entries_.ForEach([this](std::string_view entry) { WriteEntry(entry); });
  }
  uint64_t left_out() const override { return left_out_; }
  Status status() const override {
    return status_.ok() ? entries_.status() : status_;
  }

 private:
  enum Kind : uint8_t { kLines, kFork, kExec };

  // A pipe, in the process that made it.
  struct Pipe {
    ProcessId first_holder = build::kNobody;
    ProcessId last_holder = build::kNobody;
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
    std::vector<Held> held;           // as its first program began
    std::vector<uint64_t> pipes;      // it made, by inode, in order of forks
    std::vector<uint32_t> open;       // descriptors of pipes it has just now
    std::vector<uint32_t> inherited;  // of its parent, not closed yet
  };

  void AddEntry(Kind kind, ProcessId process, ProcessId other,
                const std::string& text, uint32_t upid, uint64_t time_ns) {
    Packer entry;
    entry.Number(kind);
    entry.Number(process);
    entry.Number(other == build::kNobody ? 0 : other + uint64_t{1});
    entry.Number(upid);
    entry.Number(time_ns);
    entry.Text(text);
    entries_.Append(entry.bytes());
  }
  void AddLines(const Process& process, const Lines& lines) {
    AddEntry(kLines, process.id, build::kNobody, lines.text(), process.number,
             0);
  }

  // The first process that is told of has it from the beginning.
  void AddMount(const format::TraceHeader& header) {
    const std::string_view source = header.Get("backing.path");
    const std::string_view target = header.Get("mount.point");
    constexpr std::string_view kType = "fuse.tracefs";
    if (target.empty()) return;
    Lines lines(first_upid_, 0, first_ns_);
    lines.Add("Mount|" + SizeField("sourcenamesize", source) +
              SizeField("targetnamesize", target) +
              SizeField("typenamesize", kType) + Field("flags", 0));
    lines.AddText("MS", source);
    lines.AddText("MT", target);
    lines.AddText("MX", kType);
    mounts_ += lines.text();
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
    Lines lines(process.parent_number, cpu_, process.begin_ns);
    if (process.clone_flags != 0) {
      lines.Add("SysClone|" + Field("flags", process.clone_flags));
    }
    lines.Add("SchedFork|" + Field("pid", process.number));
    AddEntry(kFork, process.parent, process.id, lines.text(),
             process.parent_number, process.begin_ns);
  }

  void ExecutionBegan(const Process& process) override {
    if (process.now.index == 0) return;
    const build::Image& image = *process.now.image;
    Lines lines(process.number, cpu_, process.now.begin_ns);
    uint64_t size = 0;
    for (const std::string& word : image.argv) size += word.size() + 1;
    const std::string_view program =
        image.program.empty() ? image.exe : image.program;
    lines.Add("New_proc|" + Field("argsize", size) +
              SizeField("prognameisize", image.Binary()) +
              SizeField("prognamepsize", program) +
              SizeField("cwdsize", image.cwd));
    lines.AddText("PI", image.Binary());
    lines.AddText("PP", program);
    lines.AddText("CW", image.cwd);
    for (size_t i = 0; i < image.argv.size(); ++i) {
      lines.AddText("A[" + std::to_string(i) + "]", image.argv[i]);
    }
    lines.Add("End_of_args|");
    AddEntry(kExec, process.id, build::kNobody, lines.text(), process.number,
             process.now.begin_ns);
  }

  void Ran(const Process& process, const ProcessRecord& record) override {
    if (record.kind == ProcessRecord::Kind::kComm && options_.names) {
      Lines lines(process.number, cpu_, record.time_ns);
      lines.Add("Comm|" + SizeField("size", record.comm));
      lines.AddText("CN", record.comm);
      AddLines(process, lines);
    }
    if (record.kind != ProcessRecord::Kind::kPipes) return;
    Known& known = known_[process.id];
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

  void Did(const Process& process, const FileStep& step) override {
    Lines lines(process.number, 0, step.time_ns);
    switch (step.op) {
      case Op::open_:
      case Op::create_:
        if (step.error != 0) return;
        AddOpen(process, step, &lines);
        break;
      case Op::opendir_:
        if (step.error != 0) return;
        AddOpen(process, step, &lines);
        break;
      case Op::release_:
      case Op::releasedir_:
        AddClose(step, &lines);
        break;
      case Op::rename_:
        AddPair("Rename", "R", step, &lines);
        break;
      case Op::link_:
        AddPair("Link", "L", step, &lines);
        break;
      case Op::symlink_:
        if (step.error != 0 || step.path.empty()) return;
        lines.Add("Symlink|" + SizeField("targetnamesize", step.target) +
                  SizeField("linknamesize", step.path));
        lines.AddText("ST", step.target);
        lines.AddText("SL", step.path);
        break;
      default:
        return;
    }
    if (!lines.text().empty()) AddLines(process, lines);
  }

  void DidWithout(ProcessId id, uint32_t number,
                  const FileStep& step) override {
    const bool closes = step.op == Op::release_ || step.op == Op::releasedir_;
    if (closes) {
      Lines lines(number, 0, step.time_ns);
      AddClose(step, &lines);
      if (id != build::kNobody && !lines.text().empty()) {
        AddEntry(kLines, id, build::kNobody, lines.text(), number, 0);
      }
    } else if (id == build::kNobody) {
      ++left_out_;
    }
  }

  void ProcessEnded(const Process& process) override {
    next_fd_.erase(process.id);
    if (!process.ended) return;
    Lines lines(process.number, cpu_, process.end_ns);
    lines.Add("Exit|" + Field("status", process.ShellStatus().value_or(0)));
    AddLines(process, lines);
  }

  void AddOpen(const Process& process, const FileStep& step, Lines* lines) {
    if (step.path.empty()) return;
    uint32_t& next = next_fd_[process.id];
    const uint32_t fd = kFirstFile + next++;
    if (step.fh != 0) open_[step.fh] = {process.id, fd};
    uint64_t flags = step.flags;
    if (step.op == Op::create_) flags |= O_CREAT;
    if (step.op == Op::opendir_) flags |= O_DIRECTORY;
    lines->Add("Open|" + SizeField("fnamesize", step.path) +
               SizeField("forigsize", step.path) + Field("flags", flags) +
               Field("mode", step.mode) + Field("fd", fd));
    lines->AddText("FN", step.path);
    lines->AddText("FO", step.path);
  }
  void AddClose(const FileStep& step, Lines* lines) {
    const auto found = open_.find(step.fh);
    if (step.fh == 0 || found == open_.end()) return;
    lines->Add("Close|" + Field("fd", found->second.second));
    open_.erase(found);
  }
  static void AddPair(const std::string& name, const std::string& key,
                      const FileStep& step, Lines* lines) {
    if (step.path.empty() || step.path2.empty()) return;
    lines->Add(name + "From|" + SizeField("fnamesize", step.path));
    lines->AddText(key + "F", step.path);
    lines->Add(name + "To|" + SizeField("fnamesize", step.path2));
    lines->AddText(key + "T", step.path2);
    if (step.error != 0) lines->Add(name + "Failed|");
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
        pipe.last_holder = id;
      }
    }
    // What nobody is seen to read, the maker reads; likewise writes.
    std::unordered_map<uint64_t, unsigned> ends;
    for (const Known& known : known_) {
      for (const Held& held : known.held) {
        ends[held.pipe] |= held.access == PipeEnd::kRead    ? 1
                           : held.access == PipeEnd::kWrite ? 2
                                                            : 3;
      }
    }
    for (auto& [inode, pipe] : pipes_) {
      pipe.parent_reads = (ends[inode] & 1) == 0;
      pipe.parent_writes = (ends[inode] & 2) == 0;
    }
  }

  void Close(ProcessId process, uint32_t fd, Lines* lines) {
    std::erase(known_[process].open, fd);
    lines->Add("Close|" + Field("fd", fd));
  }

  void WriteEntry(std::string_view bytes) {
    Unpacker entry(bytes);
    const auto kind = static_cast<Kind>(entry.Number());
    const auto process = static_cast<ProcessId>(entry.Number());
    const uint64_t other = entry.Number();
    const auto upid = static_cast<uint32_t>(entry.Number());
    const uint64_t time_ns = entry.Number();
    const std::string_view text = entry.Text();
    if (kind == kFork) MakePipes(process, ProcessId(other - 1), upid, time_ns);
    if (kind == kExec) TakePipes(process, upid, time_ns);
    out_.Append(text);
    if (kind == kFork) LeavePipes(process, ProcessId(other - 1), upid, time_ns);
  }

  void MakePipes(ProcessId parent, ProcessId child, uint32_t upid,
                 uint64_t time_ns) {
    Lines lines(upid, 0, time_ns);
    for (const uint64_t inode : known_[parent].pipes) {
      const Pipe& pipe = pipes_[inode];
      if (pipe.first_holder != child) continue;
      lines.Add("Pipe|" + Field("fd1", pipe.descriptor) +
                Field("fd2", pipe.descriptor + 1) + Field("flags", 0));
      known_[parent].open.push_back(pipe.descriptor);
      known_[parent].open.push_back(pipe.descriptor + 1);
    }
    out_.Append(lines.text());
  }

  // The parent lets go of what its last holder has.
  void LeavePipes(ProcessId parent, ProcessId child, uint32_t upid,
                  uint64_t time_ns) {
    known_[child].inherited = known_[parent].open;
    Lines lines(upid, 0, time_ns);
    for (const uint64_t inode : known_[parent].pipes) {
      const Pipe& pipe = pipes_[inode];
      if (pipe.last_holder != child) continue;
      if (!pipe.parent_reads) Close(parent, pipe.descriptor, &lines);
      if (!pipe.parent_writes) Close(parent, pipe.descriptor + 1, &lines);
    }
    out_.Append(lines.text());
  }

  // What the program will hold is moved to where it holds it; the rest closed.
  void TakePipes(ProcessId process, uint32_t upid, uint64_t time_ns) {
    Known& known = known_[process];
    Lines lines(upid, 0, time_ns);
    for (const Held& held : known.held) {
      const uint32_t from = pipes_[held.pipe].descriptor +
                            (held.access == PipeEnd::kRead ? 0 : 1);
      if (std::find(known.inherited.begin(), known.inherited.end(), from) ==
          known.inherited.end()) {
        continue;
      }
      lines.Add("Dup|" + Field("oldfd", from) + Field("newfd", held.fd) +
                Field("flags", 0));
    }
    for (const uint32_t fd : known.inherited) {
      lines.Add("Close|" + Field("fd", fd));
    }
    known.inherited.clear();
    known.held.clear();
    out_.Append(lines.text());
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
  std::string initial_;
  std::string mounts_;
  uint32_t first_upid_ = 0;  // 0: nobody yet
  uint64_t first_ns_ = 0;
  uint32_t cpu_ = 0;
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
