#include "tracefs/query/table_sort.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <string_view>

namespace tracefs::query {
namespace {

// What a row is sorted by: rows lie far apart, and may have to be made.
struct Item {
  uint64_t key = 0;
  uint32_t row = 0;
  uint32_t text = 0;  // the number of a text
  bool present = false;
};

// Texts of a column, one after the other.
class Texts {
 public:
  void Add(std::string_view text) {
    bytes_ += text;
    ends_.push_back(bytes_.size());
  }
  std::string_view At(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  size_t CommonPrefix() const {
    std::string_view prefix = ends_.empty() ? std::string_view() : At(0);
    for (size_t i = 1; i < ends_.size() && !prefix.empty(); ++i) {
      const std::string_view text = At(i);
      const auto differ =
          std::mismatch(prefix.begin(), prefix.end(), text.begin(), text.end());
      prefix =
          prefix.substr(0, static_cast<size_t>(differ.first - prefix.begin()));
    }
    return prefix.size();
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

// The first bytes, so that numbers compare as texts do, but for short ones.
uint64_t BeginOf(std::string_view text) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, text.data(), std::min(text.size(), sizeof bytes));
  return std::endian::native == std::endian::big ? bytes
                                                 : __builtin_bswap64(bytes);
}

constexpr uint64_t kSignBit = uint64_t{1} << 63;

// Bits of a double compare as it does, but that of its sign, below which the
// others go the other way.
uint64_t KeyOfShare(double share) {
  const auto bits = std::bit_cast<uint64_t>(share + 0.0);  // -0 is 0
  return (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
}

class Sorter {
 public:
  Sorter(const Table& table, size_t by, bool ascending)
      : table_(table),
        by_(by),
        // As it would be said of numbers.
        downward_((table.columns[by].unit == Unit::kText) == ascending) {}

  std::vector<uint32_t> Run(size_t most) {
    items_.resize(table_.size());
    for (size_t i = 0; i < items_.size(); ++i) {
      items_[i].row = static_cast<uint32_t>(i);
    }
    Sort(items_, most, 0);
    std::vector<uint32_t> order;
    order.reserve(items_.size());
    for (const Item& item : items_) order.push_back(item.row);
    return order;
  }

 private:
  const Row& RowAt(uint32_t row) {
    if (table_.source == nullptr) return table_.rows[row];
    table_.source->Make(row, &made_);
    return made_;
  }

  // By one column after the other: first that which is asked for, then all from
  // the left. `items` are equal in those before.
  void Sort(std::span<Item> items, size_t most, size_t level) {
    most = std::min(most, items.size());
    if (most == 0 || items.size() < 2 || level > table_.columns.size()) return;
    const size_t column = level == 0 ? by_ : level - 1;
    if (level != 0 && column == by_) return Sort(items, most, level + 1);
    const bool downward = level == 0 && downward_;
    // Read as they lie in memory, where that is large.
    if (level != 0) std::ranges::sort(items, {}, &Item::row);
    Texts texts;
    size_t same = 0;
    if (table_.columns[column].unit == Unit::kText) {
      same = TakeTexts(items, column, &texts);
    } else {
      TakeNumbers(items, column);
    }
    const auto compare = [&](const Item& a, const Item& b) {
      if (a.present != b.present) return a.present ? 1 : -1;
      if (a.key != b.key) return a.key < b.key ? -1 : 1;
      if (!a.present || table_.columns[column].unit != Unit::kText) return 0;
      return texts.At(a.text).substr(same).compare(
          texts.At(b.text).substr(same));
    };
    const auto before = [&](const Item& a, const Item& b) {
      const int c = compare(a, b);
      return downward ? c > 0 : c < 0;
    };
    size_t sorted = most;
    if (most < items.size()) {
      const auto last = items.begin() + static_cast<ptrdiff_t>(most) - 1;
      std::nth_element(items.begin(), last, items.end(), before);
      // Which of those that are equal to it come first, others decide.
      const auto rest = std::partition(
          last + 1, items.end(),
          [&](const Item& item) { return compare(item, *last) == 0; });
      sorted = static_cast<size_t>(rest - items.begin());
    }
    std::sort(items.begin(), items.begin() + static_cast<ptrdiff_t>(sorted),
              before);
    // Runs are found before the next column takes the keys.
    std::vector<size_t> ends;
    for (size_t i = 1; i <= sorted; ++i) {
      if (i == sorted || compare(items[i - 1], items[i]) != 0) {
        ends.push_back(i);
      }
    }
    texts = {};
    size_t begin = 0;
    for (const size_t end : ends) {
      if (begin >= most) return;
      Sort(items.subspan(begin, end - begin), most - begin, level + 1);
      begin = end;
    }
  }

  void TakeNumbers(std::span<Item> items, size_t column) {
    const Unit unit = table_.columns[column].unit;
    // What is below zero comes before all else.
    const uint64_t sign =
        unit == Unit::kSigned || unit == Unit::kSignedDuration ? kSignBit : 0;
    for (Item& item : items) {
      const Value& value = RowAt(item.row)[column];
      item.present = value.present;
      item.key =
          unit == Unit::kShare ? KeyOfShare(value.share) : value.number ^ sign;
    }
  }

  // Returns how many bytes all begin with.
  size_t TakeTexts(std::span<Item> items, size_t column, Texts* texts) {
    for (size_t i = 0; i < items.size(); ++i) {
      const Value& value = RowAt(items[i].row)[column];
      items[i].present = value.present;
      items[i].text = static_cast<uint32_t>(i);
      texts->Add(value.text);
    }
    const size_t same = texts->CommonPrefix();
    for (Item& item : items) {
      item.key = BeginOf(texts->At(item.text).substr(same));
    }
    return same;
  }

  const Table& table_;
  const size_t by_;
  const bool downward_;
  std::vector<Item> items_;
  Row made_;
};

}  // namespace

std::vector<uint32_t> SortedRows(const Table& table, size_t by, bool ascending,
                                 size_t most) {
  return Sorter(table, by, ascending).Run(most);
}

}  // namespace tracefs::query
