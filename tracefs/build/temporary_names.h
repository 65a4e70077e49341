// Names that programs make up for files they need for a moment, as compilers do
// in /tmp: another one each time, so that two builds differ in nothing else.
#pragma once

#include <string>
#include <string_view>

namespace tracefs::build {

// Whether `path` lies in a folder for such files and has such a name there, or
// is in a folder with one: /tmp/ccAb3dE9.s, /tmp/tmp.q8Xc2LmPz1/conf.c. Names
// are those of gcc, clang, mktemp(1) and Python's tempfile.
bool IsTemporary(std::string_view path);

// `text` with each made-up part as '*': "as -o a.o /tmp/*.s".
std::string WithoutTemporaryNames(std::string_view text);

}  // namespace tracefs::build
