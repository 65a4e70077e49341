// The ready questions: a row for each is all that one takes which can be put
// as a query, besides its paragraph in docs/man/tracefs-report.1.
#pragma once

#include <string_view>

namespace tracefs {

struct ReadyQuestion {
  std::string_view name;
  std::string_view help;
  std::string_view query;  // as --print shows it
  // What stands between its name and the traces.
  std::string_view words = {};
};

inline constexpr std::string_view kDiffQuery =
    R"(# What is slower, new or gone? What adds or saves most time comes first.
[diff]
by = op
values = count,errors,bytes,time,mean,p99
top = all
)";

// In the order of --help.
inline constexpr ReadyQuestion kQuestions[] = {
    {"summary", "what happened, in a few tables",
     R"(# What happened?
[verdict]
analysis = verdict
[summary]
analysis = summary
[operations]
by = op
values = count,errors,bytes,time,p50,p99,max,time_share
sort = time
top = 10
[processes]
by = cname
values = count,errors,read,written,time,processes
sort = time
top = 10
[directories]
by = dir(2)
values = count,errors,read,written,time,files
sort = time
top = 10
[errors]
filter = errno != 0
by = errno,op
values = count
sort = count
top = 10
)"},
    {"tree", "processes, what each did and how it ended",
     R"(# Which process started which, what did each do, and how did it end?
[tree]
analysis = tree
top = all
)"},
    {"files", "files by what was read and written",
     R"(# Which files are busy?
[files]
by = path
values = count,errors,read,written,time,processes
sort = time
top = 20
[by extension]
by = ext
values = count,read,written,time,files
sort = time
top = 20
)"},
    {"access", "sequential, strided or random",
     R"(# How are files accessed? Each transfer is compared with the one before it through
# the same open file; an open file is what nine in ten of its transfers are.
[transfers]
analysis = access
top = all
)"},
    {"blocks", "re-reads, overwrites, lives of blocks, working set",
     R"(# What is read again, what is overwritten, how long does it live?
[blocks]
analysis = blocks
top = all
)"},
    {"extents", "where on the device files lie, how far accesses are apart",
     R"(# Where on the device do files lie, and how far is it from one access to the
# next? Only in traces with STR_EXTENTS.
[extents]
analysis = extents
sort = extents
top = 20
)"},
    {"disk", "how much of fsyncs and reads was the device's",
     R"(# How much of an fsync, or of a read that fetched something, was the device's?
# REQUESTS is what perf script prints of block:block_rq_issue and _complete.
[disk]
analysis = disk
sort = latency
top = 20
)",
     "REQUESTS"},
    {"lifetimes", "how long files live, and what is thrown away",
     R"(# How long do files live that were created here, by who created them?
[lifetimes]
analysis = lifetimes
sort = created
top = 20
)"},
    {"sharing", "files that several processes use",
     R"(# Which files do several processes use, and what follows what? rar: a read
# after a read by another process; raw, war, waw likewise.
[sharing]
analysis = sharing
sort = raw
top = 20
)"},
    {"double-writes", "rewritten, recreated, replaced by rename",
     R"(# What is written more than once? rewritten: one file, several writers;
# recreated: made again under a name that was written before; replaced: another
# file was moved over it.
[double-writes]
analysis = double-writes
sort = written
top = 20
)"},
    {"races", "reads that race with a writer",
     R"(# Which reads would see something else if processes ran in another order?
[races]
analysis = races
sort = gap
top = 20
)"},
    {"churn", "where files are made and removed again",
     R"(# Where are files made that are soon removed?
[churn]
analysis = churn
sort = gone
top = 20
)"},
    {"errors", "what fails, where, and for which process",
     R"(# What fails?
[by error and operation]
filter = errno != 0
by = errno,op
values = count,share
sort = count
top = 20
[by process]
filter = errno != 0
by = cname,errno
values = count
sort = count
top = 20
[by path]
filter = errno != 0
by = path,errno
values = count
sort = count
top = 20
)"},
    {"small-io", "who reads and writes in small pieces",
     R"(# Who reads and writes in pieces below 4096 bytes?
[small reads and writes]
filter = op IN { read write } AND errno = 0 AND result < 4096
by = cname,op
values = count,bytes,size_mean,time
sort = count
top = 20
[files]
filter = op IN { read write } AND errno = 0 AND result < 4096
by = path,op
values = count,bytes,size_mean,time
sort = count
top = 20
[of all, by size]
filter = op IN { read write } AND errno = 0
by = op,log2(result)
values = count,bytes,share
sort = count
top = 20
)"},
    {"fsync", "who waits for disks",
     R"(# Who waits for disks, how long, and when?
[by file]
filter = op IN { fsync fsyncdir }
by = path,cname
values = count,time,p50,p99,max,time_share
sort = time
top = 20
[by second]
filter = op IN { fsync fsyncdir }
by = cname
every = 1s
values = count,time,max
sort = count
top = 20
)"},
    {"probes", "names that are searched for but not found",
     R"(# Which names are searched for but not found, where and by whom?
[by directory]
filter = op = lookup AND errno = ENOENT
by = dir,cname
values = count,time,share
sort = count
top = 20
[by name]
filter = op = lookup AND errno = ENOENT
by = name
values = count,time
sort = count
top = 20
)"},
    {"slowest", "the operations that took longest",
     R"(# What took longest?
[slowest]
analysis = slowest
sort = latency
top = 20
)"},
    {"queueing", "operations under way at the same time",
     R"(# How many operations are under way at the same time?
[depth]
analysis = queueing
top = all
)"},
    {"critical-path", "processes that the whole waited for",
     R"(# What did the whole wait for? Backwards from the end of the longest process:
# its child that ended last, and so on.
[critical path]
analysis = critical-path
sort = waited
top = 20
)"},
    {"uses", "files that are read most, or written and never read",
     R"(# Which files are read most, and which are written but never read?
[uses]
analysis = uses
sort = read
top = 20
)"},
    {"rates", "the busiest tenth, second, ten seconds and minute",
     R"(# How much is there at a time, from the quietest to the busiest period?
[rates]
analysis = rates
top = all
)"},
    {"pauses", "how long it is quiet, and how long processes think",
     R"(# How long is it quiet: between the begins of operations, and between those of
# one process?
[pauses]
analysis = pauses
top = all
)"},
    {"permissions", "changes of modes and owners",
     R"(# Who changes modes and owners, from what to what? What was before is known
# where an earlier operation told it.
[permissions]
analysis = permissions
top = all
)"},
    {"who", "who did what to the file PATH",
     R"(# Who did what to a file? Under all its names: renames are followed.
[who]
analysis = who
sort = count
top = 20
)",
     "PATH"},
};

}  // namespace tracefs
