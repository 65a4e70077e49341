// Pictures whose areas or lengths are sums.
#include <algorithm>
#include <vector>

#include "tracefs/report/pictures.h"
#include "tracefs/report/units_text.h"

namespace tracefs::report {
namespace {

using Sums = std::vector<double>;

// Of a tree of the document: the sum of a column below each node, and itself.
Sums SumsOf(const Json& tree, const char* column) {
  const size_t size = tree["name"].size();
  Sums sums(size);
  for (size_t i = 0; i < size; ++i) sums[i] = tree[column][i].get<double>();
  for (const auto& [place, metrics] : tree["folded"].items()) {
    sums[std::stoul(place)] += metrics[column].get<double>();
  }
  for (size_t i = size; i-- > 1;) {
    sums[tree["parent"][i].get<size_t>()] += sums[i];
  }
  return sums;
}

std::vector<std::vector<size_t>> ChildrenOf(const Json& tree,
                                            const Sums& sums) {
  std::vector<std::vector<size_t>> children(tree["name"].size());
  for (size_t i = 1; i < children.size(); ++i) {
    if (sums[i] > 0) children[tree["parent"][i].get<size_t>()].push_back(i);
  }
  for (auto& list : children) {
    std::stable_sort(list.begin(), list.end(),
                     [&](size_t a, size_t b) { return sums[a] > sums[b]; });
  }
  return children;
}

struct Box {
  double x, y, width, height;
};

// Squarified: rows of nodes, each as near to squares as it can be (Bruls,
// Huizing and van Wijk, 2000). `nodes` are sorted, largest first.
std::vector<Box> Squarify(const std::vector<size_t>& nodes, const Sums& sums,
                          double total, Box room) {
  std::vector<Box> boxes;
  double left = total;
  for (size_t begin = 0; begin < nodes.size() && left > 0;) {
    const bool wide = room.width >= room.height;
    const double side = wide ? room.height : room.width;
    const double scale = room.width * room.height / left;
    double area = 0;
    double worst = 1e300;
    size_t end = begin;
    while (end < nodes.size()) {
      const double with = area + sums[nodes[end]] * scale;
      const double thick = with / side;
      const double first = sums[nodes[begin]] * scale / thick;
      const double last = sums[nodes[end]] * scale / thick;
      const double ratio =
          std::max(std::max(first / thick, thick / std::max(first, 1e-9)),
                   std::max(last / thick, thick / std::max(last, 1e-9)));
      if (ratio > worst) break;
      worst = ratio;
      area = with;
      ++end;
    }
    const double thick = side > 0 ? area / side : 0;
    double at = wide ? room.y : room.x;
    for (size_t i = begin; i < end; ++i) {
      const double length = thick > 0 ? sums[nodes[i]] * scale / thick : 0;
      boxes.push_back(wide ? Box{room.x, at, thick, length}
                           : Box{at, room.y, length, thick});
      at += length;
      left -= sums[nodes[i]];
    }
    if (wide) {
      room.x += thick;
      room.width -= thick;
    } else {
      room.y += thick;
      room.height -= thick;
    }
    begin = end;
  }
  return boxes;
}

}  // namespace

SvgWriter DrawTree(const Json& document) {
  const Json& tree = document["tree"];
  const bool by_time = NumberAt(document["totals"], "time_ns") != 0;
  const Sums sums = SumsOf(tree, by_time ? "time_ns" : "count");
  if (sums.empty() || sums[0] <= 0) return NothingToDraw("There are no files.");
  const auto children = ChildrenOf(tree, sums);
  constexpr double kHeight = 420;
  constexpr double kHead = 15;
  const std::string largest =
      children[0].empty() ? "/" : tree["name"][children[0][0]];
  SvgWriter svg(kPictureWidth, kHeight,
                std::string("Directories and files by ") +
                    (by_time ? "time" : "operations") +
                    "; largest: " + largest);
  struct Left {
    size_t node;
    Box box;
    size_t depth;
  };
  std::vector<Left> left = {{0, {0, 0, kPictureWidth, kHeight}, 0}};
  while (!left.empty()) {
    const auto [node, box, depth] = left.back();
    left.pop_back();
    const std::string name = tree["name"][node];
    const std::string value =
        by_time ? SpanText(static_cast<uint64_t>(sums[node]))
                : CountText(static_cast<uint64_t>(sums[node]));
    svg.Rect(box.x, box.y, box.width, box.height,
             "box c" + std::to_string(depth % 7), name + ": " + value);
    const bool labelled = box.height >= kHead && box.width >= 30;
    if (labelled) {
      // A number that is cut is a wrong one.
      const std::string both = name + " " + value;
      const double room = box.width - 6;
      svg.Text(box.x + 3, box.y + 11,
               TextWidth(both) <= room ? both : Fitting(name, room), "t on");
    }
    if (box.width < 12 || box.height < kHead + 8 || children[node].empty()) {
      continue;
    }
    const Box room = {box.x + 2, box.y + kHead, box.width - 4,
                      box.height - kHead - 2};
    const auto boxes = Squarify(children[node], sums, sums[node], room);
    for (size_t i = 0; i < boxes.size(); ++i) {
      if (boxes[i].width < 1 || boxes[i].height < 1) continue;
      left.push_back({children[node][i], boxes[i], depth + 1});
    }
  }
  return svg;
}

SvgWriter DrawFlame(const Json& document) {
  const Json& flame = document["flame"];
  const bool by_time = NumberAt(document["totals"], "time_ns") != 0;
  const Sums sums = SumsOf(flame, by_time ? "time_ns" : "count");
  if (sums.empty() || sums[0] <= 0) return NothingToDraw("Nothing was done.");
  const auto children = ChildrenOf(flame, sums);
  constexpr double kStep = 17;
  struct Left {
    size_t node;
    double x;
    size_t depth;
  };
  const double scale = kPictureWidth / sums[0];
  std::vector<Left> left = {{0, 0, 0}};
  std::vector<Left> drawn;
  size_t deepest = 0;
  while (!left.empty()) {
    const Left at = left.back();
    left.pop_back();
    drawn.push_back(at);
    deepest = std::max(deepest, at.depth);
    double x = at.x;
    for (const size_t child : children[at.node]) {
      if (sums[child] * scale >= 1) left.push_back({child, x, at.depth + 1});
      x += sums[child] * scale;
    }
  }
  SvgWriter svg(kPictureWidth, kStep * static_cast<double>(deepest + 1),
                "Time by command, path and operation");
  for (const Left& at : drawn) {
    const double y = kStep * static_cast<double>(at.depth);
    const double width = sums[at.node] * scale;
    const std::string name = flame["name"][at.node];
    const std::string value =
        by_time ? SpanText(static_cast<uint64_t>(sums[at.node]))
                : CountText(static_cast<uint64_t>(sums[at.node]));
    svg.Rect(at.x, y, width, kStep - 1,
             "box c" + std::to_string((at.node * 5 + at.depth) % 7),
             name + ": " + value);
    if (width < 20) continue;
    svg.Text(at.x + 3, y + 12, Fitting(name, width - 6), "t on");
  }
  return svg;
}

SvgWriter DrawAccess(const Json& document) {
  const Json& access = document["access"];
  constexpr double kStep = 20;
  constexpr double kNames = 150;
  double y = 16;
  SvgWriter svg(kPictureWidth, 2 * (kStep * 5 + 16),
                "Where in their files reads and writes go");
  for (const char* way : {"read", "write"}) {
    double total = 0;
    for (const Json& row : access[way]["classes"])
      total += row[1].get<double>();
    svg.Text(0, y,
             std::string(way) + "s: " + CountText(static_cast<uint64_t>(total)),
             "t head");
    y += 6;
    for (const Json& row : access[way]["classes"]) {
      const auto count = row[1].get<uint64_t>();
      const double share = total == 0 ? 0 : static_cast<double>(count) / total;
      svg.Text(kNames - 8, y + 13, row[0].get<std::string>(), "t",
               SvgWriter::Anchor::kEnd);
      svg.Rect(kNames, y + 2, share * 500, kStep - 5, "c0");
      svg.Text(kNames + share * 500 + 6, y + 13,
               CountText(count) + " (" +
                   ShareText(count, static_cast<uint64_t>(total)) + "), " +
                   SizeText(row[2].get<uint64_t>()));
      y += kStep;
    }
    y += kStep + 6;
  }
  return svg;
}

}  // namespace tracefs::report
