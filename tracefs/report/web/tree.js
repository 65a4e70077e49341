// Trees of the data: their sums, and boxes whose areas are sums.

const treePath = (tree, at, between = '/') => {
  const names = [];
  for (; at !== 0 && at !== null; at = tree.parent[at]) names.unshift(tree.name[at]);
  return between + names.join(between);
};

// A tree as it is looked at now: what each node did itself in the chosen time, where what it is called has what is
// searched for; and sums with all below. What is not kept by time is a node of its own.
// pathOf(i), seriesOf(i): of node i of the data.
const kNotKept = '(times not kept apart)';
const treeView = (tree, key, pathOf, seriesOf) => {
  const bins = chosenBins();
  const view = {name: [...tree.name], parent: [...tree.parent], whole: true};
  const keep = (i, value) => (value && (state.q === '' || matches(pathOf(i))) ? value : 0);
  let own;
  if (bins) {
    const known = tree.name.map((_, i) => sumOfSeries(seriesOf(i), bins)?.[key] || 0);
    const rest = totalsOfTime(bins)[key] - known.reduce((a, b) => a + b, 0);
    own = known.map((value, i) => keep(i, value));
    if (rest > 0) {
      view.whole = false;
      if (state.q === '') {
        view.name.push(kNotKept);
        view.parent.push(0);
        own.push(rest);
      }
    }
  } else {
    own = tree[key].map((value, i) => keep(i, value + (tree.folded[i]?.[key] || 0)));
  }
  view.sums = own;
  for (let i = own.length - 1; i > 0; --i) own[view.parent[i]] += own[i];
  view.children = view.name.map(() => []);
  for (let i = 1; i < own.length; ++i) if (own[i] > 0) view.children[view.parent[i]].push(i);
  for (const list of view.children) list.sort((a, b) => own[b] - own[a] || a - b);
  return view;
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
const squarify = (nodes, sums, total, place) => {
  const boxes = [];
  let left = total;
  for (let begin = 0; begin < nodes.length && left > 0;) {
    const wide = place.width >= place.height;
    const side = wide ? place.height : place.width;
    const scale = place.width * place.height / left;
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
    let at = wide ? place.y : place.x;
    for (; begin < end; ++begin) {
      const long = sums[nodes[begin]] * scale / thick;
      boxes.push(wide ? {x: place.x, y: at, width: thick, height: long} : {x: at, y: place.y, width: long, height: thick});
      at += long;
      left -= sums[nodes[begin]];
    }
    place = wide ? {...place, x: place.x + thick, width: place.width - thick} : {...place, y: place.y + thick, height: place.height - thick};
  }
  return boxes;
};

const drawTree = (host) => {
  const tree = data.tree;
  const key = measures[state.tree] ? state.tree : 'count';
  const measure = measures[key];
  const series = data.tables.files.series;
  const view = treeView(tree, key, (i) => treePath(tree, i), (i) => (tree.file[i] === null ? null : series[tree.file[i]]));
  const {sums, children} = view;
  const root = rootOf(view, state.root);
  host.append(make('div', {class: 'bar'},
    select('By', state.tree, measureChoices, (value) => change('tree', {tree: value})),
    crumbs(view, root, (node) => change('tree', {root: node}))));
  if (!(sums[root] > 0)) { host.append(make('p', {}, 'Nothing of that.')); return; }
  const height = 420;
  const svg = picture(room.width, height, `${treePath(view, root)} by ${measure.name}: ${measure.form(sums[root])}`);
  const draw = (node, box, depth) => {
    const leaf = children[node].length === 0;
    const rect = titled(shape('rect', {...box, class: `box c${depth % 7}`}), `${treePath(view, node)}: ${measure.form(sums[node])}`);
    if (!leaf) rect.addEventListener('click', () => change('tree', {root: String(node)}));
    svg.append(rect);
    if (box.height >= 15 && box.width >= 30) {
      // A number that is cut is a wrong one.
      const name = view.name[node] || '/', both = `${name} ${measure.form(sums[node])}`;
      svg.append(shape('text', {x: box.x + 3, y: box.y + 11, class: 'on', 'pointer-events': 'none'},
        textWidth(both) <= box.width - 6 ? both : shorten(name, box.width - 6)));
    }
    if (leaf || box.width < 12 || box.height < 23) return;
    const place = {x: box.x + 2, y: box.y + 15, width: box.width - 4, height: box.height - 17};
    squarify(children[node], sums, sums[node], place).forEach((inner, i) => {
      if (inner.width >= 1 && inner.height >= 1) draw(children[node][i], inner, depth + 1);
    });
  };
  draw(root, {x: 0, y: 0, width: room.width, height}, 0);
  host.append(make('div', {class: 'figure'}, svg));
  if (!view.whole && state.q !== '') says(host, 'Of some files times are not kept apart: what they did then is not here.');
  const details = make('details', {}, make('summary', {}, 'As a table'));
  const rows = view.name.map((_, i) => [treePath(view, i), sums[i]]).filter(([, sum]) => sum > 0);
  drawTable(details, [{key: 'name', name: 'path, with all below it'}, {key, name: measure.name, form: measure.form}], rows, {name: 'tree', panel: 'tree'});
  host.append(details);
};
