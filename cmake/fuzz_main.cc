// A main for fuzz targets that needs no libFuzzer, so that every compiler runs
// them in every test run:
//
//   target [--mutate N] [--seed S] [--max-bytes B] [--keep DIR] CORPUS...
//
// First every file of the corpus (files, or folders searched recursively) goes
// through LLVMFuzzerTestOneInput() once. Then N inputs made from them go
// through it: cut short, bytes flipped, pieces of two joined, lengths replaced
// by lies. The same seed makes the same inputs on every machine.
//
// An input that crashes, or that takes more than ten seconds, is written to
// DIR (default: the current folder) and the process ends with its signal. In
// builds without sanitizers the address space is limited, so that an unbounded
// allocation is such a crash too, and what was really used at most is checked
// at the end.

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv)
    __attribute__((weak));
// What a target knows of the structure of its inputs.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max, unsigned seed)
    __attribute__((weak));

// Sanitizers call this before they end the process; they bring it along.
extern "C" void __sanitizer_set_death_callback(void (*callback)())
    __attribute__((weak));

// Allocations beyond this are a defect of the target, not of the machine.
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=2048:allocator_may_return_null=0:"
         "detect_stack_use_after_return=1:strict_string_checks=1";
}

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

constexpr unsigned kSecondsPerInput = 10;
constexpr rlim_t kAddressSpaceBytes = rlim_t{4} << 30;
// The largest block is 64 MiB, and a chain of decoders holds three.
constexpr long kMaxResidentMib = 512;

using Input = std::vector<uint8_t>;

// What is running, for the handlers of its death.
const Input* g_current = nullptr;
char g_keep_path[4096];

// Async-signal-safe: writes the current input where the user finds it.
void KeepCurrentInput() {
  const Input* input = g_current;
  g_current = nullptr;
  if (input == nullptr) return;
  const int fd =
      open(g_keep_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  size_t done = 0;
  while (done < input->size()) {
    const ssize_t n = write(fd, input->data() + done, input->size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  close(fd);
  constexpr std::string_view kBefore = "\nfuzz: the input is in ";
  (void)!write(STDERR_FILENO, kBefore.data(), kBefore.size());
  (void)!write(STDERR_FILENO, g_keep_path, strlen(g_keep_path));
  (void)!write(STDERR_FILENO, "\n", 1);
}

void OnDeadlySignal(int signal_number) {
  if (signal_number == SIGALRM) {
    constexpr std::string_view kHang = "\nfuzz: one input takes too long";
    (void)!write(STDERR_FILENO, kHang.data(), kHang.size());
  }
  KeepCurrentInput();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void CatchDeath() {
  std::vector<int> deadly = {SIGALRM, SIGABRT};
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(KeepCurrentInput);
  } else {
    deadly.insert(deadly.end(), {SIGSEGV, SIGBUS, SIGFPE, SIGILL});
  }
  // A stack overflow leaves no room for the handler on the stack itself.
  static std::array<char, 64 * 1024> handler_stack;
  stack_t stack = {};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  sigaltstack(&stack, nullptr);
  for (const int signal_number : deadly) {
    struct sigaction action = {};
    action.sa_handler = OnDeadlySignal;
    action.sa_flags = SA_ONSTACK | SA_NODEFER;
    sigaction(signal_number, &action, nullptr);
  }
}

void RunOne(const Input& input) {
  g_current = &input;
  alarm(kSecondsPerInput);
  // A heap copy of exactly this size lets ASan see the first byte beyond it.
  const Input exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  alarm(0);
  g_current = nullptr;
}

// SplitMix64: the standard library's distributions differ between libraries.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  // A number below `limit`, which must not be 0.
  size_t Below(size_t limit) { return static_cast<size_t>(Next() % limit); }

  // Mostly small: most defects sit near the beginning of what is parsed.
  size_t SmallBelow(size_t limit) { return Below(Below(limit) + 1); }

 private:
  uint64_t state_;
};

// Overwrites 1, 2, 4 or 8 bytes by a number that a length had better not be.
void LieAboutLength(Input& input, Random& random) {
  const size_t width = size_t{1} << random.Below(4);
  if (input.size() < width) return;
  const size_t at = random.SmallBelow(input.size() - width + 1);
  uint64_t old_value = 0;
  memcpy(&old_value, input.data() + at, width);
  const uint64_t left = input.size() - at;
  const std::array<uint64_t, 16> lies = {0,
                                         1,
                                         0x7F,
                                         0x80,
                                         0xFF,
                                         0x7FFF,
                                         0x8000,
                                         0xFFFF,
                                         0x7FFFFFFF,
                                         0x80000000,
                                         0xFFFFFFFF,
                                         ~uint64_t{0} >> 1,
                                         ~uint64_t{0},
                                         left,
                                         old_value + 1,
                                         old_value - 1};
  const uint64_t value = lies[random.Below(lies.size())];
  memcpy(input.data() + at, &value, width);
}

void MutateOnce(Input& input, const std::vector<Input>& corpus,
                Random& random) {
  if (input.empty()) input.push_back(static_cast<uint8_t>(random.Next()));
  switch (random.Below(9)) {
    case 0:  // cut short
      input.resize(random.Below(input.size() + 1));
      break;
    case 1:  // one bit
      input[random.Below(input.size())] ^=
          static_cast<uint8_t>(1U << random.Below(8));
      break;
    case 2:  // one byte
      input[random.SmallBelow(input.size())] =
          static_cast<uint8_t>(random.Next());
      break;
    case 3:
    case 4:
      LieAboutLength(input, random);
      break;
    case 5: {  // the head of this one, the tail of another
      const Input& other = corpus[random.Below(corpus.size())];
      input.resize(random.Below(input.size() + 1));
      const size_t from = random.Below(other.size() + 1);
      input.insert(input.end(),
                   other.begin() + static_cast<std::ptrdiff_t>(from),
                   other.end());
      break;
    }
    case 6: {  // remove a piece
      const size_t from = random.Below(input.size());
      const size_t count = 1 + random.SmallBelow(input.size() - from);
      const auto first = input.begin() + static_cast<std::ptrdiff_t>(from);
      input.erase(first, first + static_cast<std::ptrdiff_t>(count));
      break;
    }
    case 7: {  // repeat a piece
      const size_t from = random.Below(input.size());
      const size_t count = 1 + random.SmallBelow(input.size() - from);
      const auto first = input.begin() + static_cast<std::ptrdiff_t>(from);
      const Input piece(first, first + static_cast<std::ptrdiff_t>(count));
      const size_t to = random.Below(input.size() + 1);
      input.insert(input.begin() + static_cast<std::ptrdiff_t>(to),
                   piece.begin(), piece.end());
      break;
    }
    case 8: {  // insert a piece of another
      const Input& other = corpus[random.Below(corpus.size())];
      if (other.empty()) break;
      const size_t from = random.Below(other.size());
      const size_t count = 1 + random.SmallBelow(other.size() - from);
      const auto first = other.begin() + static_cast<std::ptrdiff_t>(from);
      const size_t to = random.Below(input.size() + 1);
      input.insert(input.begin() + static_cast<std::ptrdiff_t>(to), first,
                   first + static_cast<std::ptrdiff_t>(count));
      break;
    }
  }
}

// By the target's own means, every other time.
void MutateByStructure(Input& input, size_t max_bytes, Random& random) {
  const size_t size = std::min(input.size(), max_bytes);
  max_bytes = std::min(max_bytes, 2 * size + 4096);
  input.resize(max_bytes);
  input.resize(LLVMFuzzerCustomMutator(input.data(), size, max_bytes,
                                       static_cast<unsigned>(random.Next())));
}

Input ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  Input bytes((std::istreambuf_iterator<char>(in)),
              std::istreambuf_iterator<char>());
  if (!in) {
    fprintf(stderr, "fuzz: cannot read %s: %s\n", path.c_str(),
            strerror(errno));
    exit(3);
  }
  return bytes;
}

// Files in a fixed order: the order of a folder differs between machines, and
// with it what a seed makes.
std::vector<std::filesystem::path> CorpusFiles(
    const std::vector<std::string>& roots) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const std::string& root : roots) {
    std::error_code error;
    if (!fs::is_directory(root, error)) {
      files.emplace_back(root);
      continue;
    }
    const auto options = fs::directory_options::follow_directory_symlink;
    for (auto it = fs::recursive_directory_iterator(root, options, error);
         it != fs::recursive_directory_iterator(); it.increment(error)) {
      if (error) break;
      if (it->is_regular_file(error)) files.push_back(it->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

[[noreturn]] void Usage(const char* program) {
  fprintf(stderr,
          "Usage: %s [--mutate N] [--seed S] [--max-bytes B] [--keep DIR] "
          "CORPUS...\n",
          program);
  exit(2);
}

uint64_t ParseNumber(const char* program, const char* text) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0') Usage(program);
  return value;
}

// Inputs are a megabyte at most: whoever held much more believed a length.
bool MemoryWasBounded() {
  rusage usage;
  if (kSanitized || getrusage(RUSAGE_SELF, &usage) != 0) return true;
  const long peak_mib = usage.ru_maxrss >> 10;
  printf("fuzz: at most %ld MiB of memory\n", peak_mib);
  if (peak_mib <= kMaxResidentMib) return true;
  fprintf(stderr, "fuzz: more than %ld MiB\n", kMaxResidentMib);
  return false;
}

}  // namespace

// For custom mutators, as libFuzzer has it.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max) {
  static Random random(2);
  Input input(data, data + size);
  MutateOnce(input, {input}, random);
  size = std::min(input.size(), max);
  std::copy_n(input.begin(), size, data);
  return size;
}

int main(int argc, char** argv) {
  uint64_t mutations = 0;
  uint64_t seed = 1;
  size_t max_bytes = size_t{1} << 20;
  std::string keep = ".";
  std::vector<std::string> roots;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.substr(0, 2) != "--") {
      roots.emplace_back(argument);
      continue;
    }
    if (i + 1 == argc) Usage(argv[0]);
    const char* value = argv[++i];
    if (argument == "--mutate") {
      mutations = ParseNumber(argv[0], value);
    } else if (argument == "--seed") {
      seed = ParseNumber(argv[0], value);
    } else if (argument == "--max-bytes") {
      max_bytes = ParseNumber(argv[0], value);
    } else if (argument == "--keep") {
      keep = value;
    } else {
      Usage(argv[0]);
    }
  }
  if (roots.empty()) Usage(argv[0]);

  const std::string name = std::filesystem::path(argv[0]).filename();
  snprintf(g_keep_path, sizeof(g_keep_path), "%s/%s.%llu.input", keep.c_str(),
           name.c_str(), static_cast<unsigned long long>(seed));
  CatchDeath();
  // Sanitizers reserve terabytes of address space that they never touch.
  if (!kSanitized) {
    const rlimit limit = {kAddressSpaceBytes, kAddressSpaceBytes};
    setrlimit(RLIMIT_AS, &limit);
  }
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&argc, &argv);

  std::vector<Input> corpus;
  for (const std::filesystem::path& file : CorpusFiles(roots)) {
    corpus.push_back(ReadFile(file));
    RunOne(corpus.back());
  }
  printf("fuzz: %zu corpus files replayed\n", corpus.size());
  if (corpus.empty()) {
    // A corpus that vanished must not look like success.
    fprintf(stderr, "fuzz: no corpus file in %s\n", roots[0].c_str());
    return 3;
  }
  RunOne({});

  Random random(seed);
  for (uint64_t i = 0; i < mutations; ++i) {
    Input input = corpus[random.Below(corpus.size())];
    for (size_t rounds = 1 + random.Below(4); rounds > 0; --rounds) {
      if (LLVMFuzzerCustomMutator != nullptr && random.Below(2) == 0) {
        MutateByStructure(input, max_bytes, random);
      } else {
        MutateOnce(input, corpus, random);
      }
    }
    if (input.size() > max_bytes) input.resize(max_bytes);
    RunOne(input);
  }
  if (mutations > 0) {
    printf("fuzz: %llu mutations run, seed %llu\n",
           static_cast<unsigned long long>(mutations),
           static_cast<unsigned long long>(seed));
  }
  return MemoryWasBounded() ? 0 : 1;
}
