// How Tracefs is installed (doctor.h): what mount(8), systemd and the log of a
// running mount find of it.
#include <sys/stat.h>
#include <unistd.h>

#include "tracefs/base/join.h"
#include "tracefs/base/log_socket.h"
#include "tracefs/mount/doctor.h"

namespace tracefs {
namespace {

using State = Finding::State;

Finding CheckHelpers(const Machine& machine) {
  Finding f;
  f.subject = "mount helpers";
  std::string missing;
  for (const char* name : {"mount.fuse.tracefs", "umount.fuse.tracefs"}) {
    if (machine.Has(std::string("/sbin/") + name)) continue;
    AppendWord(name, " and ", &missing);
  }
  f.found = missing.empty() ? "in /sbin" : "no " + missing + " in /sbin";
  if (missing.empty()) return f;
  f.state = State::kLimited;
  f.consequence =
      "mount -t fuse.tracefs and fstab do not know it; umount returns before a "
      "trace is complete";
  f.advice =
      "install the package tracefs, or link them there from where cmake "
      "--install has put them";
  return f;
}

Finding CheckUnit(const Machine& machine) {
  Finding f;
  f.subject = "unit";
  if (!machine.Has("/run/systemd/system")) {
    f.found = "systemd does not run here, and none is needed";
    return f;
  }
  for (const char* folder :
       {"/etc/systemd/system/", "/run/systemd/system/",
        "/usr/local/lib/systemd/system/", "/lib/systemd/system/",
        "/usr/lib/systemd/system/"}) {
    if (machine.Has(std::string(folder) + "tracefs@.service")) {
      f.found = "tracefs@.service in " + std::string(folder);
      return f;
    }
  }
  f.state = State::kLimited;
  f.found = "no tracefs@.service";
  f.consequence = "systemctl start tracefs@NAME has nothing to start";
  f.advice = "install the package tracefs";
  return f;
}

Finding CheckLog(const Machine& machine) {
  Finding f;
  f.subject = "log";
  if (machine.Has(kJournalSocket)) {
    f.found = "the journal; journalctl -t tracefs-mount";
  } else if (machine.Has(kSyslogSocket)) {
    f.found = "syslog at " + std::string(kSyslogSocket);
  } else {
    f.state = State::kLimited;
    f.found = "neither the journal nor syslog";
    f.consequence =
        "what a mount in the background has to say is lost; tracefs-ctl MNT "
        "list and stats still tell";
    f.advice = "run a syslogd, or give --log syslog:SOCKET";
  }
  return f;
}

// `has`: the library of this build, if there is one.
Finding CheckBroker(const std::string& broker, const std::string& driver,
                    const std::string& library, const std::string& has) {
  Finding f;
  f.subject = "output to " + broker;
  if (!has.empty()) {
    f.found = "by " + has;
    return f;
  }
  f.state = State::kLimited;
  f.found = "this build is without " + library;
  f.consequence = "configs with the output driver " + driver + " are refused";
  f.advice =
      "install the package tracefs, or " + library + "-dev and build again";
  return f;
}

}  // namespace

std::vector<Finding> ExamineInstallation(const Machine& machine) {
  return {CheckHelpers(machine), CheckUnit(machine), CheckLog(machine),
          CheckBroker("NATS", "nats", "libnats", machine.nats_library),
          CheckBroker("Kafka", "kafka", "librdkafka", machine.kafka_library)};
}

}  // namespace tracefs
