#include "tracefs/recv/key_places.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tracefs/base/enclosed_folder.h"
#include "tracefs/base/file_io.h"

namespace tracefs {
namespace {

// What the source holds, in memory that can be read again and again.
Result<UniqueFd> Copy(const KeySource& source) {
  const Result<SecretMemory> text = ReadSecretText(source);
  if (!text.ok()) return text.status();
  std::string_view line = AsText(text->bytes());
  line = line.substr(0, line.find('\0'));
  UniqueFd fd(::memfd_create("tracefs-secret", MFD_CLOEXEC));
  if (!fd) return Status::System(errno, source.Text());
  if (Status s = WriteAll(fd.get(), AsBytes(line), source.Text()); !s.ok()) {
    return s;
  }
  return fd;
}

}  // namespace

Result<KeyPlaces> KeyPlaces::Open(const std::vector<std::string>& arguments) {
  KeyPlaces all;
  for (const std::string& argument : arguments) {
    Result<KeySource> source = ParseKeyArgument(argument);
    if (!source.ok()) return source.status().Prefixed("--key");
    Place place{.source = *std::move(source)};
    if (place.source.place == KeySource::Place::kFile) {
      const std::string& path = place.source.name;
      const size_t slash = path.rfind('/');
      const std::string folder =
          slash == path.npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
      place.name = slash == path.npos ? path : path.substr(slash + 1);
      UniqueFd fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      if (!fd) return Status::System(errno, "--key: '" + folder + "'");
      place.folder = EncloseFolder(std::move(fd));
    } else {
      Result<UniqueFd> copy = Copy(place.source);
      if (!copy.ok()) return copy.status().Prefixed("--key");
      place.source.given = std::make_shared<const UniqueFd>(*std::move(copy));
    }
    all.places_.push_back(std::move(place));
  }
  return all;
}

Result<std::shared_ptr<const KeyRing>> KeyPlaces::Read() const {
  auto keys = std::make_shared<KeyRing>();
  for (const Place& place : places_) {
    KeySource source = place.source;
    if (place.folder) {
      // Not to hang on a fifo.
      UniqueFd fd(::openat(place.folder.get(), place.name.c_str(),
                           O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
      if (!fd) return Status::System(errno, "--key: " + source.Text());
      source.given = std::make_shared<const UniqueFd>(std::move(fd));
    }
    if (Status s = keys->Add(source); !s.ok()) return s.Prefixed("--key");
  }
  return std::shared_ptr<const KeyRing>(std::move(keys));
}

}  // namespace tracefs
