#include "tests/unit/filters/output/chain_end.h"

#include <random>

namespace tracefs {

std::vector<std::string> SampleBlocks() {
  std::vector<std::string> blocks = {"", "x", std::string(5000, '\0')};
  std::string text;
  for (int i = 0; i < 8000; ++i) {
    text += "open /usr/include/sys/" + std::to_string(i * 7919 % 4000) + ".h\n";
  }
  blocks.push_back(text);
  std::mt19937_64 random(7);
  std::string noise;
  for (int i = 0; i < 8192; ++i) noise += static_cast<char>(random());
  blocks.push_back(noise);
  blocks.push_back(std::string(1 << 20, 'z'));
  return blocks;
}

}  // namespace tracefs
