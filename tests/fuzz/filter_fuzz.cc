// Any bytes as a filter. Text goes through all stages, and what compiles must
// answer alike in all its forms; an input that begins with a NUL byte is an
// array of nodes behind it, which Validate refuses or which must run.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "filters/input/filter.h"
#include "tests/fuzz/structured.h"
#include "tests/support/filter_world.h"

namespace tracefs {
namespace {

using testing::FakeNames;
using testing::FilterWorld;

struct World {
  World() {
    std::mt19937 random(1);
    for (size_t op = 0; op < kOpCount; ++op) {
      events.push_back(world.Random(static_cast<Op>(op), random));
      before.push_back(world.BeforeRun(events.back(), random));
    }
    const auto list = [&](Field field, TextMatch match) {
      data->texts.push_back({TextMatcher::Make(field, std::move(match))});
    };
    data->tables.push_back(IntervalSet::OfAll(std::vector<uint64_t>{1, 99}));
    list(Field::kName, {TextMatch::Kind::kAnyOf, {"a"}});
    list(Field::kPath, {TextMatch::Kind::kGlob, {"/d/**"}});
    list(Field::kComm, {TextMatch::Kind::kNoneOf, {"sh"}});
  }

  FilterWorld world;
  std::vector<Event> events;
  std::vector<Event> before;
  std::shared_ptr<ProgramData> data = std::make_shared<ProgramData>();
};

void Require(bool condition) {
  if (!condition) abort();
}

void RunText(std::string_view text, World& world) {
  const auto ast = ParseFilter(text, "fuzz");
  NameTable table;
  const auto filter = Filter::Compile(text, {"fuzz"}, FakeNames(), table);
  if (!ast.ok() || !filter.ok()) {
    Require(!filter.ok() && !filter.status().message().empty());
    return;
  }
  // What is printed parses to the same, unless parentheses were added beyond
  // the limit.
  const std::string dump = Dump(*ast);
  const auto again = ParseFilter(dump, "again");
  if (again.ok()) Require(Dump(*again) == dump);
  Require(!filter->general().Dump().empty());
  Require(!filter->general().DumpDot(text).empty());
  for (size_t i = 0; i < world.events.size(); ++i) {
    Event event = world.events[i];
    const bool keep = filter->Keep(event);  // by the names themselves
    Event with_bits = world.events[i];
    world.world.SetNameBits(table, with_bits);
    Require(filter->Keep(with_bits) == keep);
    Event general = world.events[i];
    Require(filter->general().Keep(general) == keep);
    const FilterNeeds needs = filter->Needs(event.op);
    Event before = world.before[i];
    const Verdict early = filter->DecideEarly(before);
    if (early == Verdict::kUndecided) {
      Require(needs.late);
    } else {
      Require((early == Verdict::kKeep) == keep);
    }
  }
}

void RunArray(const uint8_t* data, size_t size, World& world) {
  std::vector<Node> nodes(size / sizeof(Node));
  if (nodes.empty()) return;
  std::memcpy(nodes.data(), data, nodes.size() * sizeof(Node));
  const auto program = Program::Make(std::move(nodes), world.data);
  if (!program.ok()) {
    Require(!program.status().message().empty());
    return;
  }
  for (size_t i = 0; i < world.events.size(); i += 7) {
    Event event = world.events[i];
    (void)program->Keep(event);
    Event before = world.before[i];
    (void)program->DecideEarly(before);
    (void)program->Needs(event.op);
  }
  Require(!program->Dump().empty());
}

}  // namespace
}  // namespace tracefs

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static tracefs::World world;
  if (size > 0 && data[0] == 0) {
    tracefs::RunArray(data + 1, size - 1, world);
  } else {
    tracefs::RunText({reinterpret_cast<const char*>(data), size}, world);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max, unsigned seed) {
  if (size > 0 && data[0] == 0) return LLVMFuzzerMutate(data, size, max);
  return tracefs::fuzz::MutateText(data, size, max, seed);
}
