// Headline: one or two sentences that answer why somebody made a trace, and
// what could be saved, most first. The end of tracefs-run, the question
// `summary` and the page begin with it, and say the same.
//
// It says what operations and process records tell, and nothing else: what is
// not known is not said.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/event/process_record.h"
#include "tracefs/format/record.h"
#include "tracefs/headline/covered_time.h"

namespace tracefs {

// Operations of one kind that took time which others may not need.
struct Saving {
  uint64_t time_ns = 0;  // of them all: no more than that can be saved
  uint64_t count = 0;
  std::string what;     // "were lookups of names that do not exist"
  std::string command;  // that shows more
};

struct HeadlineText {
  std::string sentences;
  std::vector<Saving> findings;  // at most Headline::kMostFindings
  // Of these two it speaks; 0: not known.
  uint64_t elapsed_ns = 0;
  uint64_t covered_ns = 0;  // of it with an operation running
};

// What the traces themselves do not tell.
struct HeadlineFacts {
  // Nothing: from the first to the last that was recorded.
  std::optional<uint64_t> elapsed_ns = std::nullopt;
  // What was asked with, for the commands that show more: traces, options but
  // for --filter ("--key", "file:k"), and that filter. Printed quoted.
  std::vector<std::string> traces = {};
  std::vector<std::string> options = {};
  std::string filter = {};
  // What leaves operations out: "--filter"; empty: nothing does.
  std::string narrowed_by = {};
};

// Used by one thread.
class Headline {
 public:
  static constexpr size_t kMostFindings = 5;
  static constexpr size_t kMostFolders = 256;  // that are told apart
  static constexpr size_t kKinds = 6;

  // An operation, in order of time or nearly so.
  void Add(const format::Record& record);
  // What happened to a process; `mount_point` is the directory that was traced.
  void AddProcess(const ProcessRecord& record, std::string_view mount_point);

  HeadlineText Finish(std::span<const format::TraceContext* const> traces,
                      const HeadlineFacts& facts = {}) const;

 private:
  struct Kind {
    uint64_t count = 0;
    uint64_t time_ns = 0;
  };

  void Saw(uint64_t real_ns, uint64_t length_ns);
  uint64_t ElapsedNs(const HeadlineFacts& facts) const;
  // `several`: what is told is not one run, but lies between the first and the
  // last of several traces.
  std::string TimeText(const HeadlineFacts& facts, bool several) const;
  std::string ElsewhereText() const;
  std::vector<Saving> Savings(const HeadlineFacts& facts) const;

  uint64_t count_ = 0;
  uint64_t time_ns_ = 0;
  CoveredTime covered_;
  uint64_t first_ns_ = UINT64_MAX;
  uint64_t last_ns_ = 0;
  bool processes_told_ = false;
  std::array<Kind, kKinds> kinds_{};
  uint64_t programs_ = 0;   // that were run, and are known
  uint64_t elsewhere_ = 0;  // of them, outside the directory that was traced
  std::string traced_;      // that directory
  bool several_ = false;    // several are traced
  std::map<std::string, uint64_t, std::less<>> folders_;
};

// How much of the time elapsed an operation was running: "1.4 %".
std::string CoveredText(uint64_t covered_ns, uint64_t elapsed_ns);

// The directory that a trace is of; empty if it does not say.
std::string_view MountPointOf(const format::TraceContext& trace);

}  // namespace tracefs
