// The ready questions, as --print shows them.
#pragma once

#include <string_view>

namespace tracefs {

inline constexpr std::string_view kSummaryQuery =
    R"(# What happened?
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
)";

inline constexpr std::string_view kTreeQuery =
    R"(# Who began whom, what did each do, and how did it end?
[tree]
analysis = tree
top = all
)";

inline constexpr std::string_view kFilesQuery =
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
)";

inline constexpr std::string_view kAccessQuery =
    R"(# How are files gone through? Each transfer against the one before it through
# the same open file; and what nine in ten transfers of an open file are.
[transfers]
analysis = access
top = all
)";

inline constexpr std::string_view kBlocksQuery =
    R"(# What is read again, what is overwritten, how long does it live?
[blocks]
analysis = blocks
top = all
)";

inline constexpr std::string_view kLifetimesQuery =
    R"(# How long do files live that were created here, by who created them?
[lifetimes]
analysis = lifetimes
sort = created
top = 20
)";

inline constexpr std::string_view kSharingQuery =
    R"(# Which files do several processes use, and what follows what? rar: a read
# after a read by another process; raw, war, waw likewise.
[sharing]
analysis = sharing
sort = raw
top = 20
)";

inline constexpr std::string_view kDoubleWritesQuery =
    R"(# What is written more than once? rewritten: one file, several writers;
# recreated: made afresh under a name that was written before; replaced: another
# file was moved over it.
[double-writes]
analysis = double-writes
sort = written
top = 20
)";

inline constexpr std::string_view kRacesQuery =
    R"(# Which reads would see something else if processes ran in another order?
[races]
analysis = races
sort = gap
top = 20
)";

inline constexpr std::string_view kChurnQuery =
    R"(# Where are files made that are soon removed?
[churn]
analysis = churn
sort = gone
top = 20
)";

inline constexpr std::string_view kErrorsQuery =
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
)";

inline constexpr std::string_view kSmallIoQuery =
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
)";

inline constexpr std::string_view kFsyncQuery =
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
)";

inline constexpr std::string_view kProbesQuery =
    R"(# Which names are looked for in vain, where and by whom?
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
)";

inline constexpr std::string_view kSlowestQuery =
    R"(# What took longest?
[slowest]
analysis = slowest
sort = latency
top = 20
)";

inline constexpr std::string_view kQueueingQuery =
    R"(# How many operations are under way at the same time?
[depth]
analysis = queueing
top = all
)";

inline constexpr std::string_view kCriticalPathQuery =
    R"(# What did the whole wait for? Backwards from the end of the longest process:
# its child that ended last, and so on.
[critical path]
analysis = critical-path
sort = waited
top = 20
)";

inline constexpr std::string_view kUsesQuery =
    R"(# Which files are read most, and which are written for nobody?
[uses]
analysis = uses
sort = read
top = 20
)";

inline constexpr std::string_view kRatesQuery =
    R"(# How much is there at a time, from the quietest to the busiest period?
[rates]
analysis = rates
top = all
)";

inline constexpr std::string_view kPausesQuery =
    R"(# How long is it quiet: between the begins of operations, and between those of
# one process?
[pauses]
analysis = pauses
top = all
)";

inline constexpr std::string_view kPermissionsQuery =
    R"(# Who changes modes and owners, from what to what? What was before is known
# where an earlier operation told it.
[permissions]
analysis = permissions
top = all
)";

inline constexpr std::string_view kWhoQuery =
    R"(# Who did what to a file? Under all its names: renames are followed.
[who]
analysis = who
sort = count
top = 20
)";

inline constexpr std::string_view kDiffQuery =
    R"(# What is slower, new or gone? What adds or saves most time comes first.
[diff]
by = op
values = count,errors,bytes,time,mean,p99
top = all
)";

}  // namespace tracefs
