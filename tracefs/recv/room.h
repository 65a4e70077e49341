// Room: which connection goes where there are more than the receiver has room
// for.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tracefs {

// A connection, as far as that matters.
struct Place {
  std::string peer;    // its address or user
  bool known = false;  // by a certificate, or as a user of this machine
  bool sent = false;   // a good block, at least one
};

// Of connections by number, later ones higher, the one that makes room for
// `newcomer`, which is one of them; 0 if there is none that should.
//
// Whoever has sent nothing goes first; then a sender that is known by its
// address alone and has more connections than the newcomer's address. A
// newcomer that is known takes the place of any such sender. Among those with
// most connections the oldest goes. A known sender makes room for another known
// one with fewer.
uint64_t WhoMakesRoom(const std::map<uint64_t, Place>& places,
                      uint64_t newcomer);

}  // namespace tracefs
