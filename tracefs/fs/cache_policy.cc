#include "tracefs/fs/cache_policy.h"

#include <cstdio>

namespace tracefs {
namespace {

constexpr double kWideTimeout = 3600;
constexpr double kUntracedTimeout = 1.0;
// Several requests of one path walk become one; the smallest unit the kernel
// knows is a jiffy (linux/fs/fuse/dir.c, fuse_time_to_jiffies).
constexpr double kNarrowTimeout = 0.010;

std::string Seconds(double seconds) {
  if (seconds == 0) return "not kept";
  char text[48];
  if (seconds < 1) {
    std::snprintf(text, sizeof text, "kept for %.0f ms", seconds * 1000);
  } else {
    std::snprintf(text, sizeof text, "kept for %.0f s", seconds);
  }
  return text;
}

}  // namespace

double CachePolicy::EntryTimeout() const {
  if (visibility_ == Visibility::kExact) return 0;
  if (visibility_ == Visibility::kFast) return kWideTimeout;
  return Traced(Op::lookup_) ? kNarrowTimeout : kUntracedTimeout;
}

bool CachePolicy::TracesAny() const {
  for (size_t op = 0; op < kOpCount; ++op) {
    if (Traced(static_cast<Op>(op))) return true;
  }
  return false;
}

double CachePolicy::NegativeTimeout() const {
  // A name made below would stay invisible for that long.
  if (visibility_ == Visibility::kExact) return 0;
  if (visibility_ == Visibility::kFast) return kUntracedTimeout;
  return Traced(Op::lookup_) ? 0 : kNarrowTimeout;
}

double CachePolicy::AttrTimeout(mode_t mode) const {
  // A write clears set-user-id below; the kernel must not run the file with the
  // mode that it remembers (tests/mount: exec right after write).
  if (S_ISREG(mode) && (mode & (S_ISUID | S_ISGID)) != 0) return 0;
  if (visibility_ == Visibility::kExact) return 0;
  if (visibility_ == Visibility::kFast) return kWideTimeout;
  return Traced(Op::getattr_) || Traced(Op::statx_) ? kNarrowTimeout
                                                    : kUntracedTimeout;
}

CachePolicy::DataInterest CachePolicy::DataOf(Event& event) const {
  if (visibility_ == Visibility::kExact) return {.calls = true, .pages = true};
  const auto may_record = [&](uint64_t mapped) {
    event.Set(Field::kMapped, mapped);
    for (const Op op : {Op::read_, Op::write_}) {
      event.op = op;
      if (sink_.MayRecord(event)) return true;
    }
    return false;
  };
  return {.calls = may_record(0), .pages = may_record(1)};
}

bool CachePolicy::MayLookUpAhead() const {
  if (visibility_ == Visibility::kExact) return false;
  if (visibility_ == Visibility::kFast) return true;
  return !Traced(Op::lookup_) && !Traced(Op::getattr_);
}

bool CachePolicy::MayCacheListings() const {
  // The kernel compares the directory's mtime, which is too coarse to notice
  // every change below.
  return visibility_ == Visibility::kFast;
}

std::vector<CachePolicy::Choice> CachePolicy::Explain() const {
  const auto traced = [&](std::initializer_list<Op> ops) {
    std::vector<Op> found;
    for (const Op op : ops) {
      if (Traced(op)) found.push_back(op);
    }
    return found;
  };
  std::vector<Choice> choices;
  choices.push_back({"names", Seconds(EntryTimeout()), traced({Op::lookup_}),
                     EntryTimeout() > 0
                         ? "lookups of a name within that time, but for files "
                           "with several"
                         : ""});
  choices.push_back({"missing names", Seconds(NegativeTimeout()),
                     traced({Op::lookup_}),
                     NegativeTimeout() > 0
                         ? "lookups of a name that is not there, and for as "
                           "long a file made below the mount"
                         : ""});
  choices.push_back(
      {"attributes", Seconds(AttrTimeout(S_IFREG)),
       traced({Op::getattr_, Op::statx_}),
       AttrTimeout(S_IFREG) > 0 ? "getattrs of a file within that time" : ""});
  Event of_some_file;
  const DataInterest data = DataOf(of_some_file);
  const IoMode mode = ModeFor(data, passthrough_ && !data.pages);
  // Files that a filter excludes are opened as if nothing was recorded.
  const bool some_pass = passthrough_ && data.any();
  static constexpr const char* kModes[] = {
      "page cache of the mount, written through",
      "each one a request (direct I/O)",
      "done by the kernel on the backing file (passthrough)",
      "each one a request (direct I/O)"};
  std::string choice = kModes[static_cast<int>(mode)];
  if (some_pass)
    choice += ", on files no filter excludes; the rest passthrough";
  choices.push_back(
      {"reads and writes", choice, traced({Op::read_, Op::write_}),
       mode == IoMode::kPassthrough ? "all reads and writes"
       : mode == IoMode::kCached    ? "reads that the page cache answers"
                                    : ""});
  const bool seen = mode == IoMode::kDirect || mode == IoMode::kCached;
  choices.push_back(
      {"mapped files",
       seen ? "through the page cache of the mount: pages come and go as "
              "requests, also those of programs"
            : "the backing file itself (passthrough)",
       data.pages ? traced({Op::read_, Op::write_}) : std::vector<Op>(),
       seen ? "loads and stores of pages that are there" : "all mapped I/O"});
  choices.push_back({"close",
                     NeedsFlush() ? "each one a request (flush)"
                                  : "not told, but for the last "
                                    "one of a file (release)",
                     traced({Op::flush_}), NeedsFlush() ? "" : "flushes"});
  choices.push_back({"listings",
                     MayCacheListings() ? "kept while the directory is "
                                          "unchanged"
                                        : "not kept",
                     traced({Op::readdir_}),
                     MayCacheListings() ? "repeated readdirs" : ""});
  choices.push_back({"names in listings",
                     MayLookUpAhead() ? "looked up together (readdirplus)"
                                      : "looked up one by one",
                     traced({Op::lookup_, Op::getattr_}),
                     MayLookUpAhead() ? "lookups after a readdir" : ""});
  return choices;
}

}  // namespace tracefs
