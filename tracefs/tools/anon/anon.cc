#include "tracefs/tools/anon/anon.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "anonymize/session.h"
#include "tracefs/base/join.h"
#include "tracefs/command/progress.h"
#include "tracefs/format/names.h"
#include "tracefs/reader/trace_set.h"
#include "tracefs/text/units.h"
#include "tracefs/tools/anon/audit.h"
#include "tracefs/tools/anon/trace_rewriter.h"

namespace tracefs::anonymize {
namespace {

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
    reader::TraceSet traces({.keys = *ring});
    if (Status s = traces.AddTrace({input, {input}}); !s.ok()) return s;
    Result<OutputFile> file = OutputFile::Create(*path);
    if (!file.ok()) return file.status();
    RewriteCounts counts;
    {
      Progress progress(options.quiet ? std::vector<std::string>()
                                      : std::vector<std::string>{input});
      RewriteOptions rewrite;
      rewrite.name = input;
      rewrite.threads = options.threads != 0
                            ? options.threads
                            : std::max(1U, std::thread::hardware_concurrency());
      rewrite.cache_entries = options.cache_entries;
      rewrite.salvage = options.salvage;
      rewrite.progress = [&progress](const RewriteCounts& c) {
        progress.Tell(c.bytes_read);
      };
      if (Status s = RewriteTrace(&traces.trace(0), rewrite, make_plan, &maps,
                                  *file, &counts);
          !s.ok()) {
        return s;
      }
    }
    if (Status s = file->Commit(); !s.ok()) return s;
    if (options.quiet || *path == "-") continue;
    *out += *path + ": " + std::to_string(counts.operations) + " operations, " +
            SizeText(counts.bytes_read) + " read, " +
            SizeText(counts.bytes_written) + " written\n";
    if (!counts.left_out.empty()) {
      *out += "  without the " + JoinWords(counts.left_out, " and ") +
              " of the original: nothing is sealed or encrypted here\n";
    }
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
    std::string why;  // the header could not be read
    bool undecodable = false;
    const auto note = [&](const format::Report& report) {
      if (why.empty()) why = report.Text();
      undecodable |= report.kind == format::ReportKind::kUndecodable;
    };
    reader::TraceSet traces({.keys = *ring, .sinks = [&](size_t) {
                               return reader::TraceSinks{.report = note};
                             }});
    if (Status s = traces.AddTrace({name, {name}}); !s.ok()) return s;
    if (Status s = traces.ReadFirst(0); !s.ok()) return s.Prefixed(name);
    const format::TraceReader& reader = traces.trace(0);
    if (reader.stats().blocks == 0 || reader.stats().no_header) {
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
                    .how = {.keys = *ring}},
                   out);
    }
  }
  return Status::Ok();
}

}  // namespace tracefs::anonymize
