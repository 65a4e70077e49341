#include "tracefs/build/compilation.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <string_view>

#include "tracefs/base/text.h"
#include "tracefs/build/patterns.h"

namespace tracefs::build {
namespace {

// Options whose value is the next word.
constexpr std::array<std::string_view, 38> kWithValue = {
    "-o",          "-MF",      "-MT",          "-MQ",
    "-MJ",         "-I",       "-D",           "-U",
    "-include",    "-imacros", "-isystem",     "-iquote",
    "-idirafter",  "-iprefix", "-iwithprefix", "-isysroot",
    "-x",          "-Xlinker", "-Xassembler",  "-Xpreprocessor",
    "-Xclang",     "-arch",    "-target",      "--sysroot",
    "-L",          "-l",       "-T",           "-u",
    "-z",          "-e",       "-aux-info",    "-dumpbase",
    "-dumpdir",    "--param",  "-mllvm",       "-dumpbase-ext",
    "-imultiarch", "--output"};

constexpr std::array<std::string_view, 5> kCSources = {".c", ".i", ".m", ".S",
                                                       ".s"};
constexpr std::array<std::string_view, 9> kCppSources = {
    ".cc", ".cp", ".cxx", ".cpp", ".CPP", ".c++", ".C", ".ii", ".mm"};

template <size_t size>
bool HasEnding(const std::array<std::string_view, size>& endings,
               std::string_view name) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view e) { return name.ends_with(e); });
}

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool Is(const Patterns& patterns, const Image& image) {
  const std::string exe(image.Binary());
  if (!exe.empty() && MatchesAny(patterns, exe)) return true;
  // As it was called: /usr/bin/gcc may be a link to /usr/bin/x86_64-…-gcc-12.
  if (image.argv.empty()) return false;
  const std::string& word = image.argv[0];
  std::string name;
  if (word.find('/') == word.npos) name = '/';
  name += word;
  return MatchesAny(patterns, name);
}

struct DriverKind {
  bool driver = false;
  bool cpp = false;
  bool integrated = false;
};

DriverKind KindOf(const BuildConfig& config, const Image& image) {
  DriverKind kind;
  kind.cpp = Is(config.gpp_spec, image) || Is(config.clangpp_spec, image);
  kind.driver = kind.cpp || Is(config.gcc_spec, image) ||
                Is(config.clang_spec, image) || Is(config.armcc_spec, image);
  kind.integrated = Is(config.integrated_clang_compilers, image) ||
                    Is(config.armcc_spec, image);
  return kind;
}

Compilation::Definition Define(const std::string& text, bool with_value) {
  const size_t equals = text.find('=');
  if (!with_value) return {text, ""};
  if (equals == text.npos) return {text, "1"};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

class DriverReader {
 public:
  DriverReader(const Image& image, bool cpp) : image_(image) {
    made_.language = cpp ? 2 : 1;
  }

  std::optional<Compilation> Read() {
    for (size_t i = 1; i < image_.argv.size(); ++i) {
      const std::string& word = image_.argv[i];
      const bool alone = std::find(kWithValue.begin(), kWithValue.end(),
                                   word) != kWithValue.end();
      if (alone && i + 1 < image_.argv.size()) {
        TakeOption(word, image_.argv[++i]);
      } else if (word.starts_with("-") && word != "-") {
        TakeWord(word);
      } else if (word.starts_with("@")) {
        continue;
      } else if (language_ != "none" || HasEnding(kCSources, word) ||
                 HasEnding(kCppSources, word)) {
        if (word == "-") continue;
        made_.files.push_back(Absolute(word));
        if (HasEnding(kCppSources, word)) made_.language = 2;
      }
    }
    if (made_.files.empty() || only_preprocess_) return std::nullopt;
    NameObjects();
    return made_;
  }

 private:
  std::string Absolute(const std::string& path) const {
    return AbsolutePath(image_.cwd, path);
  }

  void TakeOption(std::string_view option, const std::string& value) {
    if (option == "-o" || option == "--output") {
      output_ = value;
    } else if (option == "-D") {
      made_.definitions.push_back(Define(value, true));
    } else if (option == "-U") {
      made_.undefinitions.push_back(Define(value, false));
    } else if (option == "-I" || option == "-isystem" || option == "-iquote" ||
               option == "-idirafter") {
      made_.include_paths.push_back(Absolute(value));
    } else if (option == "-include" || option == "-imacros") {
      made_.headers.push_back(Absolute(value));
    } else if (option == "-x") {
      language_ = value;
      if (value.starts_with("c++")) made_.language = 2;
    }
  }

  void TakeWord(const std::string& word) {
    for (const std::string_view joined :
         {"-D", "-U", "-I", "-o", "-x", "-isystem", "-iquote", "-idirafter"}) {
      if (word.starts_with(joined) && word.size() > joined.size()) {
        if (joined == "-I" && word == "-I-") continue;
        return TakeOption(joined, word.substr(joined.size()));
      }
    }
    constexpr std::string_view kOutput = "--output=";
    if (word.starts_with(kOutput)) output_ = word.substr(kOutput.size());
    if (word == "-c" || word == "-S") compile_only_ = true;
    if (word == "-S") assembly_ = true;
    if (word == "-E" || word == "-M" || word == "-MM" ||
        word == "-fsyntax-only") {
      only_preprocess_ = true;
    }
  }

  void NameObjects() {
    if (!compile_only_) return;  // they are in a temporary place
    if (!output_.empty()) {
      made_.objects.push_back(Absolute(output_));
      return;
    }
    if (HasMoreInFiles(image_)) return;
    for (const std::string& file : made_.files) {
      std::string name(BaseName(file));
      name.resize(std::min(name.rfind('.'), name.size()));
      made_.objects.push_back(Absolute(name + (assembly_ ? ".s" : ".o")));
    }
  }

  const Image& image_;
  Compilation made_;
  std::string output_;
  std::string language_ = "none";
  bool compile_only_ = false;
  bool assembly_ = false;
  bool only_preprocess_ = false;
};

}  // namespace

// The kernel gives an interpreter the script's name after its own word and at
// most one more.
std::string ProgramPath(const Image& image) {
  const auto names_it = [&](size_t i) {
    return i < image.argv.size() && image.argv[i] == image.program;
  };
  const bool script =
      !image.program.empty() && !names_it(0) && (names_it(1) || names_it(2));
  if (!image.exe.empty() && !script) return image.exe;
  if (image.program.empty()) return {};
  return AbsolutePath(image.cwd, image.program);
}

bool IsLauncher(const Image& image) {
  constexpr std::array<std::string_view, 4> kLaunchers = {"ccache", "sccache",
                                                          "distcc", "icecc"};
  return std::ranges::find(kLaunchers, BaseName(image.Binary())) !=
         kLaunchers.end();
}

Image Launched(const Image& image) {
  Image launched = image;
  while (IsLauncher(launched) && !launched.argv.empty() &&
         BaseName(launched.argv[0]) == BaseName(launched.Binary())) {
    // ccache takes settings in front of the command.
    const auto command = std::ranges::find_if(
        launched.argv.begin() + 1, launched.argv.end(),
        [](std::string_view word) { return word.find('=') == word.npos; });
    if (command == launched.argv.end() || command->starts_with('-')) break;
    launched.argv.erase(launched.argv.begin(), command);
    launched.exe = launched.program = launched.argv[0];
  }
  return launched;
}

std::string_view ResponseFile(std::string_view word) {
  return TakePrefix(word, "@") ? word : std::string_view();
}

bool HasMoreInFiles(const Image& image) {
  return std::ranges::any_of(image.argv, [](std::string_view word) {
    return !ResponseFile(word).empty();
  });
}

bool IsDriver(const BuildConfig& config, const Image& image) {
  return KindOf(config, image).driver;
}

std::optional<Compilation> ReadDriver(const BuildConfig& config,
                                      const Image& image,
                                      const Compilers& compilers) {
  const DriverKind kind = KindOf(config, image);
  if (!kind.driver) return std::nullopt;
  // What a driver runs of itself to compile has been counted with it.
  if (image.argv.size() > 1 && image.argv[1] == "-cc1") return std::nullopt;
  std::optional<Compilation> made = DriverReader(image, kind.cpp).Read();
  if (made || !HasMoreInFiles(image)) return made;
  for (const auto& compiler : compilers) {
    const bool cpp = BaseName(compiler->Binary()).ends_with("plus");
    std::optional<Compilation> one = DriverReader(*compiler, cpp).Read();
    if (!one) continue;
    if (made) {
      made->files.insert(made->files.end(), one->files.begin(),
                         one->files.end());
    } else {
      made = std::move(one);
    }
  }
  return made;
}

bool LaunchesDriver(const BuildConfig& config, const Image& image) {
  return IsLauncher(image) && IsDriver(config, Launched(image));
}

bool IsCompilerProper(const Image& image) {
  const std::string_view name = BaseName(image.Binary());
  return name == "cc1" || name == "cc1plus" || name == "cc1obj" ||
         name == "cc1objplus";
}

bool IsIntegrated(const BuildConfig& config, const Image& image) {
  const DriverKind kind = KindOf(config, image);
  return kind.driver && kind.integrated;
}

// gcc/cppdefault.cc, as Debian configures it: PREFIX/lib/gcc/TARGET/VERSION is
// where the compiler is, or has its files if it is in PREFIX/libexec.
std::vector<std::string> SystemFolders(const Image& compiler) {
  const auto has = [&](std::string_view word) {
    return std::ranges::find(compiler.argv, word) != compiler.argv.end();
  };
  const std::string binary(compiler.Binary());
  const size_t gcc = binary.rfind("/gcc/");
  const size_t end = binary.rfind('/');
  if (has("-nostdinc") || gcc == binary.npos || end <= gcc + 4) return {};
  const std::string below =
      binary.substr(gcc, end - gcc);  // /gcc/TARGET/VERSION
  std::string prefix = binary.substr(0, gcc);
  prefix.resize(std::min(prefix.rfind('/'), prefix.size()));
  const std::string own = prefix + "/lib" + below;
  const std::string version = below.substr(below.rfind('/') + 1);
  const std::string target = below.substr(5, below.rfind('/') - 5);
  const auto value_of = [&](std::string_view option) -> std::string {
    const auto found = std::ranges::find(compiler.argv, option);
    const bool there = found != compiler.argv.end();
    return there && found + 1 != compiler.argv.end() ? *(found + 1) : "";
  };
  const std::string word = value_of("-imultiarch");
  const std::string multiarch = word.empty() ? "" : "/" + word;
  const std::string system = value_of("-isysroot") + "/usr";
  std::vector<std::string> folders;
  if (BaseName(binary).ends_with("plus") && !has("-nostdinc++")) {
    const std::string cpp = "/c++/" + version;
    folders = {prefix + "/include" + cpp, prefix + "/include" + multiarch + cpp,
               prefix + "/include" + cpp + "/backward"};
  }
  folders.push_back(own + "/include");
  if (!multiarch.empty()) {
    folders.push_back(system + "/local/include" + multiarch);
  }
  folders.push_back(system + "/local/include");
  folders.push_back(own + "/include-fixed");
  folders.push_back(prefix + "/" + target + "/include");
  if (!multiarch.empty()) folders.push_back(system + "/include" + multiarch);
  folders.push_back(system + "/include");
  return folders;
}

std::optional<Linking> FindLinking(const BuildConfig& config,
                                   const Image& image) {
  if (Is(config.ld_spec, image)) {
    std::string output = "a.out";
    for (size_t i = 1; i < image.argv.size(); ++i) {
      const std::string& word = image.argv[i];
      if ((word == "-o" || word == "--output") && i + 1 < image.argv.size()) {
        output = image.argv[++i];
      } else if (word.starts_with("--output=")) {
        output = word.substr(9);
      } else if (word == "--version" || word == "--help" || word == "-v") {
        if (image.argv.size() == 2) return std::nullopt;
      }
    }
    return Linking{AbsolutePath(image.cwd, output), true};
  }
  if (!Is(config.ar_spec, image) || image.argv.size() < 3) return std::nullopt;
  // ar [-]OPERATIONS ARCHIVE FILE…; only what writes the archive.
  size_t at = 1;
  while (at < image.argv.size() && image.argv[at].starts_with("--")) ++at;
  if (at + 1 >= image.argv.size()) return std::nullopt;
  if (image.argv[at].find_first_of("rqmd") == std::string::npos) {
    return std::nullopt;
  }
  return Linking{AbsolutePath(image.cwd, image.argv[at + 1]), false};
}

}  // namespace tracefs::build
