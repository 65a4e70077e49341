// The program of all commands that read traces or ask a mount: each is a name
// of it. See tracefs/command/called_as.h.
#include "tracefs/tools/anon/main.h"

#include "tracefs/command/called_as.h"
#include "tracefs/tools/ctl/main.h"
#include "tracefs/tools/deps/main.h"
#include "tracefs/tools/dump/main.h"
#include "tracefs/tools/import/main.h"
#include "tracefs/tools/keygen/main.h"
#include "tracefs/tools/replay/main.h"
#include "tracefs/tools/report/main.h"
#include "tracefs/tools/together/front_command.h"
#include "tracefs/tools/verify/main.h"

namespace {

int Front(int argc, char** argv);

// CMakeLists.txt makes the other names.
constexpr tracefs::CalledAs kCommands[] = {
    {"tracefs-dump", &tracefs::DumpMain},
    {"tracefs", &Front},
    {"tracefs-anon", &tracefs::AnonMain},
    {"tracefs-ctl", &tracefs::CtlMain},
    {"tracefs-deps", &tracefs::DepsMain},
    {"tracefs-import", &tracefs::ImportMain},
    {"tracefs-keygen", &tracefs::KeygenMain},
    {"tracefs-replay", &tracefs::ReplayMain},
    {"tracefs-report", &tracefs::ReportMain},
    {"tracefs-verify", &tracefs::VerifyMain},
};

int Front(int argc, char** argv) {
  return tracefs::FrontMain(kCommands, argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  return tracefs::WhatWeAreCalled(kCommands, argc, argv).main(argc, argv);
}
