// What two sides of operations differ by: which groups account for it, and the
// same as a sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tracefs::query {

// One group: "fsync". Where a side does not have it, its numbers there are 0.
struct Difference {
  std::string name;  // printable
  size_t place = 0;  // where the caller has it
  double time_a_ns = 0;
  double time_b_ns = 0;
  double count_a = 0;
  double count_b = 0;
  bool in_a = true;
  bool in_b = true;
  // Whether the sides that have it tell its time.
  bool time_known = true;

  double time_ns() const { return time_known ? time_b_ns - time_a_ns : 0; }
  double count() const { return count_b - count_a; }
};

// By the time that each adds or saves, the most first whichever it is; then by
// the operations that are more or fewer; then by name. New groups and those
// that are gone count with the whole of their time.
void RankDifferences(std::vector<Difference>* all);

// "The operations took 370ms longer in B (375ms) than in A (5.00ms, +7400.0%):
// fsync +365ms (new), write +4.00ms, 2 others +1.00ms. B has 12 operations
// more: 112, not 100." Its parts add up to the whole. `ranked` is so.
std::string DifferenceSentence(const std::vector<Difference>& ranked);

}  // namespace tracefs::query
