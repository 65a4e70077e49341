// What a filter decision costs. Unit: ns per event, one core.
//
// Events: 256 random ones of the operations of a build (62 reads, 21 writes and
// 17 others in a hundred), each with all its fields, so that no benchmark runs
// on one cache line or one predictable event. Baselines, in the same run:
// KeepAll is the call and the loop around it; HandWritten is what a programmer
// would write for that one filter.
//
// In AllEvaluated/n no test can be merged with another and none ends the
// evaluation early: the answer hangs on the last of the n (the paper's section
// 4.1 builds its filters of 1, 10 and 50 predicates this way).
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "filters/input/filter.h"
#include "tests/support/filter_world.h"

namespace tracefs {
namespace {

using testing::FakeNames;
using testing::FilterWorld;

// The names of the events of every benchmark.
struct Setup {
  Setup() {
    for (size_t i = 0; i < 256; ++i) {
      const size_t percent = i * 100 / 256;
      constexpr Op kOthers[] = {Op::lookup_,  Op::open_,   Op::getattr_,
                                Op::release_, Op::create_, Op::unlink_};
      const Op op = percent < 62   ? Op::read_
                    : percent < 83 ? Op::write_
                                   : kOthers[i % std::size(kOthers)];
      events.push_back(world.Random(op, random));
      Event& event = events.back();
      event.present |= Info(op).request_fields;
      event.Set(Field::kUid, 5 + random() % 3);
      event.Set(Field::kOffset, 4096 * (1 + random() % 1000));
      event.Set(Field::kLength, 1 + random() % 65536);
      event.Set(Field::kInode, 1000 + random() % 1000);
      event.Set(Field::kType, 8);
      event.Set(Field::kLatency, 1000 + random() % 100000);
      event.SetResult(0, 0);
      event.NeedCaller();
      event.NeedAttributes();
    }
    std::shuffle(events.begin(), events.end(), random);
  }

  Filter Compile(const std::string& text) {
    auto filter = Filter::Compile(text, {}, FakeNames(), table);
    if (!filter.ok()) abort();
    for (Event& event : events) world.SetNameBits(table, event);
    return *filter;
  }

  std::mt19937 random{1};
  FilterWorld world;
  NameTable table;
  std::vector<Event> events;
};

void Run(benchmark::State& state, Setup& setup, const Filter& filter) {
  size_t i = 0;
  size_t kept = 0;
  for (auto _ : state) {
    kept += filter.Keep(setup.events[i++ % 256]);
  }
  benchmark::DoNotOptimize(kept);
  state.counters["kept"] =
      static_cast<double>(kept) / static_cast<double>(state.iterations());
  state.counters["nodes"] =
      static_cast<double>(filter.program(Op::read_).nodes().size());
}

void RunText(benchmark::State& state, const std::string& text) {
  Setup setup;
  Run(state, setup, setup.Compile(text));
}

void BM_KeepAll(benchmark::State& state) { RunText(state, ""); }
BENCHMARK(BM_KeepAll);

void BM_HandWritten(benchmark::State& state) {
  Setup setup;
  size_t i = 0;
  size_t kept = 0;
  for (auto _ : state) {
    const Event& event = setup.events[i++ % 256];
    kept += event.Has(Field::kUid) && event.Get(Field::kUid) == 4000000000u;
  }
  benchmark::DoNotOptimize(kept);
}
BENCHMARK(BM_HandWritten);

// Never true, and asked of every event.
void BM_OnePredicate(benchmark::State& state) {
  RunText(state, "cuid = 4000000000");
}
BENCHMARK(BM_OnePredicate);

// Costs nothing: each operation's program is a constant.
void BM_OnlyOps(benchmark::State& state) {
  RunText(state, "op IN { open close read write }");
}
BENCHMARK(BM_OnlyOps);

// True for a third of the events, at random: what a branch that cannot be
// predicted costs.
void BM_OneUnpredictable(benchmark::State& state) {
  RunText(state, "cuid = 6");
}
BENCHMARK(BM_OneUnpredictable);

void BM_PaperSample(benchmark::State& state) {
  RunText(state, "cuid = 0 OR cgid = 1");
}
BENCHMARK(BM_PaperSample);

// n tests on fields that every event of the mix has; `keep`: whether the last
// one is true.
std::string AllEvaluated(int n, bool keep) {
  // Pairs (a OR b) with `a` false and `b` true, AND'ed; on different fields, so
  // that they cannot be merged; a later `b` says more than an earlier one.
  if (n == 1) return keep ? "errno = 0" : "errno = EIO";
  std::string text;
  for (int k = 0; k < n / 2 - 1; ++k) {
    const std::string number = std::to_string(k);
    const char* a[] = {"inode = ", "cgid = 9", "ctid = 77"};
    const char* b[] = {"cuid != 900", "latency != 777", "result != 999"};
    text += "(" + std::string(a[k % 3]) + number + " OR " + b[k % 3] + number +
            ") AND ";
  }
  return text + "(errno = EIO OR result " + (keep ? "!= 5)" : "= 5)");
}

void BM_AllEvaluated(benchmark::State& state) {
  RunText(state,
          AllEvaluated(static_cast<int>(state.range(0)), state.range(1) != 0));
}
BENCHMARK(BM_AllEvaluated)
    ->ArgNames({"predicates", "keep"})
    ->ArgsProduct({{1, 10, 50}, {0, 1}});

// As AllEvaluated/50, of tests with a mask; they take the second step of the
// loop.
void BM_FiftyMasks(benchmark::State& state) {
  std::string text;
  for (int i = 0; i < 50; ++i) {
    text +=
        (i > 0 ? " OR flags ~ " : "flags ~ ") + std::to_string(4096 + 2 * i);
  }
  RunText(state, text);
}
BENCHMARK(BM_FiftyMasks);

// Likewise of the caller's process, which is known after the first.
void BM_FiftyOfTheCaller(benchmark::State& state) {
  std::string text;
  for (int i = 0; i < 25; ++i) {
    const std::string number = std::to_string(i);
    text += (i > 0 ? " OR cpid != 7" : "cpid != 7") + number + " AND csid = 9" +
            number;
  }
  RunText(state, text);
}
BENCHMARK(BM_FiftyOfTheCaller);

void BM_Flags(benchmark::State& state) {
  RunText(state, "flags ~ O_APPEND OR flags ~ O_SYNC OR flags ~ O_WRONLY");
}
BENCHMARK(BM_Flags);

void BM_SetOfNumbers(benchmark::State& state) {
  std::string text = "inode IN {";
  for (int i = 0; i < state.range(0); ++i)
    text += std::to_string(i * 977) + " ";
  RunText(state, text + "}");
}
BENCHMARK(BM_SetOfNumbers)->Arg(4)->Arg(1000);

void BM_OneName(benchmark::State& state) { RunText(state, "ext = tex"); }
BENCHMARK(BM_OneName);

// Name predicates, however many, are one AND with the inode's bits.
void BM_Names(benchmark::State& state) {
  RunText(state, "ext IN {c h} OR name = Makefile OR name ~ lib*.so*");
}
BENCHMARK(BM_Names);

// The same where the bits are stale or were not kept: the names are asked.
void BM_NamesAsked(benchmark::State& state) {
  Setup setup;
  const Filter filter =
      setup.Compile("ext IN {c h} OR name = Makefile OR name ~ lib*.so*");
  for (Event& event : setup.events) event.name_generation = 0;
  Run(state, setup, filter);
}
BENCHMARK(BM_NamesAsked);

void BM_CallerName(benchmark::State& state) {
  RunText(state, "cname IN {make cc1 ld}");
}
BENCHMARK(BM_CallerName);

void BM_Path(benchmark::State& state) { RunText(state, "path ~ /d/**"); }
BENCHMARK(BM_Path);

// What the file system pays once per new name.
void BM_MatchName(benchmark::State& state) {
  Setup setup;
  const Filter filter = setup.Compile(
      "ext IN {c h o} OR name = Makefile OR name ~ lib*.so* OR name ~ "
      "*.[ch]pp");
  constexpr std::string_view kNames[] = {"main.c", "Makefile", "libz.so.1",
                                         "README", "a.cpp",    "core"};
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(setup.table.Match(kNames[i++ % 6]));
  }
}
BENCHMARK(BM_MatchName);

// Text to 38 programs, per filter of n predicates that cannot be merged.
void BM_Compile(benchmark::State& state) {
  const std::string text = AllEvaluated(static_cast<int>(state.range(0)), true);
  for (auto _ : state) {
    NameTable table;
    benchmark::DoNotOptimize(Filter::Compile(text, {}, FakeNames(), table));
  }
}
BENCHMARK(BM_Compile)->Arg(1)->Arg(50)->Arg(1000);

}  // namespace
}  // namespace tracefs
