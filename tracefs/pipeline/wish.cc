#include "tracefs/pipeline/wish.h"

namespace tracefs {

std::string_view WishKindName(Wish::Kind kind) {
  switch (kind) {
    case Wish::Kind::kNew:
      return "new";
    case Wish::Kind::kNewMap:
      return "map";
    case Wish::Kind::kFolder:
      return "folder";
    case Wish::Kind::kDevice:
      return "device";
    case Wish::Kind::kRead:
      return "read";
    case Wish::Kind::kSecret:
      return "secret";
    case Wish::Kind::kAppend:
      return "append";
    case Wish::Kind::kDirectory:
      return "directory";
    case Wish::Kind::kLog:
      return "log";
    case Wish::Kind::kDialer:
      return "dialer";
    case Wish::Kind::kCourier:
      return "courier";
  }
  return "";
}

}  // namespace tracefs
