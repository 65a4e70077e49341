#include "tracefs/tools/anon/anon.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "anonymize/session.h"
#include "filters/output/chain.h"
#include "tracefs/format/names.h"
#include "tracefs/format/trace_reader.h"
#include "tracefs/tools/anon/audit.h"
#include "tracefs/tools/anon/trace_rewriter.h"

namespace tracefs::anonymize {
namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(500);

std::string Megabytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

// A line on the terminal that is written over again and again.
class Progress {
 public:
  Progress(bool shown, uint64_t total_bytes)
      : shown_(shown && ::isatty(STDERR_FILENO) == 1),
        total_(total_bytes),
        begin_(std::chrono::steady_clock::now()),
        last_(begin_) {}

  void Show(const RewriteCounts& counts) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now - last_ < kProgressInterval) return;
    last_ = now;
    any_ = true;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    std::fprintf(stderr, "\r%s of %s, %.2f M messages/s   ",
                 Megabytes(counts.bytes_read).c_str(),
                 total_ == 0 ? "a pipe" : Megabytes(total_).c_str(),
                 static_cast<double>(counts.messages) / seconds / 1e6);
  }
  ~Progress() {
    if (any_) std::fputs("\r\033[K", stderr);
  }

 private:
  const bool shown_;
  const uint64_t total_;
  const std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point last_;
  bool any_ = false;
};

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

bool IsFolder(const std::string& path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

bool SameFile(const std::string& a, const std::string& b) {
  struct stat x;
  struct stat y;
  return ::stat(a.c_str(), &x) == 0 && ::stat(b.c_str(), &y) == 0 &&
         x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

// True if standard output goes to the end of the input: it would be changed,
// and never come to an end.
bool IsStdout(const std::string& input) {
  struct stat in;
  struct stat out;
  const int rc =
      input == "-" ? ::fstat(STDIN_FILENO, &in) : ::stat(input.c_str(), &in);
  return rc == 0 && S_ISREG(in.st_mode) && ::fstat(STDOUT_FILENO, &out) == 0 &&
         in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}

uint64_t SizeOf(const std::string& path) {
  struct stat st;
  if (path == "-" || ::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) {
    return 0;
  }
  return static_cast<uint64_t>(st.st_size);
}

Result<std::shared_ptr<KeyRing>> TraceKeys(const AnonOptions& options) {
  auto ring = std::make_shared<KeyRing>();
  const Status added =
      AddKeyArguments(options.trace_keys, "--trace-key", ring.get());
  if (!added.ok()) return added;
  return ring;
}

Status AddKeys(const AnonOptions& options, KeySet* keys) {
  return AddKeyArguments(options.keys, "--keys", keys);
}

// Where an input goes; an error if several would go to one place.
Result<std::string> OutputOf(const AnonOptions& options,
                             const std::string& input) {
  const bool folder = options.output != "-" && (IsFolder(options.output) ||
                                                options.output.back() == '/');
  if (!folder) {
    if (options.inputs.size() > 1) {
      return Status::Invalid(
          "several inputs need a folder to go to: " + options.output +
          " is none (blocks of different traces do not make one trace)");
    }
    if (options.output == "-" && IsStdout(input)) {
      return Status::Invalid("standard output is the input " + input +
                             ": choose another file");
    }
    if (options.output != "-" && SameFile(input, options.output)) {
      return Status::Invalid(options.output +
                             " is the input: it is never replaced; choose "
                             "another name");
    }
    return options.output;
  }
  if (input == "-") {
    return Status::Invalid("standard input needs the name of an output file");
  }
  std::string path = options.output;
  if (path.back() != '/') path += '/';
  path += BaseName(input);
  if (SameFile(input, path)) {
    return Status::Invalid(path +
                           " is the input: it is never replaced; choose "
                           "another folder");
  }
  return path;
}

Status RewriteAll(const AnonOptions& options, const PlanMaker& make_plan,
                  std::string* out) {
  const Result<std::shared_ptr<KeyRing>> ring = TraceKeys(options);
  if (!ring.ok()) return ring.status();
  MapTables maps;
  for (const std::string& input : options.inputs) {
    const Result<std::string> path = OutputOf(options, input);
    if (!path.ok()) return path.status();
    auto source = format::FdSource::Open(input, false);
    if (!source.ok()) return source.status().Prefixed(input);
    Result<OutputFile> file = OutputFile::Create(*path);
    if (!file.ok()) return file.status();
    RewriteCounts counts;
    {
      Progress progress(!options.quiet, SizeOf(input));
      RewriteOptions rewrite;
      rewrite.name = input;
      rewrite.threads = options.threads != 0
                            ? options.threads
                            : std::max(1U, std::thread::hardware_concurrency());
      rewrite.cache_entries = options.cache_entries;
      rewrite.salvage = options.salvage;
      rewrite.decoder = MakeDecoderFactory(*ring);
      rewrite.progress = [&progress](const RewriteCounts& c) {
        progress.Show(c);
      };
      if (Status s = RewriteTrace(*std::move(source), rewrite, make_plan, &maps,
                                  *file, &counts);
          !s.ok()) {
        return s;
      }
    }
    if (Status s = file->Commit(); !s.ok()) return s;
    if (options.quiet || *path == "-") continue;
    *out += *path + ": " + std::to_string(counts.operations) + " operations, " +
            Megabytes(counts.bytes_read) + " read, " +
            Megabytes(counts.bytes_written) + " written\n";
    if (counts.left_as_they_are != 0) {
      *out += "  " + std::to_string(counts.left_as_they_are) +
              " texts were no tokens of these keys and stayed as they were "
              "(kept by the policy, or of a part whose key is missing)\n";
    }
  }
  return Status::Ok();
}

Status Hide(const AnonOptions& options, std::string* out) {
  Result<Policy> policy = LoadPolicy(options.policy);
  if (!policy.ok()) return policy.status();
  KeySet keys;
  if (Status s = AddKeys(options, &keys); !s.ok()) return s;
  size_t planned = 0;
  return RewriteAll(
      options,
      [&](const format::SelfDescription& description) {
        auto plan = MakeHidePlan(*policy, keys, description);
        if (++planned == options.inputs.size()) keys.ForgetMaster();
        return plan;
      },
      out);
}

Status Reveal(const AnonOptions& options, std::string* out) {
  KeySet keys;
  if (Status s = AddKeys(options, &keys); !s.ok()) return s;
  size_t planned = 0;
  return RewriteAll(
      options,
      [&](const format::SelfDescription& description) {
        auto plan = MakeRevealPlan(options.reveal, keys, description);
        if (++planned == options.inputs.size()) keys.ForgetMaster();
        return plan;
      },
      out);
}

// What this version writes into every header.
format::SelfDescription OwnDescription() {
  format::SelfDescription description;
  const std::vector<std::byte> block = format::EncodeStartBlock({});
  (void)format::ReadStart(ByteSpan(block).subspan(format::kMessageHeaderBytes),
                          &description);
  return description;
}

Status Explain(const AnonOptions& options, std::string* out) {
  Result<Policy> policy = LoadPolicy(options.policy);
  if (!policy.ok()) return policy.status();
  KeySet keys;
  if (Status s = AddKeys(options, &keys); !s.ok()) return s;
  // Keys are not needed to explain.
  if (!keys.has_master()) keys.SetMaster(SecretKey());
  format::SelfDescription description = OwnDescription();
  if (!options.inputs.empty()) {
    const Result<std::shared_ptr<KeyRing>> ring = TraceKeys(options);
    if (!ring.ok()) return ring.status();
    const std::string& name = options.inputs.front();
    auto source = format::FdSource::Open(name, false);
    if (!source.ok()) return source.status().Prefixed(name);
    format::TraceReaderOptions reader_options;
    reader_options.name = name;
    reader_options.decoder = MakeDecoderFactory(*ring);
    std::string why;  // the header could not be read
    bool undecodable = false;
    reader_options.report = [&](const format::Report& report) {
      if (why.empty()) why = report.Text();
      undecodable |= report.kind == format::ReportKind::kUndecodable;
    };
    format::TraceReader reader(*std::move(source), std::move(reader_options));
    std::unique_ptr<format::BlockDecoder> block;
    const auto step = reader.NextBlock(&block);
    if (!step.ok()) return step.status().Prefixed(name);
    if (block == nullptr || reader.stats().no_header) {
      const std::string text = name + ": its header cannot be read: " + why;
      return undecodable ? Status::Invalid(text) : Status::Corrupt(text);
    }
    description = reader.description();
  } else {
    description.has_clock = true;
  }
  const auto plan = MakeHidePlan(*policy, keys, description);
  if (!plan.ok()) return plan.status();
  *out += (*plan)->Explain();
  return Status::Ok();
}

}  // namespace

Status RunAnon(const AnonOptions& options, std::string* out) {
  switch (options.mode) {
    case AnonOptions::Mode::kHide:
      return Hide(options, out);
    case AnonOptions::Mode::kReveal:
      return Reveal(options, out);
    case AnonOptions::Mode::kExplain:
      return Explain(options, out);
    case AnonOptions::Mode::kAudit: {
      const Result<std::shared_ptr<KeyRing>> ring = TraceKeys(options);
      if (!ring.ok()) return ring.status();
      Result<Policy> policy = Policy();
      if (!options.policy.empty()) {
        policy = LoadPolicy(options.policy);
        if (!policy.ok()) return policy.status();
      }
      return Audit({.trace = options.audit,
                    .original = options.against,
                    .policy = options.policy.empty() ? nullptr : &*policy,
                    .quasi = options.quasi,
                    .ok_words = options.ok_words,
                    .decoder = MakeDecoderFactory(*ring)},
                   out);
    }
  }
  return Status::Ok();
}

}  // namespace tracefs::anonymize
