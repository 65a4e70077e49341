#include "tracefs/tracers/kept_tracers.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tracefs/base/enclosed_folder.h"
#include "tracefs/base/log_socket.h"
#include "tracefs/pipeline/wish.h"
#include "tracefs/tracers/plan_outputs.h"
#include "tracefs/tracers/survives.h"

namespace tracefs {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

Result<UniqueFd> Opened(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY));
  if (!fd) return Status::System(errno, "'" + path + "'");
  return fd;
}

// What a stage has opened a moment ago, as it would be sent to a daemon.
Result<UniqueFd> OpenAgain(const Wish& wish) {
  switch (wish.kind) {
    case Wish::Kind::kNew:
      return Opened(wish.path,
                    O_WRONLY | O_NOFOLLOW | (wish.sync ? O_DSYNC : 0));
    case Wish::Kind::kFolder: {
      Result<UniqueFd> folder =
          Opened(FolderOf(wish.path), O_PATH | O_DIRECTORY);
      if (!folder.ok()) return folder.status();
      return EncloseFolder(*std::move(folder));
    }
    case Wish::Kind::kRead:
      return Opened(wish.path, O_RDONLY | O_NONBLOCK);
    case Wish::Kind::kAppend:
      return Opened(wish.path, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
    case Wish::Kind::kDirectory: {
      Result<UniqueFd> folder = Opened(wish.path, O_RDONLY | O_DIRECTORY);
      if (!folder.ok()) return folder.status();
      const UniqueFd enclosed = EncloseFolder(*std::move(folder));
      UniqueFd fd(
          ::openat(enclosed.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!fd) return Status::System(errno, "'" + wish.path + "'");
      return fd;
    }
    case Wish::Kind::kLog:
      return ConnectLog(wish.path);
    case Wish::Kind::kNewMap:
    case Wish::Kind::kDevice:
    case Wish::Kind::kSecret:
    case Wish::Kind::kDialer:
    case Wish::Kind::kCourier:
      break;
  }
  return Status::Invalid("'" + wish.path +
                         "' cannot be handed to another program (" +
                         std::string(WishKindName(wish.kind)) + ")");
}

bool IsOneOf(const UniqueFd& file, const std::vector<TracerPlan>& plans) {
  struct stat st;
  if (::fstat(file.get(), &st) != 0) return false;
  return std::ranges::any_of(plans, [&](const TracerPlan& plan) {
    return std::ranges::find(plan.files, OutputFileId{st.st_dev, st.st_ino}) !=
           plan.files.end();
  });
}

}  // namespace

Result<KeptTracers> KeepTracers(const Config& config,
                                const std::vector<TracerPlan>& plans,
                                const KnownNames& names) {
  const Config fixed = WithFixedNames(config, plans);
  KeptTracers kept;
  kept.config = {
      .id = plans.front().parts.id, .file = config.file_name, .names = names};
  for (size_t i = 0; i < fixed.tracers.size(); ++i) {
    kept.config.config += ToText(fixed.tracers[i]) + '\n';
    kept.serials.push_back(plans[i].parts.serial);
  }
  const Result<std::vector<Wish>> wishes = WishesOf(fixed);
  if (!wishes.ok()) return wishes.status();
  for (const Wish& wish : *wishes) {
    Result<UniqueFd> file = OpenAgain(wish);
    if (!file.ok()) return file.status();
    if (wish.kind == Wish::Kind::kNew && !IsOneOf(*file, plans)) {
      return Status::System(ESTALE, "'" + wish.path + "'");
    }
    kept.files.push_back(*std::move(file));
  }
  return kept;
}

Result<std::vector<TracerPlan>> PlanKept(const KeptTracers& kept,
                                         NameTable& names, OutputsStay stay,
                                         Config* config) {
  Result<Config> parsed =
      ParseConfig(kept.config.config, kept.config.file, FullSchema());
  if (!parsed.ok()) return parsed.status();
  *config = *std::move(parsed);
  if (config->tracers.size() != kept.serials.size()) {
    return Status::Invalid(config->file_name + ": another number of tracers");
  }
  if (Status s = CheckSurvives(*config); !s.ok()) return s;
  Result<std::vector<UniqueFd>> files = Orders::Copies(kept.files);
  if (!files.ok()) return files.status();
  Result<std::vector<TracerPlan>> plans =
      PlanTracers(*config, names,
                  {.users = &kept.config.names,
                   .first_id = kept.config.id,
                   .files = &*files,
                   .again = true,
                   .stay = std::move(stay)});
  if (!plans.ok()) return plans.status();
  for (size_t i = 0; i < kept.serials.size(); ++i) {
    (*plans)[i].parts.serial = kept.serials[i];
  }
  return plans;
}

}  // namespace tracefs
