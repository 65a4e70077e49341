#include "tracefs/mount/explain.h"

#include <array>
#include <cstdio>
#include <initializer_list>

#include "tracefs/base/clock.h"
#include "tracefs/base/join.h"
#include "tracefs/base/kernel_version.h"
#include "tracefs/mount/kernel_promises.h"
#include "tracefs/mount/options.h"
#include "tracefs/mount/request_memory.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/units.h"

namespace tracefs {
namespace {

std::vector<ExplainedChoice::Cause> CausesOf(const Pipeline& pipeline,
                                             const std::vector<Op>& ops) {
  std::vector<ExplainedChoice::Cause> causes;
  for (const Op op : ops) {
    for (Interested& who : pipeline.WhoWants(op)) {
      causes.push_back({op, std::move(who)});
    }
  }
  return causes;
}

// Why the policy made a choice that no tracer forced.
std::string Why(const CachePolicy::Choice& choice, const CachePolicy& policy) {
  std::string why;
  if (policy.visibility() != Visibility::kAuto) {
    why = std::string("--visibility ") + VisibilityName(policy.visibility());
  } else if (choice.forced_by.empty() && !choice.hides.empty()) {
    why = "no tracer can record what it hides";
  } else if (choice.forced_by.empty() && choice.subject == "close") {
    why = "closing does something in the backing file system, or ends locks";
  } else if (choice.subject == "listings") {
    why = "the kernel would not notice every change below the mount";
  }
  const bool data = choice.subject == "reads and writes";
  if (data && !policy.passthrough() &&
      policy.visibility() != Visibility::kExact) {
    if (!why.empty()) why += "; ";
    why +=
        "passthrough cannot be had: it takes root, Linux 6.9, libfuse 3.17 and "
        "a backing file system that is not stacked itself and asks no server";
  }
  return why;
}

ExplainedChoice Locks(const FileSystem& fs, const Pipeline& pipeline) {
  constexpr const char* kApart =
      "; either way they exclude none that is taken in the source, past the "
      "mount";
  ExplainedChoice locks;
  locks.subject = "locks";
  locks.for_good = true;
  if (fs.options().forward_locks) {
    locks.choice = "each one a request (getlk, setlk, flock)";
    locks.causes = CausesOf(pipeline, OpsOf(OpFamily::kLock));
    locks.why =
        std::string("a filter named a lock operation when the mount began") +
        kApart;
    return locks;
  }
  locks.choice = "kept by the kernel alone";
  locks.why =
      std::string("no filter named a lock operation when the mount began") +
      kApart;
  locks.hides = "getlk, setlk and flock";
  return locks;
}

ExplainedChoice OpenFiles(const FileSystem& fs) {
  const UserShares& files = fs.open_files();
  ExplainedChoice choice;
  choice.subject = "open files of a user";
  choice.choice = "at most " + std::to_string(files.largest_share()) +
                  " that the daemon has to hold (" +
                  std::to_string(files.used()) + " are open, " +
                  std::to_string(files.refused()) + " were refused)";
  choice.why = "the hard limit of open files, less what look-ups and root need";
  choice.for_good = true;
  return choice;
}

// The measurements for each operation that has waited.
std::string WaitFigures(const WaitRules& waits) {
  std::string text;
  waits.ForEach([&](std::string_view name, const WaitRule& rule) {
    if (rule.waited_here() + rule.handed_over() == 0) return;
    AppendWord(name, "; ", &text);
    text += " " + DurationText(rule.longest_ns()) + " at most, " +
            std::to_string(rule.waited_here()) + " waited in a queue, " +
            std::to_string(rule.handed_over()) + " in threads";
    if (rule.changes() != 0) {
      text += " since " + std::to_string(rule.changes()) + " changes";
    }
  });
  return text;
}

ExplainedChoice Waits(const FileSystem& fs) {
  const SidePool& pool = fs.side_pool();
  ExplainedChoice choice;
  choice.subject = "waits below";
  if (fs.may_hang_below()) {
    choice.choice = "each request in a thread of its own";
    choice.why = "the file system below asks a server, which may not answer";
  } else {
    fs.waits().ForEach([&](std::string_view name, const WaitRule& rule) {
      if (rule.hands_over()) choice.choice += std::string(name) + ", ";
    });
    choice.choice += "leases in threads of their own";
    choice.why = "by how long requests took lately";
  }
  choice.choice += ", at most " + std::to_string(pool.capacity()) + ", " +
                   std::to_string(pool.share_of_a_user()) +
                   " of one user, and " + std::to_string(pool.room_aside()) +
                   " more wait for one (" + std::to_string(pool.running()) +
                   " run, " + std::to_string(pool.aside()) + " wait, " +
                   std::to_string(pool.refused()) + " were refused)";
  if (const std::string figures = WaitFigures(fs.waits()); !figures.empty()) {
    choice.why += ": " + figures;
  }
  return choice;
}

ExplainedChoice Privileges(const FileSystem& fs) {
  ExplainedChoice choice;
  choice.subject = "set-user-id and set-group-id on write";
  choice.for_good = true;
  if (fs.told_of_privileged_writes()) {
    choice.choice = "told with the write that clears them (KILLPRIV_V2)";
    choice.why = "saves a getxattr with every write";
  } else {
    choice.choice = "asked for with each write (getxattr)";
    choice.why = "libfuse before 3.18.3, or a kernel without KILLPRIV_V2";
  }
  return choice;
}

ExplainedChoice Queues(const TransportChoice& transport) {
  const QueueMemory memory = MemoryOfQueues(transport.queue_depth);
  constexpr uint64_t kMiB = 1 << 20;
  ExplainedChoice choice;
  choice.subject = "queues";
  choice.choice = std::to_string(memory.queues) + " of " +
                  std::to_string(transport.queue_depth) + " requests, " +
                  std::to_string(memory.bytes_at_most / kMiB) +
                  " MiB each at most; taken as requests come, and kept";
  choice.why =
      "the kernel uses io_uring once there is one for each processor that the "
      "machine may have";
  choice.for_good = true;
  return choice;
}

ExplainedChoice Memory(const TransportChoice& transport) {
  ExplainedChoice choice;
  choice.subject = "memory of requests";
  choice.choice =
      "1 MiB or less for each of " + std::to_string(transport.readers) +
      " threads that read, " + std::to_string(transport.max_waiting) +
      " that serve what waits, and " + SizeText(transport.waiting_bytes) +
      " for what waits for these";
  choice.why = (transport.machine.limited ? "the limit of its control group: "
                                          : "the machine's memory: ") +
               SizeText(transport.machine.memory_bytes);
  choice.for_good = true;
  return choice;
}

ExplainedChoice Survival(const FileSystem& fs) {
  ExplainedChoice choice;
  choice.subject = "death of the daemon";
  choice.for_good = true;
  choice.why =
      std::string("--survive ") + (fs.area() != nullptr ? "yes" : "no");
  choice.choice =
      fs.area() != nullptr
          ? "another takes its place: no caller sees an error, no operation "
            "that was answered is missing from a trace; of those that are only "
            "counted the last quarter of a second is lost, and told"
          : "callers get errors and the mount is taken away, or stays shut; "
            "traces lack what was in memory";
  return choice;
}

ExplainedChoice Kernel() {
  const std::string release = KernelRelease();
  ExplainedChoice choice;
  choice.subject = "kernel";
  choice.choice = "Linux " + release;
  choice.why = KernelLacks(release);
  if (choice.why.empty()) choice.why = "it lacks nothing that is promised";
  choice.for_good = true;
  return choice;
}

ExplainedChoice Symlinks(const FileSystem& fs) {
  const bool kept = fs.policy().visibility() == Visibility::kFast;
  ExplainedChoice choice;
  choice.subject = "targets of symbolic links";
  choice.choice = kept ? "kept by the kernel" : "each one a request (readlink)";
  choice.why =
      std::string("--visibility ") + VisibilityName(fs.policy().visibility());
  if (kept) choice.hides = "readlinks of a link that was read before";
  choice.for_good = true;
  return choice;
}

}  // namespace

std::vector<ExplainedChoice> ExplainMount(const FileSystem& fs,
                                          const Pipeline& pipeline,
                                          const TransportChoice& transport,
                                          const QueueThreads& queue_threads) {
  std::vector<ExplainedChoice> all;
  ExplainedChoice& first = all.emplace_back();
  first.subject = "transport";
  first.choice = transport.uring ? "FUSE over io_uring" : "/dev/fuse";
  first.why = transport.why;
  first.for_good = true;
  if (transport.uring) all.push_back(Queues(transport));
  all.push_back(Memory(transport));
  all.push_back(Survival(fs));
  ExplainedChoice& threads = all.emplace_back();
  threads.subject = "queue threads";
  threads.choice = queue_threads.Choice();
  threads.why = queue_threads.Why();
  for (const CachePolicy::Choice& choice : fs.policy().Explain()) {
    ExplainedChoice& made = all.emplace_back();
    made.subject = choice.subject;
    made.choice = choice.choice;
    made.why = Why(choice, fs.policy());
    made.causes = CausesOf(pipeline, choice.forced_by);
    made.hides = choice.hides;
  }
  all.push_back(Symlinks(fs));
  all.push_back(Locks(fs, pipeline));
  all.push_back(Privileges(fs));
  all.push_back(OpenFiles(fs));
  all.push_back(Waits(fs));
  all.push_back(Kernel());
  return all;
}

std::vector<ExplainedChoice> ExplainSources(const SystemCalls& calls,
                                            const ProcessWatch* watch) {
  std::vector<ExplainedChoice> all;
  const SystemCalls::Stats of_calls = calls.GetStats();
  ExplainedChoice& call = all.emplace_back();
  call.subject = "system calls of callers";
  call.choice = of_calls.open
                    ? "told by the kernel's tracepoints (" +
                          std::to_string(of_calls.found) + " found, " +
                          std::to_string(of_calls.unknown) + " unknown)"
                    : "not asked for";
  call.why = of_calls.open ? "a filter on syscall, or STR_SYSCALL"
                           : "no tracer wants them";
  if (watch == nullptr) return all;
  const ProcessWatch::Stats of_processes = watch->GetStats();
  ExplainedChoice& process = all.emplace_back();
  process.subject = "processes of the machine";
  process.choice = of_processes.source.empty()
                       ? "not asked for"
                       : "told by the " + of_processes.source + " (" +
                             std::to_string(of_processes.records) +
                             " records, " + std::to_string(of_processes.lost) +
                             " lost)";
  process.why = of_processes.source.empty() ? "no tracer wants them"
                : of_processes.why.empty()  ? "STR_PROCESS"
                                            : of_processes.why;
  return all;
}

const char* IoModeName(IoMode mode) {
  switch (mode) {
    case IoMode::kCached:
      return "page cache";
    case IoMode::kDirect:
      return "direct";
    case IoMode::kPassthrough:
      return "passthrough";
    case IoMode::kPassthroughDirect:
      return "direct beside passthrough";
  }
  return "";
}

}  // namespace tracefs
