// Command, path, operation: widths are sums.

const drawFlame = (host) => {
  const flame = data.flame;
  const key = measures[state.flame] ? state.flame : 'count';
  const measure = measures[key];
  const sums = treeSums(flame, key);
  const children = treeChildren(flame, sums);
  const root = rootOf(flame, state.top);
  host.append(make('div', {class: 'bar'},
    select('By', state.flame, measureChoices, (value) => change('flame', {flame: value})),
    crumbs(flame, root, (node) => change('flame', {top: node}))));
  const drawn = [];
  const scale = sums[root] > 0 ? kWidth / sums[root] : 0;
  const lay = (node, x, depth) => {
    drawn.push({node, x, depth});
    for (const child of children[node]) {
      if (sums[child] * scale >= 1) lay(child, x, depth + 1);
      x += sums[child] * scale;
    }
  };
  lay(root, 0, 0);
  const svg = picture(kWidth, 17 * (1 + Math.max(...drawn.map(({depth}) => depth))), `${measure.name} by command, path and operation`);
  for (const {node, x, depth} of drawn) {
    const width = sums[node] * scale;
    const found = state.q === '' || matches(flame.name[node]);
    const rect = titled(shape('rect', {x, y: 17 * depth, width, height: 16, class: `box c${(node * 5 + depth) % 7}${found ? '' : ' dimmed'}`}),
      `${treePath(flame, node, ' ').trim() || 'all'}: ${measure.form(sums[node])}`);
    rect.addEventListener('click', () => change('flame', {top: String(node)}));
    svg.append(rect);
    if (width >= 20) svg.append(shape('text', {x: x + 3, y: 17 * depth + 12, class: 'on', 'pointer-events': 'none'}, shorten(flame.name[node], width - 6)));
  }
  host.append(make('div', {class: 'figure'}, svg));
  const details = make('details', {}, make('summary', {}, 'As a table'));
  drawTable(details, [{key: 'name', name: 'command, path, operation, with all below it'}, {key, name: measure.name, form: measure.form}],
    flame.name.map((_, i) => [treePath(flame, i, ' ').trim() || 'all', sums[i]]).filter(([, sum]) => sum > 0), {name: 'flame', panel: 'flame'});
  host.append(details);
};
