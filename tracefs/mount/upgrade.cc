// A mount that goes on with another program (tracefs/survive/hand_over.h): what
// it leaves to that one, and what that one makes of it.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <thread>
#include <utility>

#include "tracefs/base/detached_child.h"
#include "tracefs/base/version.h"
#include "tracefs/crypto/cipher.h"
#include "tracefs/format/constants.h"
#include "tracefs/mount/mount_run.h"
#include "tracefs/pipeline/block_builder.h"
#include "tracefs/survive/descriptors.h"
#include "tracefs/survive/hand_over.h"
#include "tracefs/survive/keeper.h"

namespace tracefs {

using survive::Inheritance;

namespace {

// To be changed with the meaning of anything that one program leaves to
// another: records and texts in the area, what is said here, what is asked of
// helper processes. Sizes are seen without it.
constexpr std::string_view kStateVersion = "tracefs-state-2";

// What is under way is done again by the next daemon where it takes longer.
constexpr auto kMostToDrain = std::chrono::milliseconds(100);

UniqueFd CopyOf(int fd) {
  return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

// Files of this device that the process has mapped: its program and libraries.
bool RunsFrom(uint64_t device) {
  std::ifstream maps("/proc/self/maps");
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), " %02x:%02x ", major(device),
                minor(device));
  for (std::string line; std::getline(maps, line);) {
    if (line.find(text.data()) != line.npos) return true;
  }
  return false;
}

// Version, and sizes of all that both programs must have alike.
std::string StateVersion() {
  using namespace survive;  // NOLINT: many of it
  std::string text(kStateVersion);
  for (const size_t size :
       {sizeof(Header), sizeof(NodeRecord), sizeof(OpenRecord),
        sizeof(LockRecord), sizeof(WorkSlot), sizeof(TraceRecord),
        sizeof(OutputState), sizeof(OrderRecord), sizeof(Block),
        sizeof(BlockInfo), size_t{Area::kBlockBytes}, size_t{kOpCount},
        size_t{kLossReasonCount}, size_t{format::kFormatVersion}}) {
    text += '/' + std::to_string(size);
  }
  return text;
}

}  // namespace

// --- The program that leaves.

Result<Inheritance> MountRun::Leave() const {
  Inheritance left;
  left.Set("state", StateVersion());
  left.Set("version", kVersion);
  left.Set("source", options_.source);
  left.Set("mount_point", session_->mount_point());
  left.Set("config", options_.config);
  std::string words;
  for (const std::string& word : options_.fuse_options) words += word + '\0';
  left.Set("fuse_options", words);
  left.SetNumber("reloads", reloads_);
  left.Set("oom_score", survive::OomScore());
  left.SetNumber("properties", header_.properties.size());
  for (size_t i = 0; i < header_.properties.size(); ++i) {
    const auto& [key, value] = header_.properties[i];
    left.Set("property." + std::to_string(i), key + '=' + value);
  }
  left.Set("tracers", kept_->config.Encode());
  std::string serials;
  for (const format::Serial& serial : kept_->serials) serials += AsText(serial);
  left.Set("serials", serials);
  left.SetNumber("tracer_files", kept_->files.size());
  left.SetNumber("watchdog", static_cast<uint64_t>(watchdog_->pid()));
  left.SetNumber("watchdog_place", PlaceOf(watchdog_->link()));
  left.SetNumber("device", socket_.device);
  std::vector<std::pair<std::string, int>> files = {
      {"area", area_->file()},
      {"fuse", session_->device()},
      {"tree", kept_source_.get()},
      {"watchdog", watchdog_->link().keeper()}};
  for (size_t i = 0; i < kept_->files.size(); ++i) {
    files.emplace_back("tracer." + std::to_string(i), kept_->files[i].get());
  }
  if (service_.there()) {
    left.SetNumber("service_ns",
                   static_cast<uint64_t>(service_.interval().count()));
    files.emplace_back("service", service_.socket());
  }
  if (metrics_ != nullptr) {
    left.Set("metrics", metrics_->address());
    files.emplace_back("metrics", metrics_->listener());
  }
  if (socket_.server != nullptr) {
    left.Set("control", socket_.server->path());
    left.Set("control_name", socket_.server->name());
    files.emplace_back("control", socket_.server->listener());
    files.emplace_back("control_folder", socket_.server->directory());
  }
  if (named_.last_word != nullptr) {
    files.emplace_back("last_word", named_.last_word->file());
    files.emplace_back("last_word_folder", named_.last_word->folder());
  }
  for (const auto& [name, fd] : files) {
    if (Status s = left.SetFile(name, fd); !s.ok()) return s;
  }
  return left;
}

survive::ProgramToRun MountRun::OtherProgram() const {
  survive::ProgramToRun program = {.path = program_,
                                   .arguments = options_.words,
                                   .inheritance = {},
                                   .obstacle = upgrade_obstacle_};
  if (!program.obstacle.empty()) return program;
  Result<Inheritance> left = Leave();
  if (left.ok()) {
    program.inheritance = *std::move(left);
  } else {
    program.obstacle = left.status().message();
  }
  return program;
}

void MountRun::KeepTracersOpen(const KnownNames& names) {
  Result<KeptTracers> kept = KeepTracers(config_, plans_, names);
  if (kept.ok()) {
    kept_.emplace(*std::move(kept));
  } else {
    upgrade_obstacle_ = kept.status().message();
  }
}

Status MountRun::Drain() {
  const auto end = std::chrono::steady_clock::now() + kMostToDrain;
  bool quiet = session_->Pause(kMostToDrain);
  const auto& side_pool = fs_->side_pool();
  while (side_pool.running() != 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  quiet = quiet && side_pool.running() == 0;
  if (!quiet && fs_->may_hang_below()) {
    return Status::SystemSaid(
        EBUSY,
        "no upgrade: a file below does not answer, and a request waits "
        "for it");
  }
  pipeline_.KeepAll();
  return Status::Ok();
}

Status MountRun::Upgrade() {
  if (area_->header().tracing.load() != survive::Tracing::kOn) {
    return Status::Invalid(
        "no upgrade: daemons of this mount have crashed again and again, and "
        "it goes on without traces; unmount it and mount it again");
  }
  return survive::AskForUpgrade(
      *area_, [this] { return Drain(); }, [this] { session_->Resume(); });
}

// --- The program that takes over.

Status MountRun::InheritState() {
  const Inheritance& left = *inherited_;
  if (left.Text("state") != StateVersion()) {
    return Status::Invalid(
        "the program that would take over (Tracefs " + std::string(kVersion) +
        ") keeps its state otherwise ('" + StateVersion() + "' and not '" +
        left.Text("state") + "'); unmount and mount again to change to it");
  }
  if (!options_.survive) return Status::Invalid("--survive yes is missing");
  const Result<int> file = left.File("area");
  if (!file.ok()) return file.status();
  Result<std::unique_ptr<survive::Area>> area =
      survive::Area::Open(UniqueFd(*file), survive::IsTrial(left));
  if (!area.ok()) return area.status();
  area_ = *std::move(area);
  // Nothing else was handed over, and nothing goes on to what is run from here.
  std::vector<int> kept = left.Files();
  std::ranges::copy(survive::NumbersIn(*area_), std::back_inserter(kept));
  CloseInheritedFiles(kept);
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  options_.source = left.Text("source");
  options_.mount_point = left.Text("mount_point");
  options_.config = left.Text("config");
  options_.fuse_options.clear();
  const std::string words = left.Text("fuse_options");
  for (size_t at = 0; at < words.size();) {
    options_.fuse_options.emplace_back(words.c_str() + at);
    at += options_.fuse_options.back().size() + 1;
  }
  reloads_ = left.Number("reloads") != 0;
  begun_to_trace_->store(true);
  if (RunsFrom(left.Number("device"))) {
    return Status::Invalid(
        "the program or its libraries lie in the mount itself, which nobody "
        "serves while another program takes over");
  }
  return Status::Ok();
}

Result<UniqueFd> MountRun::Inherited(std::string_view name) const {
  const Result<int> fd = inherited_->File(name);
  if (!fd.ok()) return fd.status();
  return UniqueFd(*fd);
}

Status MountRun::InheritProcess() {
  const Inheritance& left = *inherited_;
  Session::BlockSignals();
  descriptors_ = RaiseLimits();
  machine_ = SizeOfMachine();
  KeepLittleMemory(machine_);
  survive::RememberOomScore(left.Text("oom_score"));
  if (Status s = DropAlways(); !s.ok()) return s;
  Result<UniqueFd> keeper = Inherited("watchdog");
  if (!keeper.ok()) return keeper.status();
  const auto& places = area_->header().helpers;
  const size_t place = left.Number("watchdog_place");
  const int helper = place < places.size() ? places[place].load() : -1;
  watchdog_ = Watchdog::Adopt(static_cast<pid_t>(left.Number("watchdog")),
                              *std::move(keeper),
                              helper >= 0 ? CopyOf(helper) : UniqueFd());
  if (left.Has("file.service")) {
    Result<UniqueFd> service = Inherited("service");
    if (!service.ok()) return service.status();
    service_ = ServiceManager::Adopt(
        *std::move(service),
        std::chrono::nanoseconds(left.Number("service_ns")));
  }
  return OpenProcFolders();
}

Status MountRun::InheritOutputs() {
  const Inheritance& left = *inherited_;
  if (left.Has("file.metrics")) {
    Result<UniqueFd> listener = Inherited("metrics");
    if (!listener.ok()) return listener.status();
    metrics_ = MetricsServer::Adopt(*std::move(listener), left.Text("metrics"));
  }
  KeptTracers kept;
  std::optional<Order> order = Order::Decode(left.Text("tracers"));
  if (!order) return Status::Invalid("what is said of the tracers is wrong");
  kept.config = *std::move(order);
  const std::string serials = left.Text("serials");
  for (size_t at = 0; at + sizeof(format::Serial) <= serials.size();
       at += sizeof(format::Serial)) {
    std::memcpy(kept.serials.emplace_back().data(), serials.data() + at,
                sizeof(format::Serial));
  }
  for (size_t i = 0; i < left.Number("tracer_files"); ++i) {
    Result<UniqueFd> file = Inherited("tracer." + std::to_string(i));
    if (!file.ok()) return file.status();
    kept.files.push_back(*std::move(file));
  }
  Result<std::vector<TracerPlan>> plans =
      PlanKept(kept, names_, begun_to_trace_, &config_);
  if (!plans.ok()) return plans.status();
  plans_ = *std::move(plans);
  kept_.emplace(std::move(kept));
  return Status::Ok();
}

Status MountRun::InheritTree() {
  Result<UniqueFd> tree = Inherited("tree");
  if (!tree.ok()) return tree.status();
  kept_source_ = *std::move(tree);
  source_.fd = CopyOf(kept_source_.get());
  if (!source_.fd) return Status::System(errno, "the source");
  const Result<uint32_t> max_read = MaxReadOf(options_.fuse_options);
  if (!max_read.ok()) return max_read.status();
  max_read_ = *max_read;
  for (size_t i = 0; i < inherited_->Number("properties"); ++i) {
    const std::string text = inherited_->Text("property." + std::to_string(i));
    const size_t equals = text.find('=');
    if (equals == text.npos) continue;
    header_.Set(text.substr(0, equals), text.substr(equals + 1));
  }
  header_.Set("tracefs.version", kVersion);
  return Status::Ok();
}

Status MountRun::InheritTransport() {
  forwards_locks_ = NamesLocks(plans_);
  Result<TransportChoice> transport =
      ChooseTransport(options_.transport,
                      {.forwards_locks = forwards_locks_,
                       .round_trips = {},
                       .machine = machine_},
                      /*obstacle=*/"");
  if (!transport.ok()) return transport.status();
  transport_ = *std::move(transport);
  return ChooseThreads();
}

Status MountRun::InheritMount() {
  const Inheritance& left = *inherited_;
  named_.mount_point = options_.mount_point;
  named_.config = options_.config;
  LoadCiphers();
  ::tzset();
  if (left.Has("file.last_word")) {
    Result<UniqueFd> file = Inherited("last_word");
    Result<UniqueFd> folder = Inherited("last_word_folder");
    if (!file.ok()) return file.status();
    if (!folder.ok()) return folder.status();
    named_.last_word = LastWord::Adopt(*std::move(folder), *std::move(file),
                                       options_.mount_point);
  }
  Result<UniqueFd> connection = Inherited("fuse");
  if (!connection.ok()) return connection.status();
  if (survive::IsTrial(left)) {
    std::array<int, 2> ends;
    if (::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      return Status::System(errno, "a socket");
    }
    *connection = UniqueFd(ends[0]);
    // The other one stays open for as long as the trial lasts.
  }
  Result<std::unique_ptr<Session>> session = Session::Adopt(
      options_, transport_, *fs_, *watchdog_, *std::move(connection));
  if (!session.ok()) return session.status();
  session_ = *std::move(session);
  socket_.device = left.Number("device");
  if (left.Has("file.control")) {
    Result<UniqueFd> listener = Inherited("control");
    Result<UniqueFd> folder = Inherited("control_folder");
    if (!listener.ok()) return listener.status();
    if (!folder.ok()) return folder.status();
    ControlServerOptions options;
    options.name = left.Text("control_name");
    options.owner = ::geteuid();
    Result<std::unique_ptr<ControlServer>> server =
        ControlServer::Adopt(std::move(options), *std::move(folder),
                             *std::move(listener), left.Text("control"));
    if (!server.ok()) return server.status();
    socket_.server = *std::move(server);
  }
  log_.SetMount(session_->mount_point());
  log_.GoOn();
  return Status::Ok();
}

void MountRun::Inherit() {
  program_ = Resolved("/proc/self/exe");
  for (const auto stage :
       {&MountRun::InheritState, &MountRun::InheritProcess,
        &MountRun::InheritOutputs, &MountRun::InheritTree,
        &MountRun::MakeProcesses, &MountRun::InheritTransport,
        &MountRun::MakeFileSystem, &MountRun::InheritMount,
        &MountRun::AgreeIfTrial}) {
    if (Status s = (this->*stage)(); !s.ok()) {
      survive::Decline(*inherited_, area_.get(), s.message());
    }
  }
}

// What the real one would do up to where there is no way back.
Status MountRun::AgreeIfTrial() {
  if (!survive::IsTrial(*inherited_)) return Status::Ok();
  fs_->KeepIn(*area_);
  if (Status s = session_->Rehearse(*fs_); !s.ok()) return s;
  survive::Descriptors descriptors;
  if (Status s = descriptors.Keep(*area_); !s.ok()) return s;
  survive::Agree(*inherited_);
}

}  // namespace tracefs
