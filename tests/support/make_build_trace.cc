// Writes traces of made-up builds, for tests of what reads them:
//   make_build_trace SCENE FILE [N [PART]]
// SCENE: toy, broken, rows, hostile, long, copy, unknown-copy, compile,
// substitutions, findings, first, second, big (N operations; PART keeps
// processes of several such traces apart).
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/build_scene.h"
#include "tests/support/trace_builder.h"
#include "tracefs/base/bytes.h"
#include "tracefs/format/process_message.h"

namespace tracefs::test {
namespace {

// Takes what a scene tells and writes it down as a tracer would.
class TraceTaker {
 public:
  TraceTaker() {
    trace_.header().Set("mount.point", "/src");
    trace_.header().Set("backing.path", "/src");
  }

  void MountAt(const char* folder) {
    mount_ = folder;
    trace_.header().Set("mount.point", folder);
  }

  void Take(const ProcessRecord& record) {
    std::vector<std::byte> memory(size_t{64} << 10);
    format::MessageWriter out(memory);
    format::WriteProcessRecord(out, record);
    trace_.AddBytes(AsText(out.bytes()));
    Count();
  }
  void Take(const build::FileStep& step) {
    Event event;
    event.op = step.op;
    event.Set(Field::kTime, step.time_ns);
    event.Set(Field::kLatency, step.duration_ns);
    event.Set(Field::kTid, step.process.pid);
    if (step.inferred) event.Set(Field::kInferred, 1);
    if (step.flags != 0) event.Set(Field::kFlags, step.flags);
    if (step.inode != 0) event.Set(Field::kInode, step.inode);
    if (step.fh != 0) event.Set(Field::kFh, step.fh);
    if (step.fh_out != 0) event.Set(Field::kFhOut, step.fh_out);
    if (step.inode_out != 0) event.Set(Field::kInodeOut, step.inode_out);
    if (step.mode != 0) {
      event.Set(Field::kMode, step.mode);
      event.Set(Field::kSize, step.size);
    }
    if (step.mtime_ns != 0) event.Set(Field::kMtime, step.mtime_ns);
    event.SetResult(step.error != 0 ? -1 : static_cast<int64_t>(step.bytes),
                    static_cast<int>(step.error));
    event.target = step.target;
    References references;
    references.process = ProcessOf(step);
    const bool named = HasName(step.op) && step.op != Op::link_;
    if (named) {
      references.parent = Define(Parent(step.path));
      event.name = Name(step.path);
    } else if (!step.path.empty()) {
      references.path = Define(step.path);
    }
    if (!step.path2.empty()) {
      references.new_parent = Define(Parent(step.path2));
      event.new_name = Name(step.path2);
    }
    trace_.Add(event, references);
    Count();
  }

  void Save(const char* path) {
    trace_.EndBlock();
    trace_.Finish();
    std::ofstream(path, std::ios::binary) << trace_.bytes();
  }

 private:
  // Paths of a scene are absolute; those of a trace begin at the mount.
  std::string_view Inside(std::string_view path) const {
    if (mount_ == "/src" && path.starts_with("/src/")) path.remove_prefix(4);
    return path;
  }
  std::string_view Parent(std::string_view path) const {
    path = Inside(path);
    return path.substr(0, std::max<size_t>(path.rfind('/'), 1));
  }
  static std::string_view Name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
  }

  uint32_t Define(std::string_view path) {
    path = Inside(path);
    const std::string key(path);
    if (const auto known = paths_.find(key); known != paths_.end()) {
      return known->second;
    }
    uint32_t id;
    if (path.size() <= 1) {
      id = trace_.DefinePath(0, "");
    } else {
      const uint32_t parent = Define(Parent(path));
      id = trace_.DefinePath(parent, Name(path));
    }
    paths_.emplace(key, id);
    return id;
  }

  uint32_t ProcessOf(const build::FileStep& step) {
    uint32_t& id = processes_[step.process.pid];
    if (id == 0) {
      CallerInfo caller;
      caller.pid = caller.tid = step.process.pid;
      caller.ppid = step.ppid;
      caller.start_time = step.process.start_ticks;
      id = trace_.DefineProcess(caller);
    }
    return id;
  }

  void Count() {
    if (++in_block_ < 2000) return;
    trace_.EndBlock();
    paths_.clear();
    processes_.clear();
    in_block_ = 0;
  }

  TraceBuilder trace_;
  std::string mount_ = "/src";
  std::map<std::string, uint32_t> paths_;
  std::map<uint32_t, uint32_t> processes_;
  size_t in_block_ = 0;
};

using Scene = BuildScene<TraceTaker>;

// The toy build of tests/unit/build/dependencies_test.cc.
void Toy(Scene& scene) {
  scene.Running(1, "/usr/bin/make all");
  scene.Run(1, 2, "/usr/bin/gcc -c a.c -o a.o");
  scene.Run(2, 3, "/usr/lib/gcc/cc1 -D X a.c");
  scene.Open(3, "/src/a.c");
  scene.Open(3, "/src/a.h");
  scene.Create(3, "/src/a.o");
  scene.Exit(3);
  scene.Exit(2);
  scene.Run(1, 5, "/bin/bash /src/build.sh all");
  scene.Open(5, "/src/build.sh");
  scene.Open(5, "/src/many.txt");
  scene.Create(5, "/src/lds");
  scene.Exit(5);
  scene.Run(1, 9, "/bin/sh -c cat|sort>prog");
  scene.Fork(9, 6);
  scene.Fork(9, 7);
  scene.Exec(6, "/bin/cat a.o lds");
  scene.Pipes(6, {{1, 4711, PipeEnd::kWrite}});
  scene.Create(7, "/src/prog");
  scene.Exec(7, "/usr/bin/sort");
  scene.Pipes(7, {{0, 4711, PipeEnd::kRead}});
  scene.Open(6, "/src/a.o");
  scene.Open(6, "/src/lds");
  scene.Exit(6);
  scene.Kill(7, 13);
  scene.Exit(9, 2);
  scene.Exit(1, 2);
}

// What a compiler writes outside the mount breaks the chain.
void Broken(Scene& scene) {
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/usr/bin/gcc -c a.c");
  scene.Run(2, 3, "/usr/lib/gcc/cc1 a.c");
  scene.Miss(3, "/src/inc/a.h");
  scene.Open(3, "/src/a.c");
  scene.Open(3, "/src/a.h");
  scene.Exit(3);
  scene.Run(2, 4, "/usr/bin/as -o a.o /tmp/x.s");
  scene.Create(4, "/src/a.o", O_RDWR | O_CREAT);
  scene.Exit(4);
  scene.Exit(2);
  scene.Exit(1);
}

// Seven programs with long commands whose inputs were not traced make the parts
// of one file.
void Silent(Scene& scene) {
  scene.Running(1, "/bin/make");
  for (uint32_t pid = 2; pid < 9; ++pid) {
    scene.Run(1, pid, "/usr/bin/pack " + std::string(5000, 'x') + " -o all");
    scene.Create(pid, "/src/part" + std::to_string(pid));
    scene.Exit(pid);
  }
  scene.Run(1, 9, "/bin/cat");
  for (uint32_t pid = 2; pid < 9; ++pid) {
    scene.Open(9, "/src/part" + std::to_string(pid));
  }
  scene.Create(9, "/src/all");
  scene.Exit(9);
  scene.Exit(1);
}

// One operation of each kind, in the order of the table of the format.
void Rows(Scene& scene) {
  scene.Running(1, "/bin/sh run");
  scene.Run(1, 2, "/bin/all kinds");
  scene.Do(2, Op::lookup_, "/src/f");
  scene.Miss(2, "/src/none");
  for (const Op op : {Op::getattr_, Op::statx_, Op::access_, Op::statfs_,
                      Op::getxattr_, Op::listxattr_}) {
    scene.Do(2, op, "/src/f");
  }
  for (const Op op : {Op::opendir_, Op::readdir_, Op::releasedir_}) {
    build::FileStep step = scene.Step(2, op, "/src/d");
    step.mode = S_IFDIR | 0755;
    scene.Take(step);
  }
  scene.Open(2, "/src/f");
  scene.Open(2, "/src/f", O_WRONLY);
  scene.Open(2, "/src/f", O_RDWR | O_TRUNC | O_SYNC);
  scene.Do(2, Op::read_, "/src/f");
  scene.Create(2, "/src/new");
  scene.Do(2, Op::mknod_, "/src/fifo");
  scene.Do(2, Op::symlink_, "/src/link");
  for (const Op op : {Op::write_, Op::setattr_, Op::fallocate_, Op::setxattr_,
                      Op::removexattr_}) {
    scene.Do(2, op, "/src/new");
  }
  build::FileStep from = scene.Step(2, Op::open_, "/src/f");
  from.fh = 70;
  scene.Take(from);
  build::FileStep to = scene.Step(2, Op::open_, "/src/copy");
  to.fh = 71;
  to.flags = O_WRONLY;
  scene.Take(to);
  build::FileStep copy = scene.Step(2, Op::copy_file_range_, "/src/f");
  copy.fh = 70;
  copy.fh_out = 71;
  scene.Take(copy);
  scene.Do(2, Op::mkdir_, "/src/dir");
  scene.Do(2, Op::rmdir_, "/src/dir");
  scene.Do(2, Op::unlink_, "/src/new");
  scene.Do(2, Op::rename_, "/src/f", "/src/g");
  build::FileStep move = scene.Step(2, Op::rename_, "/src/d");
  move.path2 = "/src/e";
  move.mode = S_IFDIR | 0755;
  scene.Take(move);
  scene.Do(2, Op::link_, "/src/g", "/src/h");
  scene.Do(2, Op::readlink_, "/src/link");
  scene.Do(2, Op::flush_, "/src/g");
  scene.Rename(2, "a|b\nc");
  build::FileStep close = scene.Step(2, Op::release_, "/src/g");
  close.inferred = true;
  scene.Take(close);
  scene.Exit(2, 7);
  scene.Exit(1);
}

void Hostile(Scene& scene) {
  scene.Running(1, "/bin/sh run");
  uint32_t pid = 10;
  for (const char* name :
       {"a=b",    "a,b",      "a|b",   "a\nb",    "a\"b",
        "a%b",    "\xff\xfe", "a\\b",  "a\\",     "a;b",
        "a b",    "$a",       "a\r",   "\x1b[2J", "0: 1,0,0,0!Exit",
        "a:b",    "#x",       "[0]|a", "A[1]x",   "\n\nb\n",
        "Cont|a", "FN[0]a",   "|",     "a\\ b",   "a\\\\#b",
        "a,fd=3"}) {
    const std::string path = "/src/" + std::string(name);
    ++pid;
    scene.Run(1, pid, "/bin/" + std::string(name) + " " + name);
    scene.Open(pid, "/src/in" + std::string(name));
    scene.Create(pid, path);
    scene.Do(pid, Op::rename_, path, path + "2");
    scene.Exit(pid);
  }
}

// Names and arguments that are longer than a line of some formats may be.
void Long(Scene& scene, TraceTaker& taker) {
  scene.Running(1, "/bin/sh run");
  scene.Fork(1, 2);
  ProcessRecord exec;
  exec.kind = ProcessRecord::Kind::kExec;
  exec.time_ns = scene.now() + 1;
  exec.process = Scene::Key(2);
  exec.tid = 2;
  exec.exe = exec.program = "/bin/long";
  const std::string folder(3000, 'w');
  exec.cwd = folder;
  std::string argv = "/bin/long";
  argv += '\0' + std::string(5000, 'a') + '\0' + std::string(2500, 'b') + "\n" +
          std::string(2500, 'c') + '\0';
  exec.argv = argv;
  taker.Take(exec);
  // "ddd…/ddd…/ddd…": components may have 255 bytes.
  const auto deep = [](char c, size_t size) {
    std::string path(size, c);
    for (size_t i = 100; i < size; i += 100) path[i] = '/';
    return path;
  };
  // One of 1,805 bytes fits, of 2,005 not, of 3,006 in two pieces it does.
  scene.Open(2, "/src/" + deep('d', 1800));
  scene.Open(2, "/src/" + deep('e', 2000));
  scene.Open(2, "/src/" + deep('f', 1500) + "\n" + deep('g', 1500));
  scene.Exit(2);
  scene.Exit(1);
}

// As traces were before they had the name of what a copy writes; `opened`: but
// that it was opened.
void Copy(Scene& scene, bool opened) {
  scene.Running(1, "/bin/sh run");
  scene.Run(1, 2, "/bin/cat in");
  build::FileStep in = scene.Step(2, Op::open_, "/src/in");
  in.fh = 70;
  in.size = 900;
  scene.Take(in);
  build::FileStep out = scene.Step(2, Op::create_, "/src/out");
  out.flags = O_WRONLY;
  out.fh = 71;
  if (opened) scene.Take(out);
  build::FileStep copy = scene.Step(2, Op::copy_file_range_, "/src/in");
  copy.fh = 70;
  copy.fh_out = 71;
  copy.size = 900;
  copy.bytes = 777;
  scene.Take(copy);
  scene.Exit(2);
  scene.Exit(1);
}

// A shell that reads what each of very many commands says: $(echo).
void Substitutions(Scene& scene) {
  scene.Running(1, "/bin/sh run");
  for (uint32_t pid = 2; pid < 502; ++pid) {
    scene.Run(1, pid, "/bin/echo");
    scene.Pipes(pid, {{1, 5000 + pid, PipeEnd::kWrite}});
    scene.Exit(pid);
  }
  scene.Exit(1);
}

void Compile(Scene& scene) {
  const auto folder = [&](std::string_view path) {
    build::FileStep step = scene.Step(3, Op::getattr_, path);
    step.mode = S_IFDIR | 0755;
    scene.Take(step);
  };
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/usr/bin/gcc -Iinc -c a.c -o a.o");
  scene.Run(2, 3,
            "/usr/lib/gcc/x86_64-linux-gnu/12/cc1 -imultiarch "
            "x86_64-linux-gnu a.c");
  folder("/usr/lib/gcc/x86_64-linux-gnu/12/include");
  scene.Miss(3, "/usr/local/include/x86_64-linux-gnu");
  scene.Miss(3, "/usr/local/include");
  folder("/usr/include/x86_64-linux-gnu");
  folder("/usr/include");
  scene.Open(3, "/src/a.c");
  scene.Open(3, "/usr/include/stdio.h");
  scene.Exit(3);
  scene.Exit(2);
  scene.Exit(1);
}

// Jobs of make that get in each other's way, in every way there is.
void Findings(Scene& scene) {
  scene.Running(1, "/usr/bin/make -j3");
  scene.Run(1, 10, "/usr/bin/cc one");
  scene.Run(1, 11, "/usr/bin/gen two");
  scene.Run(1, 12, "/usr/bin/cc three");
  scene.Miss(10, "/src/inc/never.h");
  scene.Miss(12, "/src/inc/never.h");
  scene.Open(10, "/src/early.h");
  scene.Miss(10, "/src/late.h");
  scene.Open(11, "/src/early.h", O_WRONLY | O_TRUNC);
  scene.Create(11, "/src/late.h");
  scene.Create(11, "/src/big");
  scene.Open(12, "/src/big");
  scene.Do(11, Op::write_, "/src/big");
  scene.Create(10, "/src/log");
  scene.Open(12, "/src/log", O_WRONLY | O_APPEND);
  scene.Create(10, "/src/lock");
  scene.Do(10, Op::unlink_, "/src/lock");
  scene.Create(11, "/src/lock");
  scene.Create(10, "/src/out");
  scene.Create(12, "/src/out.new");
  scene.Do(12, Op::rename_, "/src/out.new", "/src/out");
  scene.Exit(10);
  scene.Exit(11);
  scene.Exit(12);
  scene.Exit(1);
}

// Two builds of the same; before the second a.c was changed, and now it
// includes b.h in place of a.h.
void Twice(Scene& scene, bool second) {
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, second ? "/usr/bin/cc -O2 -c a.c" : "/usr/bin/cc -c a.c");
  build::FileStep source = scene.Step(2, Op::open_, "/src/a.c");
  source.size = second ? 120 : 100;
  source.mtime_ns = second ? 2'000'000'000 : 1'000'000'000;
  scene.Take(source);
  scene.Open(2, second ? "/src/b.h" : "/src/a.h");
  scene.Create(2, "/src/a.o");
  scene.Exit(2);
  scene.Run(1, 3, "/usr/bin/ld a.o -o prog");
  scene.Open(3, "/src/a.o");
  scene.Create(3, "/src/prog");
  scene.Exit(3);
  scene.Exit(1);
}

// Compiler after compiler, each with 50 headers of 2,000 and a file of its own.
void Big(Scene& scene, size_t operations, uint32_t part) {
  const uint32_t first = 2 + part * 300'000;
  const uint32_t make = first - 1;
  scene.Running(make, "/usr/bin/make -j8");
  size_t done = 0;
  for (uint32_t n = 0; done < operations; ++n) {
    const uint32_t pid = first + n;
    const std::string number = std::to_string(pid);
    scene.Run(make, pid, "/usr/lib/gcc/cc1plus -O2 src/file" + number + ".cc");
    for (uint32_t h = 0; h < 50; ++h) {
      const uint32_t header = (n * 37 + h * h) % 2000;
      scene.Open(pid, "/src/include/d" + std::to_string(header % 40) +
                          "/header" + std::to_string(header) + ".h");
    }
    scene.Open(pid, "/src/file" + number + ".cc");
    scene.Create(pid, "/src/out/file" + number + ".o");
    scene.Exit(pid);
    done += 52;
  }
  const uint32_t ld = make + 299'999;
  scene.Run(make, ld, "/usr/bin/ld -o prog");
  for (uint32_t n = 0; n * 52 < operations; ++n) {
    scene.Open(ld, "/src/out/file" + std::to_string(first + n) + ".o");
  }
  scene.Create(ld, "/src/prog" + std::to_string(part));
  scene.Exit(ld);
}

int Main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "make_build_trace SCENE FILE [N [PART]]\n");
    return 2;
  }
  const std::string name = argv[1];
  TraceTaker taker;
  Scene scene(taker);
  if (name == "toy") {
    Toy(scene);
  } else if (name == "broken") {
    Broken(scene);
  } else if (name == "silent") {
    Silent(scene);
  } else if (name == "rows") {
    Rows(scene);
  } else if (name == "hostile") {
    Hostile(scene);
  } else if (name == "long") {
    Long(scene, taker);
  } else if (name == "copy" || name == "unknown-copy") {
    Copy(scene, name == "copy");
  } else if (name == "substitutions") {
    Substitutions(scene);
  } else if (name == "compile") {
    taker.MountAt("/");
    Compile(scene);
  } else if (name == "findings") {
    Findings(scene);
  } else if (name == "first" || name == "second") {
    Twice(scene, name == "second");
  } else if (name == "big") {
    Big(scene, argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 100'000,
        argc > 4 ? static_cast<uint32_t>(std::strtoul(argv[4], nullptr, 10))
                 : 0);
  } else {
    return 2;
  }
  taker.Save(argv[2]);
  return 0;
}

}  // namespace
}  // namespace tracefs::test

int main(int argc, char** argv) { return tracefs::test::Main(argc, argv); }
