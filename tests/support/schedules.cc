#include "tests/support/schedules.h"

#include <ucontext.h>

#include <algorithm>
#include <deque>

namespace tracefs::test {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;
// More steps of one schedule than any test has: some fiber waits in vain.
constexpr size_t kMostSteps = 200'000;

struct Waiting {
  Cell* cell;
  uint64_t value;
  bool release;
};

struct FiberState {
  ucontext_t context;
  std::function<void()> run;
  std::unique_ptr<std::byte[]> stack;
  std::deque<Waiting> stores;
  const bool* wants = nullptr;  // a mutex that it waits for
  bool yielded = false;
  bool done = false;
};

// One of several ways to go on, in the schedule that is tried.
struct Decision {
  size_t chosen;
  size_t count;
};

struct Search {
  Machine machine;
  int surprises = 0;
  std::vector<Decision> path;
  // The schedule being tried:
  size_t depth = 0;
  int left = 0;
  size_t steps = 0;
  std::string failure;
  std::vector<std::unique_ptr<FiberState>> fibers;
  int current = -1;
  ucontext_t home;
};

Search* search = nullptr;
std::vector<std::function<void(int)>> end_hooks;
std::vector<std::unique_ptr<std::byte[]>> spare_stacks;

bool Active() { return search != nullptr && search->current >= 0; }

FiberState& Current() {
  return *search->fibers[static_cast<size_t>(search->current)];
}

// The next decision; `costs`: all but the first are surprises.
size_t Decide(size_t count, bool costs) {
  if (count <= 1 || (costs && search->left == 0)) return 0;
  if (search->depth == search->path.size()) search->path.push_back({0, count});
  const size_t chosen = search->path[search->depth++].chosen;
  if (costs && chosen != 0) --search->left;
  return chosen;
}

// Has memory take the store at `at`, and what must be there before it: earlier
// ones of the same cell, and all that a release store among these follows.
void Drain(FiberState& fiber, size_t at) {
  const Cell* const cell = fiber.stores[at].cell;
  size_t ordered = 0;  // so many of the first go along
  for (size_t i = 0; i <= at; ++i) {
    if (fiber.stores[i].cell == cell && fiber.stores[i].release) ordered = i;
  }
  std::deque<Waiting> kept;
  for (size_t i = 0; i < fiber.stores.size(); ++i) {
    const Waiting& store = fiber.stores[i];
    if (i < ordered || (i <= at && store.cell == cell)) {
      store.cell->memory = store.value;
    } else {
      kept.push_back(store);
    }
  }
  fiber.stores.swap(kept);
}

void DrainAll(FiberState& fiber) {
  for (const Waiting& store : fiber.stores) store.cell->memory = store.value;
  fiber.stores.clear();
}

bool Ready(const FiberState& fiber) {
  return !fiber.done && !fiber.yielded &&
         (fiber.wants == nullptr || !*fiber.wants);
}

void SwitchTo(int next) {
  const int from = search->current;
  if (next == from) return;
  search->current = next;
  ucontext_t* const to =
      next < 0 ? &search->home
               : &search->fibers[static_cast<size_t>(next)]->context;
  ::swapcontext(from < 0 ? &search->home
                         : &search->fibers[static_cast<size_t>(from)]->context,
                to);
}

// Leaves for good: the schedule has failed, and what its fibers hold is left.
void Give(const std::string& why) {
  search->failure = why;
  SwitchTo(-1);
}

// Whoever comes next goes on.
void Point() {
  if (++search->steps > kMostSteps) Give("some fiber waits in vain");
  std::vector<int> ready;
  const bool goes_on = Ready(Current());
  if (goes_on) ready.push_back(search->current);
  const auto add_others = [&] {
    for (size_t i = 0; i < search->fibers.size(); ++i) {
      const int number = static_cast<int>(i);
      if (number == search->current && goes_on) continue;
      if (Ready(*search->fibers[i])) ready.push_back(number);
    }
  };
  add_others();
  if (ready.empty()) {
    // Those that spin look again, and by then see everything.
    bool spins = false;
    for (const auto& fiber : search->fibers) {
      DrainAll(*fiber);
      spins |= fiber->yielded;
      fiber->yielded = false;
    }
    if (spins) add_others();
  }
  if (ready.empty()) {
    const bool over = std::all_of(search->fibers.begin(), search->fibers.end(),
                                  [](const auto& f) { return f->done; });
    if (!over) search->failure = "all fibers wait for each other";
    SwitchTo(-1);
    return;
  }
  SwitchTo(ready[Decide(ready.size(), goes_on)]);
}

void RunFiber() {
  FiberState& self = Current();
  self.run();
  for (const auto& hook : end_hooks) hook(search->current);
  DrainAll(self);
  self.done = true;
  Point();
}

std::string TryOne(const std::function<Schedules::World()>& make) {
  search->depth = 0;
  search->left = search->surprises;
  search->steps = 0;
  search->failure.clear();
  Schedules::World world = make();
  for (auto& run : world.fibers) {
    auto fiber = std::make_unique<FiberState>();
    fiber->run = run;
    if (spare_stacks.empty()) {
      spare_stacks.push_back(
          std::make_unique_for_overwrite<std::byte[]>(kStackBytes));
    }
    fiber->stack = std::move(spare_stacks.back());
    spare_stacks.pop_back();
    ::getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack.get();
    fiber->context.uc_stack.ss_size = kStackBytes;
    fiber->context.uc_link = nullptr;
    ::makecontext(&fiber->context, &RunFiber, 0);
    search->fibers.push_back(std::move(fiber));
  }
  SwitchTo(static_cast<int>(Decide(search->fibers.size(), false)));
  for (const auto& fiber : search->fibers) {
    DrainAll(*fiber);
    spare_stacks.push_back(std::move(fiber->stack));
  }
  search->fibers.clear();
  if (!search->failure.empty()) return search->failure;
  return world.check();
}

}  // namespace

Schedules::Outcome Schedules::Explore(int surprises,
                                      const std::function<World()>& make,
                                      Machine machine, size_t limit) {
  Search whole;
  whole.machine = machine;
  whole.surprises = surprises;
  search = &whole;
  Outcome outcome;
  for (;;) {
    ++outcome.schedules;
    outcome.failure = TryOne(make);
    if (!outcome.failure.empty()) break;
    while (!whole.path.empty() &&
           whole.path.back().chosen + 1 == whole.path.back().count) {
      whole.path.pop_back();
    }
    if (whole.path.empty()) break;
    ++whole.path.back().chosen;
    if (outcome.schedules == limit) {
      outcome.all = false;
      break;
    }
  }
  search = nullptr;
  return outcome;
}

uint64_t Schedules::Load(const Cell& cell) {
  if (!Active()) return cell.memory;
  Point();
  const FiberState& self = Current();
  for (size_t i = self.stores.size(); i-- > 0;) {
    if (self.stores[i].cell == &cell) return self.stores[i].value;
  }
  for (const auto& other : search->fibers) {
    std::vector<size_t> waiting;
    for (size_t i = 0; i < other->stores.size(); ++i) {
      if (other->stores[i].cell == &cell) waiting.push_back(i);
    }
    const size_t unseen = Decide(waiting.size() + 1, true);
    if (unseen < waiting.size()) {
      Drain(*other, waiting[waiting.size() - 1 - unseen]);
    }
  }
  return cell.memory;
}

void Schedules::Store(Cell& cell, uint64_t value, std::memory_order order) {
  if (!Active()) {
    cell.memory = value;
    return;
  }
  Point();
  const bool whole = order == std::memory_order_seq_cst;
  const bool release = (whole || order == std::memory_order_release) &&
                       search->machine.release_orders;
  Current().stores.push_back({&cell, value, release});
  if (whole && search->machine.seq_cst_orders) DrainAll(Current());
}

void Schedules::BeginExchange() {
  if (!Active()) return;
  Point();
  DrainAll(Current());
}

void Schedules::Lock(const bool& held) {
  if (!Active()) return;
  Point();
  while (held) {
    Current().wants = &held;
    Point();
  }
  Current().wants = nullptr;
}

bool Schedules::MayTry() {
  if (Active()) Point();
  return true;
}

void Schedules::Unlocked() {
  if (Active()) DrainAll(Current());
}

void Schedules::Yield() {
  if (!Active()) return;
  Current().yielded = true;
  Point();
  Current().yielded = false;
}

long Schedules::Membarrier() {
  if (!Active()) return 0;
  Point();
  if (search->machine.membarrier_works) {
    for (const auto& fiber : search->fibers) DrainAll(*fiber);
  }
  return 0;
}

size_t Schedules::Choose(size_t count) {
  return Active() ? Decide(count, true) : 0;
}

void Schedules::Settle() {
  if (!Active()) return;
  for (const auto& fiber : search->fibers) DrainAll(*fiber);
}

int Schedules::Fiber() { return search == nullptr ? -1 : search->current; }

void Schedules::AtFiberEnd(std::function<void(int)> hook) {
  end_hooks.push_back(std::move(hook));
}

}  // namespace tracefs::test
