#include "tracefs/tools/ctl/request.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/config.h"
#include "drivers/output/broker/courier.h"
#include "drivers/output/file_name.h"
#include "drivers/output/remote/dialer.h"
#include "drivers/output/table.h"
#include "filters/input/filter.h"
#include "filters/input/name_service.h"
#include "filters/input/name_table.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/durable.h"
#include "tracefs/base/enclosed_folder.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/join.h"
#include "tracefs/base/log_socket.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/units.h"
#include "tracefs/broker/spec.h"
#include "tracefs/control/wish_json.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/ctl/answer_json.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {
namespace {

using Json = nlohmann::ordered_json;

// JSON is UTF-8; a filter or config with other bytes can write them as \xHH.
Result<std::string> Dumped(const Json& request, const std::string& what,
                           const std::string& text) {
  if (!IsUtf8(text)) {
    return Status::Invalid(what +
                           ": not UTF-8; write such bytes as \\xHH in quotes");
  }
  return request.dump();
}

// The system's users and groups, and which of them were asked for.
class AskedNames final : public NameService {
 public:
  Result<std::optional<uint32_t>> UserId(
      const std::string& name) const override {
    return Remember(name, SystemNameService().UserId(name), &users_);
  }
  Result<std::optional<uint32_t>> GroupId(
      const std::string& name) const override {
    return Remember(name, SystemNameService().GroupId(name), &groups_);
  }
  void AddTo(Json* request) const {
    (*request)["users"] = users_;
    (*request)["groups"] = groups_;
  }

 private:
  static Result<std::optional<uint32_t>> Remember(
      const std::string& name, Result<std::optional<uint32_t>> id, Json* all) {
    if (id.ok() && id->has_value()) (*all)[name] = **id;
    return id;
  }

  mutable Json users_ = Json::object();
  mutable Json groups_ = Json::object();
};

Result<Json> Check(ControlClient& client, const Json& request) {
  const Result<std::string> answer = client.Call(request.dump());
  if (!answer.ok()) return answer.status();
  Json json = Json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return NoSense();
  return json;
}

}  // namespace

namespace {

// What an output may be written to though it is there; keeps errno.
bool IsCharacterDevice(const std::string& path) {
  const int error = errno;
  struct stat st;
  const bool is = ::lstat(path.c_str(), &st) == 0 && S_ISCHR(st.st_mode);
  errno = error;
  return is;
}

}  // namespace

NewFiles::~NewFiles() {
  if (kept_) return;
  for (const File& file : files_) {
    if (file.path.empty()) continue;  // was there before
    struct stat ours;
    struct stat there;
    if (::fstat(file.fd.get(), &ours) == 0 &&
        ::lstat(file.path.c_str(), &there) == 0 &&
        ours.st_dev == there.st_dev && ours.st_ino == there.st_ino) {
      static_cast<void>(::unlink(file.path.c_str()));
    }
  }
}

void NewFiles::KeepIfUnknown(const Status& status) {
  // The daemon may have been killed, and another have gone on.
  if (status.error() == ETIMEDOUT || status.error() == ECONNRESET) Keep();
}

Status NewFiles::Make(const std::string& path, bool sync, bool readable) {
  UniqueFd fd(::open(path.c_str(),
                     (readable ? O_RDWR : O_WRONLY) | O_CREAT | O_EXCL |
                         O_NOFOLLOW | O_CLOEXEC | O_NOCTTY |
                         (sync ? O_DSYNC : 0),
                     0600));
  if (!fd && errno == EEXIST && IsCharacterDevice(path)) {
    UniqueFd device(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC |
                                             O_NOCTTY | (sync ? O_DSYNC : 0)));
    if (!device) return Status::System(errno, "device '" + path + "'");
    files_.push_back({"", std::move(device)});
    return Status::Ok();
  }
  if (!fd) {
    const int error = errno;
    return Status::System(
        error, "trace file '" + path + "'" +
                   (error == EEXIST ? " (a trace never replaces a file; remove "
                                      "it or choose another name)"
                                    : ""));
  }
  files_.push_back({path, std::move(fd)});
  return sync ? SyncFolderOf(path) : Status::Ok();
}

Status NewFiles::OpenFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == path.npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
  UniqueFd fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return Status::System(errno, "the folder of '" + path + "'");
  // The daemon in its sandbox gets this directory and no way out of it.
  files_.push_back({"", EncloseFolder(std::move(fd))});
  return Status::Ok();
}

Status NewFiles::OpenDevice(const std::string& path, bool sync) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC |
                                       O_NOCTTY | (sync ? O_DSYNC : 0)));
  if (!fd) return Status::System(errno, "device '" + path + "'");
  files_.push_back({"", std::move(fd)});
  return Status::Ok();
}

// Never waits for the other end of a FIFO. Its user checks its owner and who
// may read it.
Status NewFiles::OpenToRead(const std::string& path) {
  UniqueFd fd(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return Status::System(errno, "'" + path + "'");
  files_.push_back({"", std::move(fd)});
  return Status::Ok();
}

Status NewFiles::OpenToAppend(const std::string& path) {
  UniqueFd fd(::open(path.c_str(),
                     O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK |
                         O_CLOEXEC | O_NOCTTY,
                     0600));
  if (!fd) return Status::System(errno, "anchor file '" + path + "'");
  files_.push_back({"", std::move(fd)});
  return Status::Ok();
}

Status NewFiles::OpenDirectory(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return Status::System(errno, "directory '" + path + "'");
  // As OpenFolderOf; that one could not be synced.
  const UniqueFd enclosed = EncloseFolder(std::move(fd));
  fd.Reset(::openat(enclosed.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return Status::System(errno, "directory '" + path + "'");
  files_.push_back({"", std::move(fd)});
  return Status::Ok();
}

// Our environment and our keyring, not the daemon's.
Status NewFiles::ReadSecret(const std::string& source) {
  const Result<KeySource> parsed = ParseKeySource(source);
  if (!parsed.ok()) return parsed.status();
  const Result<SecretMemory> text = ReadSecretText(*parsed);
  if (!text.ok()) return text.status();
  std::string_view line = AsText(text->bytes());
  line = line.substr(0, line.find('\0'));
  UniqueFd fd(::memfd_create("tracefs-secret", MFD_CLOEXEC));
  if (!fd) return Status::System(errno, parsed->Text());
  if (Status s = WriteAll(fd.get(), AsBytes(line), parsed->Text()); !s.ok()) {
    return s;
  }
  files_.push_back({"", std::move(fd)});
  return Status::Ok();
}

Status NewFiles::ConnectToLog(const std::string& path) {
  Result<UniqueFd> socket = ConnectLog(path);
  if (!socket.ok()) return socket.status();
  files_.push_back({"", *std::move(socket)});
  return Status::Ok();
}

// It outlives us, and ends with the tracer.
Status NewFiles::StartDialer(const std::string& address) {
  const Result<net::Address> parsed = net::ParseAddressText(address);
  if (!parsed.ok()) return parsed.status();
  Result<UniqueFd> socket = ForkDialer(*parsed);
  if (!socket.ok()) return socket.status();
  files_.push_back({"", *std::move(socket)});
  return Status::Ok();
}

// Likewise.
Status NewFiles::StartCourier(const std::string& broker) {
  Result<BrokerSpec> spec = BrokerSpec::Parse(broker);
  if (!spec.ok()) return spec.status();
  if (Status s = CheckBrokerBuilt(spec->kind); !s.ok()) return s;
  Result<UniqueFd> socket = ForkCourier(*std::move(spec));
  if (!socket.ok()) return socket.status();
  files_.push_back({"", *std::move(socket)});
  return Status::Ok();
}

Status NewFiles::Open(const Wish& wish) {
  const std::string& path = wish.path;
  switch (wish.kind) {
    case Wish::Kind::kNew:
      return Make(path, wish.sync, /*readable=*/false);
    case Wish::Kind::kNewMap:
      return Make(path, wish.sync, /*readable=*/true);
    case Wish::Kind::kFolder:
      return OpenFolderOf(path);
    case Wish::Kind::kDevice:
      return OpenDevice(path, wish.sync);
    case Wish::Kind::kRead:
      return OpenToRead(path);
    case Wish::Kind::kSecret:
      return ReadSecret(path);
    case Wish::Kind::kAppend:
      return OpenToAppend(path);
    case Wish::Kind::kDirectory:
      return OpenDirectory(path);
    case Wish::Kind::kLog:
      return ConnectToLog(path);
    case Wish::Kind::kDialer:
      return StartDialer(path);
    case Wish::Kind::kCourier:
      return StartCourier(path);
  }
  return Status::Invalid("a file of an unknown kind");
}

std::vector<int> NewFiles::Descriptors() const {
  std::vector<int> fds;
  for (const File& file : files_) fds.push_back(file.fd.get());
  return fds;
}

std::string SimpleRequest(const std::string& command) {
  return Json({{"command", command}}).dump();
}

std::string ReleaseRequest(uint32_t hold, const std::string& how) {
  return Json({{"command", "release"}, {"hold", hold}, {"how", how}}).dump();
}

std::string SpareRequest() {
  return Json({{"command", "spare"}, {"pid", ::getpid()}}).dump();
}

std::string AlarmsRequest() {
  // More than any mount keeps.
  return Json({{"command", "rules"}, {"last", 1000}}).dump();
}

std::string TracerRequest(const std::string& command, uint32_t tracer) {
  return Json({{"command", command}, {"tracer", tracer}}).dump();
}

Result<uint32_t> TracerNamed(ControlClient& client, const std::string& word) {
  if (const std::optional<uint64_t> id = ParseUnsigned(word);
      id && *id <= UINT32_MAX) {
    return static_cast<uint32_t>(*id);
  }
  const Result<Json> list = Check(client, {{"command", "list"}});
  if (!list.ok()) return list.status();
  std::vector<uint32_t> ids;
  std::vector<std::string> names;
  for (const Json& tracer : list->value("tracers", Json::array())) {
    if (!tracer.is_object() || !tracer.value("name", Json()).is_string() ||
        !tracer.value("id", Json()).is_number_unsigned()) {
      return NoSense();
    }
    names.push_back(tracer["name"].get<std::string>());
    if (names.back() == word) ids.push_back(tracer["id"].get<uint32_t>());
  }
  if (ids.size() == 1) return ids[0];
  if (!ids.empty()) {
    std::string text = "more than one tracer is named '" + word + "':";
    for (const uint32_t id : ids) text += ' ' + std::to_string(id);
    return Status::Invalid(text + "; name one by its id");
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  return Status::Invalid("no tracer is named '" + word + "'" +
                         DidYouMean(word, known) +
                         " (tracefs-ctl MNT list shows ids and names)");
}

Result<std::string> FilterRequest(const std::string& command,
                                  const uint32_t* tracer,
                                  const std::string& filter) {
  AskedNames asked;
  NameTable names;
  const Result<Filter> compiled =
      Filter::Compile(filter, {.file = "filter"}, asked, names);
  if (!compiled.ok()) return compiled.status();
  Json request = {{"command", command}, {"filter", filter}};
  if (tracer != nullptr) request["tracer"] = *tracer;
  asked.AddTo(&request);
  return Dumped(request, "filter", filter);
}

namespace {

// As it comes out of an answer: bytes of paths that are no UTF-8 are replaced.
Json AsAnswered(const Json& json) {
  return Json::parse(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// The config with %date in place in the names of new files: the mount learns
// names, and makes none. The text as it is where there is no such name.
std::string WithDates(const std::string& text, Config config) {
  const uint64_t now = RealNs();
  bool dated = false;
  std::string all;
  for (TracerConfig& tracer : config.tracers) {
    ConfigEntry& driver = tracer.output.back();
    if (FindOutputDriver(driver.name)->makes_named_files) {
      std::string name = ExpandDate(driver.value.text, now);
      dated |= name != driver.value.text;
      driver.value.text = std::move(name);
    }
    all += ToText(tracer);
  }
  return dated ? all : text;
}

}  // namespace

Result<std::string> ReadConfigText(const std::string& path, NamedBy by) {
  const std::string what = "config '" + path + "'";
  const bool noted = by == NamedBy::kNote;
  const UniqueFd fd(
      ::open(path.c_str(),
             O_RDONLY | O_CLOEXEC | (noted ? O_NONBLOCK | O_NOCTTY : 0)));
  if (!fd) return Status::System(errno, what);
  struct stat st;
  if (noted && (::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode))) {
    return Status::Invalid(what +
                           ", which the mount was made with, is no regular "
                           "file now: name one, tracefs-ctl MNT reload FILE");
  }
  Result<std::string> text = ReadText(fd.get(), kMaxConfigBytes + 1, what);
  if (text.ok() && text->size() > kMaxConfigBytes) {
    return Status::Invalid(path + ": longer than 1 MiB");
  }
  return text;
}

Result<std::string> WatchRequest(const std::string& filter,
                                 std::chrono::milliseconds every,
                                 const std::string& counted) {
  const Result<std::string> text = FilterRequest("watch", nullptr, filter);
  if (!text.ok()) return text.status();
  Json request = Json::parse(*text);
  request["every_ms"] = every.count();
  if (counted.empty()) return request.dump();
  request["aggregate"] = counted;
  return Dumped(request, "--by", counted);
}

std::string IdsText(std::span<const uint32_t> ids) {
  return JoinWords(ids, " ", [](uint32_t id) { return std::to_string(id); });
}

Result<std::string> AddRequest(ControlClient& client, const std::string& file,
                               const std::string& written, NewFiles* files,
                               const std::vector<FileTracer>* among) {
  const std::string name = IsUtf8(file) ? file : "config";
  Result<Config> config = ParseConfig(written, name, FullSchema());
  if (!config.ok()) return config.status();
  const std::string text = WithDates(written, *std::move(config));
  Json request = {{"command", "check"}, {"config", text}, {"file", name}};
  if (among != nullptr) {
    std::vector<uint32_t> ids;
    for (const FileTracer& tracer : *among) ids.push_back(tracer.id);
    request["among"] = IdsText(ids);
  }
  if (const Result<std::string> whole = Dumped(request, file, text);
      !whole.ok()) {
    return whole.status();
  }
  config = ParseConfig(text, name, FullSchema());
  if (!config.ok()) return config.status();
  AskedNames asked;
  NameTable names;
  const Result<std::vector<Wish>> wishes =
      WishedFiles(*config, asked, names, {.among = among});
  if (!wishes.ok()) return wishes.status();
  // A daemon of another version would take one descriptor for another.
  const Result<Json> checked = Check(client, request);
  if (!checked.ok()) return checked.status();
  if (checked->value("files", Json()) != AsAnswered(WishesJson(*wishes))) {
    return Status::Corrupt(
        name +
        ": the mount asks for other files than this config names; nothing was "
        "opened; use the tracefs-ctl of its version");
  }
  for (const Wish& wish : *wishes) {
    if (Status s = files->Open(wish); !s.ok()) return s;
  }
  request["command"] = "add";
  asked.AddTo(&request);
  return request.dump();
}

}  // namespace tracefs
