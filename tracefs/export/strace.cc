#include "tracefs/export/strace.h"

#include <linux/fuse.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "tracefs/base/choice.h"
#include "tracefs/base/clock.h"
#include "tracefs/export/strace_asked.h"
#include "tracefs/export/strace_held.h"
#include "tracefs/feed/process_lines.h"
#include "tracefs/text/flag_names.h"

namespace tracefs {
namespace {

using format::Record;

constexpr size_t kPidColumns = 5;
constexpr size_t kCallColumns = 15;  // what is shorter is filled with blanks

constexpr uint64_t kSetsOwner = FATTR_UID | FATTR_GID;

bool IsOctalDigit(char c) { return c >= '0' && c <= '7'; }

// As strace has it in C strings: octal, as short as what follows allows.
void AppendCText(std::string_view text, std::string_view more,
                 std::string* out) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    constexpr std::string_view kEscaped = "\t\n\v\f\r\"\\";
    constexpr std::string_view kLetters = "tnvfr\"\\";
    if (const size_t at = kEscaped.find(c); at != kEscaped.npos) {
      *out += '\\';
      *out += kLetters[at];
    } else if (c < 0x20 || c > 0x7e || more.find(c) != more.npos) {
      std::array<char, 8> octal;
      const bool digit_follows =
          i + 1 < text.size() && IsOctalDigit(text[i + 1]);
      snprintf(octal.data(), octal.size(), digit_follows ? "\\%03o" : "\\%o",
               static_cast<unsigned>(static_cast<unsigned char>(c)));
      *out += octal.data();
    } else {
      *out += c;
    }
  }
}

std::string_view TypeBits(uint64_t mode) {
  static constexpr Choice<uint64_t> kBits[] = {
      {"S_IFREG|", S_IFREG}, {"S_IFDIR|", S_IFDIR},   {"S_IFLNK|", S_IFLNK},
      {"S_IFIFO|", S_IFIFO}, {"S_IFSOCK|", S_IFSOCK}, {"S_IFCHR|", S_IFCHR},
      {"S_IFBLK|", S_IFBLK},
  };
  return WordOf(kBits, mode & S_IFMT);
}

// One call: name, arguments, then what came of it.
class Call {
 public:
  Call(const TableRow& row, std::string* line) : row_(row), line_(*line) {}

  Call& Name(std::string_view name) {
    begin_ = line_.size();
    line_ += name;
    line_ += '(';
    return *this;
  }
  Call& Raw(std::string_view text) {
    Comma();
    line_ += text;
    return *this;
  }
  Call& Text(std::string_view text) {
    Comma();
    line_ += '"';
    AppendCText(text, {}, &line_);
    line_ += '"';
    return *this;
  }
  Call& Path() { return Text(PathText()); }
  Call& Path2() {
    return Text(row_.path2().empty() ? row_.event().new_name : row_.path2());
  }
  Call& AtCwd() { return Raw("AT_FDCWD</>"); }
  // What was transferred, of which no byte is shown.
  Call& Data() { return Raw("\"\"..."); }
  Call& Fd(Field field = Field::kFh) {
    Comma();
    AppendFd(field);
    return *this;
  }
  Call& Number(Field field) {
    if (!Has(field)) return Raw("0");
    return Raw(std::to_string(Get(field)));
  }
  Call& Signed(Field field) {
    return Raw(std::to_string(static_cast<int64_t>(Get(field))));
  }
  Call& Octal(Field field) { return Raw(OctalText(Get(field) & 07777)); }
  Call& Hex(uint64_t value) {
    std::array<char, 32> text;
    snprintf(text.data(), text.size(), "0x%llx",
             static_cast<unsigned long long>(value));
    return Raw(text.data());
  }
  Call& Flags(std::string_view more = {}) {
    const Op op = row_.event().op;
    auto flags = static_cast<uint32_t>(Get(Field::kFlags));
    if (Info(op).flags == OpFlags::kOpen) flags = NamedOpenFlags(flags);
    std::string text = FlagsText(op, flags);
    if (text.empty()) text = "0";
    if (!more.empty() && text.find(more) == text.npos) {
      text = text == "0" ? std::string(more) : text + "|" + std::string(more);
    }
    return Raw(text);
  }
  // struct stat, as far as it is known; an address where the call failed.
  Call& Stat() {
    if (row_.failed() || !Has(Field::kMode)) return Raw("0x1");
    const uint64_t mode = Get(Field::kMode);
    std::string text =
        "{st_mode=" + std::string(TypeBits(mode)) + OctalText(mode & 07777);
    if (Has(Field::kSize)) {
      text += ", st_size=" + std::to_string(Get(Field::kSize));
    }
    return Raw(text + ", ...}");
  }

  bool Has(Field f) const { return row_.event().Has(f); }
  uint64_t Get(Field f) const { return Has(f) ? row_.event().Get(f) : 0; }

  // ") = 3</a>"; `gives_file`: the result is a descriptor.
  void End(bool gives_file = false) {
    line_ += ')';
    while (line_.size() - begin_ < kCallColumns) line_ += ' ';
    line_ += " = ";
    const Event& event = row_.event();
    if (row_.failed()) {
      const uint64_t number = event.Get(Field::kErrno);
      const std::string_view name = ErrnoName(number);
      const char* const text = ::strerrordesc_np(static_cast<int>(number));
      line_ += "-1 ";
      line_ += name.empty() ? "E" + std::to_string(number) : std::string(name);
      if (text != nullptr) ((line_ += " (") += text) += ')';
    } else if (gives_file) {
      AppendFd(Field::kFh);
    } else if (Has(Field::kResult)) {
      line_ += std::to_string(static_cast<int64_t>(Get(Field::kResult)));
    } else {
      line_ += '?';
    }
  }

  static std::string OctalText(uint64_t value) {
    std::array<char, 32> text;
    snprintf(text.data(), text.size(), value == 0 ? "0" : "0%llo",
             static_cast<unsigned long long>(value));
    return text.data();
  }

 private:
  void Comma() {
    if (!line_.ends_with('(')) line_ += ", ";
  }
  std::string_view PathText() const {
    return row_.path().empty() ? row_.event().name : row_.path();
  }
  // A file without a handle has its inode there: files stay apart.
  void AppendFd(Field field) {
    const Field number = Has(field) ? field : Field::kInode;
    line_ += Has(number) ? std::to_string(Get(number)) : "-1";
    const std::string_view path =
        field == Field::kFhOut ? row_.path2() : PathText();
    if (path.empty()) return;
    line_ += '<';
    AppendCText(path, "<>", &line_);
    line_ += '>';
  }

  const TableRow& row_;
  std::string& line_;
  size_t begin_ = 0;
};

void PutSetattr(Call& call) {
  const uint64_t valid = call.Get(Field::kValid);
  const auto owner = [&call](uint64_t bit, Field field) {
    if ((call.Get(Field::kValid) & bit) == 0) {
      call.Raw("-1");
    } else {
      call.Number(field);
    }
  };
  if ((valid & FATTR_SIZE) != 0) {
    call.Name("truncate").Path().Number(Field::kNewSize).End();
  } else if ((valid & kSetsOwner) != 0) {
    call.Name("lchown").Path();
    owner(2, Field::kNewUid);
    owner(4, Field::kNewGid);
    call.End();
  } else if ((valid & FATTR_MODE) != 0) {
    call.Name("fchmodat").AtCwd().Path().Octal(Field::kArgMode).End();
  } else {
    std::string times = "[";
    for (const Field field : {Field::kNewAtime, Field::kNewMtime}) {
      if (times.size() > 1) times += ", ";
      if (!call.Has(field)) {
        times += "UTIME_OMIT";
        continue;
      }
      const auto ns = static_cast<int64_t>(call.Get(field));
      constexpr auto kBillion = static_cast<int64_t>(kNsPerSecond);
      int64_t seconds = ns / kBillion;
      if (ns % kBillion < 0) --seconds;
      times += "{tv_sec=" + std::to_string(seconds) +
               ", tv_nsec=" + std::to_string(ns - seconds * kBillion) + "}";
    }
    call.Name("utimensat").AtCwd().Path().Raw(times + "]");
    call.Raw("AT_SYMLINK_NOFOLLOW").End();
  }
}

void PutLock(Call& call, Op op) {
  const uint64_t type = call.Get(Field::kLockType);
  const bool waits = call.Get(Field::kFlags) != 0;
  if (op == Op::flock_) {
    std::string how = type == 0 ? "LOCK_SH" : type == 1 ? "LOCK_EX" : "LOCK_UN";
    if (!waits && type != 2) how += "|LOCK_NB";
    call.Name("flock").Fd().Raw(how).End();
    return;
  }
  const std::string_view name = LockTypeName(type);
  const auto length = static_cast<int64_t>(call.Get(Field::kLength));
  call.Name("fcntl").Fd().Raw(op == Op::getlk_ ? "F_GETLK"
                              : waits          ? "F_SETLKW"
                                               : "F_SETLK");
  call.Raw(
      "{l_type=" + (name.empty() ? std::to_string(type) : std::string(name)) +
      ", l_whence=SEEK_SET, l_start=" +
      std::to_string(call.Get(Field::kOffset)) +
      // To the end of the file is 0.
      ", l_len=" + std::to_string(length < 0 ? 0 : length) + "}");
  call.End();
}

void PutReadlink(const TableRow& row, Call& call) {
  call.Name("readlink").Path();
  if (row.failed() || row.event().target.empty()) {
    call.Data();
  } else {
    call.Text(row.event().target);
  }
  call.Raw("4096").End();
}

void PutMknod(Call& call) {
  const uint64_t mode = call.Get(Field::kArgMode);
  call.Name("mknodat").AtCwd().Path();
  call.Raw(std::string(TypeBits(mode)) + Call::OctalText(mode & 07777));
  if (S_ISCHR(mode) || S_ISBLK(mode)) {
    std::array<char, 64> device;
    const uint64_t number = call.Get(Field::kRdev);
    snprintf(device.data(), device.size(), "makedev(0x%x, 0x%x)", major(number),
             minor(number));
    call.Raw(device.data());
  }
  call.End();
}

void PutOpen(Call& call, Op op) {
  call.Name("openat").AtCwd().Path();
  if (op == Op::create_ || op == Op::tmpfile_) {
    call.Flags(op == Op::create_ ? "O_CREAT" : "O_TMPFILE");
    call.Octal(Field::kArgMode);
  } else if (op == Op::opendir_ && !call.Has(Field::kFlags)) {
    call.Flags("O_DIRECTORY");
  } else {
    call.Flags();
  }
  call.End(true);
}

void PutXattr(const Event& event, Call& call) {
  call.Name(OpName(event.op)).Path();
  if (event.op != Op::listxattr_) call.Text(event.xattr_name);
  if (event.op != Op::removexattr_) call.Data().Number(Field::kLength);
  if (event.op == Op::setxattr_) call.Flags();
  call.End();
}

void PutAccess(Call& call) {
  std::array<char, kMaxFlagText> mode;
  char* const end = PutAccessMode(
      mode.data(), static_cast<uint32_t>(call.Get(Field::kArgMode)));
  call.Name("access").Path();
  call.Raw({mode.data(), static_cast<size_t>(end - mode.data())}).End();
}

void PutCopy(Call& call) {
  call.Name("copy_file_range").Fd();
  call.Raw("[" + std::to_string(call.Get(Field::kOffset)) + "]");
  call.Fd(Field::kFhOut);
  call.Raw("[" + std::to_string(call.Get(Field::kOffsetOut)) + "]");
  call.Number(Field::kLength).Raw("0").End();
}

// False: there is no call of that kind.
bool PutCall(const TableRow& row, Call& call) {
  const Event& event = row.event();
  switch (event.op) {
    case Op::lookup_:
    case Op::getattr_:
      call.Name("newfstatat").AtCwd().Path().Stat();
      call.Raw("AT_SYMLINK_NOFOLLOW").End();
      return true;
    case Op::statx_:
      call.Name("statx").AtCwd().Path().Raw("AT_SYMLINK_NOFOLLOW");
      call.Raw("STATX_BASIC_STATS").Raw("0x1").End();
      return true;
    case Op::setattr_:
      PutSetattr(call);
      return true;
    case Op::readlink_:
      PutReadlink(row, call);
      return true;
    case Op::symlink_:
      call.Name("symlink").Text(event.target).Path().End();
      return true;
    case Op::mknod_:
      PutMknod(call);
      return true;
    case Op::mkdir_:
      call.Name("mkdir").Path().Octal(Field::kArgMode).End();
      return true;
    case Op::unlink_:
    case Op::rmdir_:
      call.Name(OpName(event.op)).Path().End();
      return true;
    case Op::rename_:
      if (call.Get(Field::kFlags) == 0) {
        call.Name("rename").Path().Path2().End();
      } else {
        call.Name("renameat2").AtCwd().Path().AtCwd().Path2().Flags().End();
      }
      return true;
    case Op::link_:
      call.Name("link").Path().Path2().End();
      return true;
    case Op::open_:
    case Op::opendir_:
    case Op::create_:
    case Op::tmpfile_:
      PutOpen(call, event.op);
      return true;
    case Op::read_:
    case Op::write_:
      call.Name(event.op == Op::read_ ? "pread64" : "pwrite64").Fd().Data();
      call.Number(Field::kLength).Number(Field::kOffset).End();
      return true;
    case Op::release_:
    case Op::releasedir_:
      call.Name("close").Fd().End();
      return true;
    case Op::fsync_:
    case Op::fsyncdir_:
      call.Name((call.Get(Field::kFlags) & 1) != 0 ? "fdatasync" : "fsync");
      call.Fd().End();
      return true;
    case Op::readdir_:
      call.Name("getdents64").Fd().Raw("0x1").Number(Field::kLength).End();
      return true;
    case Op::statfs_:
      call.Name("statfs").Path().Raw(row.failed() ? "0x1" : "{...}").End();
      return true;
    case Op::setxattr_:
    case Op::getxattr_:
    case Op::listxattr_:
    case Op::removexattr_:
      PutXattr(event, call);
      return true;
    case Op::access_:
      PutAccess(call);
      return true;
    case Op::getlk_:
    case Op::setlk_:
    case Op::flock_:
      PutLock(call, event.op);
      return true;
    case Op::fallocate_:
      call.Name("fallocate").Fd().Flags().Number(Field::kOffset);
      call.Number(Field::kLength).End();
      return true;
    case Op::lseek_:
      call.Name("lseek").Fd().Signed(Field::kOffset).Flags().End();
      return true;
    case Op::copy_file_range_:
      PutCopy(call);
      return true;
    case Op::ioctl_:
      call.Name("ioctl").Fd().Hex(call.Get(Field::kCommand)).Raw("0x1").End();
      return true;
    case Op::flush_:
    case Op::poll_:
      return false;
  }
  return false;
}

class StraceExporter final : public Exporter {
 public:
  StraceExporter(OutputBuffer& out, const ExportOptions& options)
      : held_(out), all_(options.Choice("lookups") == "yes") {}

  void Write(const Record& record) override {
    const Event& event = record.event;
    const TableRow row(record);
    line_.clear();
    const Field who = event.Has(Field::kTid) ? Field::kTid : Field::kPid;
    const uint64_t tid = event.GetOr0(who);
    line_ += std::to_string(tid);
    while (line_.size() < kPidColumns) line_ += ' ';
    line_ += ' ';
    AppendSeconds(record.real_ns, &line_);
    line_ += ' ';
    Call call(row, &line_);
    // That it was about to run is told again when it has.
    if (event.before || !PutCall(row, call)) {
      ++left_out_;
      return;
    }
    if (event.Has(Field::kLatency)) {
      line_ += " <";
      AppendSeconds(event.Get(Field::kLatency), &line_);
      line_ += '>';
    }
    line_ += '\n';
    if (all_) return held_.Add(line_);
    Tell(row, tid, event.Has(Field::kPid) ? event.Get(Field::kPid) : tid);
  }

  void WriteProcess(const ProcessRecord& record) override {
    using Kind = ProcessRecord::Kind;
    line_ = std::to_string(record.tid != 0 ? record.tid : record.process.pid);
    line_.resize(std::max(line_.size(), kPidColumns), ' ');
    line_ += ' ';
    AppendSeconds(record.real_ns, &line_);
    switch (record.kind) {
      case Kind::kFork:
        if (record.child.pid != record.process.pid) {
          held_.ProcessChanges(record.child.pid);
        }
        line_ += " clone(child_stack=NULL, flags=";
        line_ +=
            record.clone_flags ? CloneFlagsText(*record.clone_flags) : "???";
        line_ += ") = ";
        line_ += std::to_string(record.child_tid != 0 ? record.child_tid
                                                      : record.child.pid);
        break;
      case Kind::kExec: {
        held_.ProcessChanges(record.process.pid);
        line_ += " execve(\"";
        AppendCText(record.program.empty() ? record.exe : record.program, {},
                    &line_);
        line_ += "\", [";
        std::string_view rest = record.argv;
        while (!rest.empty()) {
          const size_t end = std::min(rest.find('\0'), rest.size());
          line_ += line_.ends_with('[') ? "\"" : ", \"";
          AppendCText(rest.substr(0, end), {}, &line_);
          line_ += '"';
          rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        line_ += "], 0x1) = 0";
        break;
      }
      case Kind::kExit:
        if (!record.is_thread()) held_.ProcessChanges(record.process.pid);
        if (record.signal) {
          line_ += " +++ killed by " + SignalName(*record.signal);
          line_ += record.core_dumped ? " (core dumped) +++" : " +++";
        } else {
          line_ += " +++ exited with " +
                   std::to_string(record.exit_code.value_or(0)) + " +++";
        }
        break;
      default:
        return;  // no call says so
    }
    line_ += '\n';
    held_.Add(line_);
  }

  void Finish() override { held_.Finish(); }
  uint64_t left_out() const override { return left_out_ + held_.left_out(); }

 private:
  // line_, if a system call asked for it.
  void Tell(const TableRow& row, uint64_t tid, uint64_t pid) {
    const Event& event = row.event();
    const Asked asked = asked_.By(row);
    // A release comes when the kernel finds time for it: also between a look at
    // a directory and what is below it.
    if (asked != Asked::kByClosePerhaps &&
        (asked != Asked::kByNobody || event.op == Op::open_)) {
      held_.ThreadAsks(tid, event.op == Op::open_ || event.op == Op::opendir_,
                       row.path(), row.path2());
    }
    switch (asked) {
      case Asked::kByCall:
        held_.ProcessCalls(pid);
        return held_.Add(line_);
      case Asked::kByStatPerhaps:
        held_.ProcessCalls(pid);
        return held_.HoldStat(line_, tid, row.path());
      case Asked::kByClosePerhaps:
        return held_.HoldClose(line_, pid);
      case Asked::kByWalk:
      case Asked::kByNobody:
        ++left_out_;
    }
  }

  // With six digits after the point.
  static void AppendSeconds(uint64_t ns, std::string* out) {
    *out += std::to_string(ns / kNsPerSecond);
    const std::string micros = std::to_string(ns % kNsPerSecond / kNsPerUs);
    *out += '.';
    out->append(6 - micros.size(), '0');
    *out += micros;
  }

  HeldLines held_;
  AskedRequests asked_;
  const bool all_;
  uint64_t left_out_ = 0;
  std::string line_;
};

}  // namespace

std::unique_ptr<Exporter> MakeStraceExporter(OutputBuffer& out,
                                             const ExportOptions& options) {
  return std::make_unique<StraceExporter>(out, options);
}

}  // namespace tracefs
