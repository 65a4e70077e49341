#include "tracefs/control/wish_json.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "tracefs/base/printable.h"

namespace tracefs {

nlohmann::ordered_json WishesJson(const std::vector<Wish>& wishes) {
  using Json = nlohmann::ordered_json;
  Json files = Json::array();
  for (const Wish& wish : wishes) {
    Json file = {{"path", wish.path},
                 {"kind", WishKindName(wish.kind)},
                 {"sync", wish.sync}};
    // A path that JSON cannot hold.
    if (!IsUtf8(wish.path)) {
      file["path_bytes"] =
          std::vector<uint8_t>(wish.path.begin(), wish.path.end());
    }
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace tracefs
