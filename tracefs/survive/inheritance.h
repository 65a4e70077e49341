// Inheritance: what one program leaves to another that takes its place
// (hand_over.h): texts by name, and open files.
//
// It goes through the environment, which nobody but the process itself can
// change, and of each file it says which that is: a number may stand for
// another by then.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs::survive {

class Inheritance {
 public:
  // Of this process, from its environment, which then has it no more. None: it
  // was started as any program is. To be called first.
  static std::optional<Inheritance> OfProcess();

  void Set(std::string_view name, std::string_view text);
  void SetNumber(std::string_view name, uint64_t number);
  // An open descriptor; kSystem if it is none.
  Status SetFile(std::string_view name, int fd);

  bool Has(std::string_view name) const { return texts_.contains(name); }
  // Empty, and 0, where there is none.
  std::string Text(std::string_view name) const;
  uint64_t Number(std::string_view name) const;
  // Its number, which stays the caller's; kSystem EUCLEAN where there is none,
  // or it is another file now.
  Result<int> File(std::string_view name) const;
  // The numbers of all.
  std::vector<int> Files() const;

  // As variables of an environment.
  std::vector<std::string> Variables() const;

 private:
  std::map<std::string, std::string, std::less<>> texts_;
};

}  // namespace tracefs::survive
