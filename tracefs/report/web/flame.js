// Command, path, operation: widths are sums.

const drawFlame = (host) => {
  const flame = data.flame;
  const key = measures[state.flame] ? state.flame : 'count';
  const measure = measures[key];
  const view = treeView(flame, key, (i) => treePath(flame, i, ' '), (i) => flame.series[i]);
  const {sums, children} = view;
  const root = rootOf(view, state.top);
  host.append(make('div', {class: 'bar'},
    select('By', state.flame, measureChoices, (value) => change('flame', {flame: value})),
    crumbs(view, root, (node) => change('flame', {top: node}))));
  if (!(sums[root] > 0)) { host.append(make('p', {}, 'Nothing of that.')); return; }
  const drawn = [];
  const scale = room.width / sums[root];
  const lay = (node, x, depth) => {
    drawn.push({node, x, depth});
    for (const child of children[node]) {
      if (sums[child] * scale >= 1) lay(child, x, depth + 1);
      x += sums[child] * scale;
    }
  };
  lay(root, 0, 0);
  const depths = drawn.reduce((most, {depth}) => Math.max(most, depth), 0);
  const svg = picture(room.width, 17 * (1 + depths), `${measure.name} by command, path and operation`);
  for (const {node, x, depth} of drawn) {
    const width = sums[node] * scale;
    const rect = titled(shape('rect', {x, y: 17 * depth, width, height: 16, class: `box c${(node * 5 + depth) % 7}`}),
      `${treePath(view, node, ' ').trim() || 'all'}: ${measure.form(sums[node])}`);
    rect.addEventListener('click', () => change('flame', {top: String(node)}));
    svg.append(rect);
    if (width >= 20) svg.append(shape('text', {x: x + 3, y: 17 * depth + 12, class: 'on', 'pointer-events': 'none'}, shorten(view.name[node], width - 6)));
  }
  host.append(make('div', {class: 'figure'}, svg));
  if (!view.whole && state.q !== '') says(host, 'Of some of these times are not kept apart: what they did then is not here.');
  const details = make('details', {}, make('summary', {}, 'As a table'));
  drawTable(details, [{key: 'name', name: 'command, path, operation, with all below it'}, {key, name: measure.name, form: measure.form}],
    view.name.map((_, i) => [treePath(view, i, ' ').trim() || 'all', sums[i]]).filter(([, sum]) => sum > 0), {name: 'flame', panel: 'flame'});
  host.append(details);
};
