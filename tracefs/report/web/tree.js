// Trees of the data: their sums, and boxes whose areas are sums.

const treeSums = (tree, key) => {
  const sums = [...tree[key]];
  for (const [place, metrics] of Object.entries(tree.folded)) sums[place] += metrics[key];
  for (let i = sums.length - 1; i > 0; --i) sums[tree.parent[i]] += sums[i];
  return sums;
};
const treeChildren = (tree, sums) => {
  const children = tree.name.map(() => []);
  for (let i = 1; i < sums.length; ++i) if (sums[i] > 0) children[tree.parent[i]].push(i);
  for (const list of children) list.sort((a, b) => sums[b] - sums[a] || a - b);
  return children;
};
const treePath = (tree, at, between = '/') => {
  const names = [];
  for (; at !== 0 && at !== null; at = tree.parent[at]) names.unshift(tree.name[at]);
  return between + names.join(between);
};
const rootOf = (tree, word) => {
  const at = Math.floor(Number(word));
  return at > 0 && at < tree.name.length ? at : 0;
};
// Buttons that lead back up.
const crumbs = (tree, at, use) => {
  const line = make('span', {});
  for (let up = at; up !== null; up = tree.parent[up]) {
    const node = up;
    line.prepend(make('button', {class: 'do', onclick: () => use(String(node))}, tree.name[node] || '/'), ' ');
  }
  return line;
};

// Rows of boxes as near to squares as they can be (Bruls, Huizing, van Wijk).
const squarify = (nodes, sums, total, room) => {
  const boxes = [];
  let left = total;
  for (let begin = 0; begin < nodes.length && left > 0;) {
    const wide = room.width >= room.height;
    const side = wide ? room.height : room.width;
    const scale = room.width * room.height / left;
    let area = 0, worst = Infinity, end = begin;
    for (; end < nodes.length; ++end) {
      const thick = (area + sums[nodes[end]] * scale) / side;
      const ratio = (i) => { const long = sums[nodes[i]] * scale / thick; return Math.max(long / thick, thick / long); };
      const now = Math.max(ratio(begin), ratio(end));
      if (now > worst) break;
      worst = now;
      area += sums[nodes[end]] * scale;
    }
    const thick = area / side;
    let at = wide ? room.y : room.x;
    for (; begin < end; ++begin) {
      const long = sums[nodes[begin]] * scale / thick;
      boxes.push(wide ? {x: room.x, y: at, width: thick, height: long} : {x: at, y: room.y, width: long, height: thick});
      at += long;
      left -= sums[nodes[begin]];
    }
    room = wide ? {...room, x: room.x + thick, width: room.width - thick} : {...room, y: room.y + thick, height: room.height - thick};
  }
  return boxes;
};

const drawTree = (host) => {
  const tree = data.tree;
  const measure = measures[state.tree] || measures.count;
  const sums = treeSums(tree, measures[state.tree] ? state.tree : 'count');
  const children = treeChildren(tree, sums);
  const root = rootOf(tree, state.root);
  host.append(make('div', {class: 'bar'},
    select('By', state.tree, measureChoices, (value) => change('tree', {tree: value})),
    crumbs(tree, root, (node) => change('tree', {root: node}))));
  const svg = picture(kWidth, 420, `${treePath(tree, root)} by ${measure.name}: ${measure.form(sums[root])}`);
  const draw = (node, box, depth) => {
    const leaf = children[node].length === 0;
    const found = state.q === '' || matches(treePath(tree, node));
    const rect = titled(shape('rect', {...box, class: `box c${depth % 7}${found ? '' : ' dimmed'}`}),
      `${treePath(tree, node)}: ${measure.form(sums[node])}`);
    if (!leaf) rect.addEventListener('click', () => change('tree', {root: String(node)}));
    svg.append(rect);
    if (box.height >= 15 && box.width >= 30) {
      // A number that is cut is a wrong one.
      const name = tree.name[node] || '/', both = `${name} ${measure.form(sums[node])}`;
      svg.append(shape('text', {x: box.x + 3, y: box.y + 11, class: 'on', 'pointer-events': 'none'},
        textWidth(both) <= box.width - 6 ? both : shorten(name, box.width - 6)));
    }
    if (leaf || box.width < 12 || box.height < 23) return;
    const room = {x: box.x + 2, y: box.y + 15, width: box.width - 4, height: box.height - 17};
    squarify(children[node], sums, sums[node], room).forEach((inner, i) => {
      if (inner.width >= 1 && inner.height >= 1) draw(children[node][i], inner, depth + 1);
    });
  };
  if (sums[root] > 0) draw(root, {x: 0, y: 0, width: kWidth, height: 420}, 0);
  host.append(make('div', {class: 'figure'}, svg));
  const details = make('details', {}, make('summary', {}, 'As a table'));
  const rows = tree.name.map((_, i) => [treePath(tree, i), sums[i]]).filter(([, sum]) => sum > 0);
  drawTable(details, [{key: 'name', name: 'path, with all below it'}, {key: state.tree, name: measure.name, form: measure.form}],
    rows, {name: 'tree', panel: 'tree'});
  host.append(details);
};
