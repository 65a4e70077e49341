// tracefs-dump as a program of its own, for scripts/demo. What is installed is
// one program of several commands: tracefs/tools/together.
#include "tracefs/tools/dump/main.h"

int main(int argc, char** argv) { return tracefs::DumpMain(argc, argv); }
