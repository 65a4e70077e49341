// Only in commands that are linked statically (cmake/Static.cmake): names of
// users, groups and hosts are looked up by what is in the program itself.
//
// The modules that nsswitch.conf(5) names otherwise are shared libraries of
// another C library, and would be loaded into this one.
#include <nss.h>

#include <array>

namespace tracefs {
namespace {

struct Lookup {
  const char* database;
  const char* places;
};

constexpr std::array kLookups = {
    Lookup{"passwd", "files"},     Lookup{"group", "files"},
    Lookup{"initgroups", "files"}, Lookup{"hosts", "files dns"},
    Lookup{"services", "files"},   Lookup{"protocols", "files"},
};

// Before main(), and so before any other thread exists.
__attribute__((constructor)) void LookUpHereOnly() {
  for (const Lookup& lookup : kLookups) {
    (void)::__nss_configure_lookup(lookup.database, lookup.places);
  }
}

}  // namespace
}  // namespace tracefs
