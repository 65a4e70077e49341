#include "tracefs/tools/verify/verify.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "filters/output/chain.h"
#include "tracefs/base/hex.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/command/progress.h"
#include "tracefs/command/wait_for_writers.h"
#include "tracefs/format/marks.h"
#include "tracefs/reader/trace_set.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/verify/own_account.h"
#include "tracefs/tools/verify/part_check.h"
#include "tracefs/tools/verify/trace_judge.h"

namespace tracefs {
namespace {

using format::ReadStep;

constexpr char kCommand[] = "tracefs-verify: ";
constexpr size_t kMaxAnchorLine = 64 * 1024;

// One file or pipe, opened and read up to its first frame. The reading library
// gives its frames as they stand: what undoing the chain tells of keys and tags
// beside the messages is what is judged here, and the library keeps it to
// itself.
struct Input {
  using Sink = std::function<void(Input&, const format::Report&)>;

  Input(std::string of, Sink report)
      : name(std::move(of)),
        traces({.decoder =
                    [](const format::Preamble&) {
                      return format::MakePlainDecoder({});
                    },
                .sinks =
                    [this, report = std::move(report)](size_t) {
                      return reader::TraceSinks{
                          .report = [this, report](const format::Report& r) {
                            report(*this, r);
                          }};
                    }}) {}
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  format::TraceReader& trace() { return traces.trace(0); }
  format::FrameReader& frames() { return trace().frames(); }
  const format::Serial& serial() { return trace().preamble().serial; }

  const std::string name;
  reader::TraceSet traces;
};

// The files of one trace.
struct Group {
  format::Serial serial{};
  std::vector<std::string> names;
  std::map<std::string, std::unique_ptr<Input>> kept;
};

class Verifier {
 public:
  Verifier(const VerifyOptions& options, OutputBuffer& out, OutputBuffer& err)
      : options_(options), out_(out), err_(err) {}

  int Run() {
    if (Status s = Prepare(); !s.ok()) return Complain(s);
    if (options_.wait) {
      const auto tell = [this](const std::string& text) {
        Note(text);
        static_cast<void>(err_.Flush());
      };
      WaitForWriters(options_.traces, tell, /*stop=*/nullptr);
    }
    std::vector<std::string> files;
    for (const std::string& name : options_.traces) {
      if (Status s = AddFiles(name, &files); !s.ok()) Complain(s);
    }
    progress_.emplace(files);
    // Rotated files are parts of one trace: they have its serial.
    std::vector<Group> groups;
    for (const std::string& file : files) {
      std::unique_ptr<Input> input = Open(file);
      if (input == nullptr) continue;
      const auto found = std::find_if(
          groups.begin(), groups.end(),
          [&](const Group& group) { return group.serial == input->serial(); });
      Group& group = found == groups.end() ? groups.emplace_back() : *found;
      group.serial = input->serial();
      group.names.push_back(file);
      // A pipe can be read only once; of files, not too many are kept open.
      struct stat st;
      const bool regular =
          file != "-" && ::stat(file.c_str(), &st) == 0 && S_ISREG(st.st_mode);
      if (!regular) group.kept[file] = std::move(input);
    }
    for (Group& group : groups) JudgeGroup(group);
    progress_.reset();
    CompareEpochs();
    CompareAnchors(groups);
    if (Status s = out_.Flush(); !s.ok()) return Complain(s);
    (void)err_.Flush();
    return exit_status_;
  }

 private:
  int Complain(const Status& status) {
    if (progress_) progress_->Hide();
    err_.Append(kCommand + status.message() + "\n");
    (void)err_.Flush();
    exit_status_ = std::max(exit_status_, ExitStatus(status));
    return exit_status_;
  }
  void Note(const std::string& text) { err_.Append(kCommand + text + "\n"); }

  Status Prepare() {
    if (Status s = AddKeyArguments(options_.keys, "--key", &keys_); !s.ok()) {
      return s;
    }
    for (const std::string& name : options_.anchors) {
      if (Status s = ReadAnchors(name); !s.ok()) return s;
    }
    if (!options_.serial.empty() && !FromHex(options_.serial, wanted_serial_)) {
      return Status::Invalid("--serial: 32 hexadecimal digits are needed");
    }
    return Status::Ok();
  }

  Status ReadAnchors(const std::string& name) {
    auto source = format::FdSource::Open(name, /*follow=*/false);
    if (!source.ok()) return source.status().Prefixed(TerminalWord(name));
    std::string text;
    std::vector<std::byte> part(64 * 1024);
    const size_t before = anchors_.size();
    for (;;) {
      const Result<size_t> n = (*source)->Read(part);
      if (!n.ok()) return n.status().Prefixed(TerminalWord(name));
      text += AsText(ByteSpan(part).first(*n));
      size_t end;
      while ((end = text.find('\n')) != text.npos) {
        AddAnchor(std::string_view(text).substr(0, end));
        text.erase(0, end + 1);
      }
      if (*n == 0) break;
      if (text.size() > kMaxAnchorLine) text.clear();  // no anchor is so long
    }
    AddAnchor(text);
    if (anchors_.size() == before) {
      return Status::Invalid(TerminalWord(name) + ": there is no anchor in it");
    }
    return Status::Ok();
  }

  void AddAnchor(std::string_view line) {
    if (const auto anchor = ParseAnchor(line)) anchors_.push_back(*anchor);
  }

  std::unique_ptr<Input> Open(const std::string& name) {
    auto input = std::make_unique<Input>(
        name, [this](Input& from, const format::Report& report) {
          Hear(from, report);
        });
    if (Status s = input->traces.AddTrace({name, {name}}); !s.ok()) {
      Complain(s);
      return nullptr;
    }
    input->frames().TakeAnyOrder();
    const Result<ReadStep> step = input->trace().ReadPreamble();
    if (!step.ok()) {
      Complain(step.status().Prefixed(TerminalWord(name)));
      return nullptr;
    }
    return input;
  }

  // What the reader of frames finds wrong. Before a judge is there it is about
  // the preamble, which the judge is told of in another way.
  void Hear(Input& input, const format::Report& report) {
    if (judge_ == nullptr) return;
    if (report.offset == 0 && input.trace().stats().preamble_damaged) return;
    if (report.kind == format::ReportKind::kDamaged ||
        report.kind == format::ReportKind::kCut) {
      judge_->AddDamage(report.offset, report.count,
                        report.kind == format::ReportKind::kCut);
    }
  }

  // The files of one trace, in the order of their blocks.
  void JudgeGroup(Group& group) {
    std::vector<std::pair<uint64_t, std::string>> by_number;
    for (const std::string& name : group.names) {
      uint64_t first = 0;
      if (group.names.size() > 1 && group.kept.count(name) == 0) {
        first = FirstNumber(name);
      }
      by_number.emplace_back(first, name);
    }
    std::sort(by_number.begin(), by_number.end());
    std::vector<std::unique_ptr<Input>> inputs;
    std::vector<Input*> pointers;
    for (const auto& [first, name] : by_number) {
      const auto kept = group.kept.find(name);
      inputs.push_back(kept == group.kept.end() ? Open(name)
                                                : std::move(kept->second));
      if (inputs.back() == nullptr) return;
      pointers.push_back(inputs.back().get());
    }
    Judge(pointers);
  }

  // The number of the first block but block 0, which each part has.
  uint64_t FirstNumber(const std::string& name) {
    const auto input = Open(name);
    if (input == nullptr) return 0;
    format::Frame frame;
    for (;;) {
      const Result<ReadStep> step = input->frames().Next(&frame);
      if (!step.ok() || *step != ReadStep::kItem) return 0;
      if (frame.header.sequence != 0) return frame.header.sequence;
    }
  }

  void Judge(const std::vector<Input*>& inputs) {
    Input& first = *inputs.front();
    const std::string chain_text = options_.chain.empty()
                                       ? first.frames().preamble().chain
                                       : options_.chain;
    if (!keys_.can_verify() && keys_.identities().empty() &&
        NeedsKey(chain_text)) {
      Complain(Status::Invalid(
          TerminalWord(first.name) +
          " is protected with a key; name the file that holds it with --key"));
      return;
    }
    Result<ChainDecoder> chain = ChainDecoder::Create(chain_text, &keys_);
    if (!chain.ok()) {
      Complain(chain.status().Prefixed(TerminalWord(first.name)));
      return;
    }
    TraceJudge judge({.keys = &keys_,
                      .unfinished = options_.unfinished,
                      .anchors = anchors_,
                      .anchors_wanted = !options_.anchors.empty()},
                     first.serial());
    judge_ = &judge;
    PartCheck parts;
    OwnAccount account;
    for (Input* input : inputs) {
      if (!JudgeFrames(*input, *chain, judge, parts, account)) {
        judge_ = nullptr;
        return;
      }
    }
    judge_ = nullptr;
    std::string name = TerminalWord(first.name);
    if (inputs.size() > 1) {
      name += " and " + std::to_string(inputs.size() - 1) + " more";
    }
    std::vector<JudgedRange> findings = judge.Judge();
    parts.AddTo(&findings);
    if (!options_.accept_losses) account.AddTo(&findings);
    if (parts.snapshot()) {
      Note(name +
           ": a snapshot of a flight recorder; blocks that were overwritten "
           "are told as missing");
    }
    Print(name, first.serial(), judge, std::move(findings));
  }

  bool JudgeFrames(Input& input, ChainDecoder& chain, TraceJudge& judge,
                   PartCheck& parts, OwnAccount& account) {
    judge.BeginFile(input.frames().preamble_bytes(),
                    input.trace().stats().preamble_damaged);
    parts.BeginFile();
    for (;;) {
      progress_->Tell(judged_bytes_ + input.trace().stats().bytes);
      format::Frame frame;
      const Result<ReadStep> step = input.frames().Next(&frame);
      if (!step.ok()) {
        Complain(step.status().Prefixed(TerminalWord(input.name)));
        return false;
      }
      if (*step != ReadStep::kItem) {
        judge.SetWriterLives(input.frames().WriterLives());
        judged_bytes_ += input.trace().stats().bytes;
        return true;
      }
      const BlockId id{.serial = frame.header.serial,
                       .sequence = frame.header.sequence};
      BlockNotes notes;
      ByteSpan block;
      if (parts.Add(frame.header, frame.payload)) continue;
      const Status decoded =
          frame.header.kind ==
                  static_cast<uint16_t>(format::FrameKind::kMessages)
              ? chain.Decode(id, frame.payload, &notes, &block)
              : Status::Corrupt("a frame of the unknown kind " +
                                std::to_string(frame.header.kind));
      judge.AddFrame(id, frame.offset, frame.header.crc, decoded, notes,
                     decoded.ok() && account.Add(block));
    }
  }

  void Print(const std::string& name, const format::Serial& serial,
             const TraceJudge& judge, std::vector<JudgedRange> findings) {
    uint64_t counts[4] = {};
    if (!options_.serial.empty() && serial != wanted_serial_) {
      findings.push_back({.trust = Trust::kBad,
                          .has_numbers = false,
                          .why = "this is trace " + Hex(serial) +
                                 ", another one than was asked for"});
    }
    for (const JudgedRange& finding : findings) {
      uint64_t& count = counts[static_cast<size_t>(finding.trust)];
      if (!finding.by_own_account) {
        count += finding.has_numbers ? finding.last - finding.first + 1 : 1;
      }
      if (IsFault(finding.trust)) {
        exit_status_ = std::max(exit_status_, 1);
      } else if (options_.quiet) {
        continue;
      }
      std::string line(TrustWord(finding.trust));
      line.resize(9, ' ');
      line += name + "  ";
      if (finding.has_numbers) {
        line += std::to_string(finding.first);
        if (finding.last != finding.first) {
          line += '-' + std::to_string(finding.last);
        }
      } else {
        line += '-';
      }
      if (!finding.why.empty()) line += "  " + finding.why;
      out_.Append(line + "\n");
    }
    if (!options_.quiet) {
      PrintSeal(name, serial, judge);
      PrintProof(name, counts);
    }
    if (const auto& seal = judge.seal(); seal && seal->forward) {
      epochs_[{seal->key_id, seal->epoch}].push_back({serial, name});
    }
  }

  void PrintSeal(const std::string& name, const format::Serial& serial,
                 const TraceJudge& judge) {
    std::string text = "trace    " + name + "  serial " + Hex(serial);
    if (const auto& seal = judge.seal()) {
      text += ", " + std::string(ChecksumName(seal->algorithm));
      if (seal->forward) text += ", epoch " + std::to_string(seal->epoch);
      if (seal->algorithm != ChecksumAlgorithm::kCrc32c) {
        text += ", key " + KeyIdText(seal->key_id);
      }
      if (seal->has_signature)
        text += ", signed by " + KeyIdText(seal->sign_id);
    }
    out_.Append(text + "\n");
  }

  // A user who names keys or anchors expects a seal: a trace that lost it was
  // changed. Without them the question is whether it is damaged.
  bool IsFault(Trust trust) const {
    if (trust != Trust::kUnsealed) return trust != Trust::kOk;
    return !options_.accept_unsealed &&
           !(options_.keys.empty() && options_.anchors.empty());
  }

  // What the verdicts on an unsealed trace prove, and what they do not.
  void PrintProof(const std::string& name, const uint64_t (&counts)[4]) {
    const auto count = [&](Trust trust) {
      return counts[static_cast<size_t>(trust)];
    };
    if (count(Trust::kUnsealed) == 0) return;
    std::string text = "proof    " + name + "  ";
    if (count(Trust::kBad) + count(Trust::kMissing) == 0) {
      text += options_.unfinished
                  ? "checksums match and no block is missing so far"
                  : "checksums match and no block is missing";
      text += ": no accidental damage; ";
    }
    out_.Append(text +
                "not sealed: nothing says who wrote it, or that it was not "
                "changed on purpose\n");
  }

  // No epoch seals two traces; one that is not there may be a trace that was
  // removed, or that never began.
  void CompareEpochs() {
    const std::pair<KeyId, uint64_t>* before = nullptr;
    for (const auto& [epoch, users] : epochs_) {
      for (size_t i = 1; i < users.size(); ++i) {
        exit_status_ = std::max(exit_status_, 1);
        out_.Append("bad      " + users[i].second + "  -  has the epoch of " +
                    users[0].second +
                    ": the sealing state was copied or set back\n");
      }
      if (before != nullptr && before->first == epoch.first &&
          before->second + 1 < epoch.second) {
        Note("note: epochs " + std::to_string(before->second + 1) + " to " +
             std::to_string(epoch.second - 1) + " of key " +
             KeyIdText(epoch.first) +
             " are not among these traces: removed, elsewhere, or never begun");
      }
      before = &epoch;
    }
  }

  // Nor is a trace known by its anchors alone a fault: a log has those of many,
  // which may be elsewhere. But nothing else tells that it is gone.
  void CompareAnchors(const std::vector<Group>& groups) {
    std::set<format::Serial> absent;
    for (const Anchor& anchor : anchors_) absent.insert(anchor.serial);
    for (const Group& group : groups) absent.erase(group.serial);
    if (absent.empty()) return;
    constexpr size_t kTold = 3;
    std::string text = "note: anchors name ";
    text += absent.size() == 1
                ? "a trace that is"
                : std::to_string(absent.size()) + " traces that are";
    text += " not among these, removed or elsewhere: serial ";
    size_t told = 0;
    for (const format::Serial& serial : absent) {
      if (told == kTold) {
        text += " and others";
        break;
      }
      text += (told++ == 0 ? "" : ", ") + Hex(serial);
    }
    Note(text);
  }

  struct EpochUser {
    format::Serial first;
    std::string second;
  };

  const VerifyOptions& options_;
  OutputBuffer& out_;
  OutputBuffer& err_;
  KeyRing keys_;
  std::vector<Anchor> anchors_;
  format::Serial wanted_serial_{};
  std::map<std::pair<KeyId, uint64_t>, std::vector<EpochUser>> epochs_;
  TraceJudge* judge_ = nullptr;
  std::optional<Progress> progress_;  // while frames are judged
  uint64_t judged_bytes_ = 0;         // of files that are done
  int exit_status_ = 0;
};

}  // namespace

int Verify(const VerifyOptions& options, OutputBuffer& out, OutputBuffer& err) {
  return Verifier(options, out, err).Run();
}

}  // namespace tracefs
