// Processes: who began whom, what each did, with a bar of the life of each.

const folded = new Map();  // by process: whether its children are hidden, as the reader wants it
const kOpenLines = 40;     // lines that are there at first, at least

// What is told of processes now: those that did something in the chosen time and bear what is searched for, and all
// above them. {shown, sums (with all below), own, unknown, children}
const processView = () => {
  const all = data.processes;
  const bins = chosenBins(), time = chosenTime();
  const children = all.name.map(() => []);
  for (let i = 1; i < all.name.length; ++i) children[all.parent[i]].push(i);
  const lives = (i) => !time || (all.begin_ns[i] !== null && all.begin_ns[i] < time[1] && all.end_ns[i] >= time[0]);
  let unknown = 0;
  const own = all.name.map((_, i) => {
    const whole = Object.fromEntries(kPoint.map((key) => [key, all[key][i] + (all.folded[i]?.[key] || 0)]));
    if (!bins || whole.count === 0) return whole;
    const sum = sumOfSeries(all.series[i], bins);
    if (sum !== null) return sum;
    const inside = all.begin_ns[i] !== null && all.begin_ns[i] >= time[0] && all.end_ns[i] < time[1] && !all.folded[i];
    if (inside || !lives(i)) return inside ? whole : {count: 0, errors: 0, bytes: 0, time_ns: 0};
    ++unknown;
    return null;
  });
  const shown = new Set();
  for (let i = 1; i < all.name.length; ++i) {
    const did = own[i] === null || own[i].count > 0 || (state.idle === '1' && lives(i) && (all.pid[i] || children[i].length));
    if (!did || !matches(processName(i))) continue;
    for (let at = i; at !== 0 && !shown.has(at); at = all.parent[at]) shown.add(at);
  }
  const sums = own.map((sum) => ({...(sum || {count: 0, errors: 0, bytes: 0, time_ns: 0})}));
  const below = own.map(() => 0);
  for (let i = own.length - 1; i > 0; --i) {
    if (!shown.has(i)) continue;
    kPoint.forEach((key) => { sums[all.parent[i]][key] += sums[i][key]; });
    below[all.parent[i]] += 1 + below[i];
  }
  return {shown, own, sums, below, unknown, children: children.map((list) => list.filter((i) => shown.has(i)))};
};

// Lines from the top, as many levels as make some number of them, or as the reader opened them.
const processLines = (view) => {
  const isOpen = new Map();
  const picked = new Set();
  for (let at = Number(state.process) || 0; at > 0; at = data.processes.parent[at]) picked.add(data.processes.parent[at]);
  let lines = 0, level = [0];
  while (level.length) {
    const next = [];
    for (const node of level) {
      const open = node === 0 || picked.has(node) || (folded.has(node) ? !folded.get(node) : state.q !== '' || lines < kOpenLines);
      isOpen.set(node, open);
      if (!open) continue;
      lines += view.children[node].length;
      next.push(...view.children[node]);
    }
    level = next;
  }
  const found = [];
  const walk = (node, depth) => {
    if (node !== 0) found.push({node, depth, open: isOpen.get(node)});
    if (isOpen.get(node)) for (const child of view.children[node]) walk(child, depth + 1);
  };
  walk(0, -1);
  return found;
};

const processStyle = (i) => {
  const {exit, ended} = data.processes;
  if (exit[i] !== '' && exit[i] !== '0') return 'bad';
  return ended[i] ? 'c0' : 'c0 open';
};

// The life of a process; of those that are folded into its line, a thin line each.
const lifeBar = (view, node, open) => {
  const {begin_ns: begins, end_ns: ends} = data.processes;
  const svg = shape('svg', {viewBox: '0 0 1000 14', preserveAspectRatio: 'none', 'aria-hidden': 'true'});
  const [from, to] = chosenTime() || [0, Math.max(1, data.time.length_ns)];
  const at = (ns) => Math.min(1000, Math.max(0, (ns - from) / (to - from) * 1000));
  const bar = (i, y, height, style) => {
    if (begins[i] === null || begins[i] > to || ends[i] < from) return '';
    if (style === null) return `M${at(begins[i]).toFixed(1)} ${y}h${Math.max(2, at(ends[i]) - at(begins[i])).toFixed(1)}v${height}h-${Math.max(2, at(ends[i]) - at(begins[i])).toFixed(1)}z`;
    svg.append(shape('rect', {x: at(begins[i]), y, width: Math.max(2, at(ends[i]) - at(begins[i])), height, class: style}));
    return '';
  };
  bar(node, 1, 12, processStyle(node));
  if (open || !view.children[node].length) return svg;
  let d = '', most = 400;
  const walk = (i, depth) => {
    for (const child of view.children[i]) {
      if (--most < 0) return;
      d += bar(child, 3 + 3 * Math.min(depth, 2), 2, null);
      walk(child, depth + 1);
    }
  };
  walk(node, 0);
  if (d) svg.append(shape('path', {d, class: 'inner'}));
  return svg;
};

const processRow = (view, {node, depth, open}, body) => {
  const all = data.processes;
  const name = make('td', {});
  name.style.paddingLeft = `${8 + 14 * Math.min(depth, 16)}px`;
  const more = view.children[node].length > 0;
  if (more) {
    name.append(make('button', {
      class: 'fold', 'aria-expanded': open ? 'true' : 'false', 'aria-label': `children of ${processName(node)}`,
      onclick: () => { folded.set(node, open); render(); },
    }, open ? '\u2212' : '+'));
  }
  const picked = state.process === String(node);
  name.append(make('button', {class: 'row', 'aria-expanded': picked ? 'true' : 'false', title: processName(node),
    onclick: () => change('processes', {process: picked ? '' : String(node)})}, `${all.pid[node] || ''} ${shortName(node)}`.trim()));
  if (more && !open) name.append(make('span', {class: 'small'}, ` with ${format.count(view.below[node])} below`));
  const life = make('td', {class: 'life'}, lifeBar(view, node, open));
  const sum = more && !open ? view.sums[node] : view.own[node];
  const cell = (value) => make('td', {}, value);
  const begin = all.begin_ns[node];
  const numbers = sum === null ? ['-', '-', '-', '-'] : numbersOf(kPoint.map((key) => sum[key]));
  body.append(make('tr', {class: picked ? 'picked' : false}, name, life,
    cell(format.since(begin)), cell(format.took(begin === null ? 0 : all.end_ns[node] - begin)),
    cell(all.exit[node] || (all.ended[node] ? '?' : begin === null ? '-' : 'not seen')), ...numbers.map(cell)));
  if (picked) body.append(make('tr', {class: 'inside'}, make('td', {colspan: 9}, filesOfProcess(node))));
};

const drawProcesses = (host) => {
  const all = data.processes;
  const view = processView();
  const lines = processLines(view);
  const most = shownRows.get('processes') || 300;
  const body = make('tbody');
  for (const line of lines.slice(0, most)) processRow(view, line, body);
  if (!lines.length) body.append(make('tr', {class: 'nothing'}, make('td', {colspan: 9}, 'No process like that did anything then.')));
  const total = all.name.length - 1;
  const bar = make('div', {class: 'bar'},
    make('span', {role: 'status'}, `${format.count(view.shown.size)} of ${format.count(total)} processes${state.idle === '1' ? '' : ' did something, or began one that did'}`),
    make('label', {}, make('input', {type: 'checkbox', checked: state.idle === '1', onchange: (event) => change('processes', {idle: event.target.checked ? '1' : ''})}), ' all'),
    make('button', {class: 'do', onclick: () => { for (const i of view.shown) folded.set(i, false); render(); }}, 'Open all'),
    make('button', {class: 'do', onclick: () => { for (const i of view.shown) folded.set(i, true); render(); }}, 'Fold all'),
    make('button', {class: 'do', onclick: () => {
      const columns = ['pid', 'ppid', 'name', 'command', 'begin_ns', 'end_ns', 'exit', 'count', 'errors', 'read', 'written', 'time_ns'];
      download('processes.csv', 'text/csv', csvText(columns.map((key) => ({key})), [...view.shown].map((i) => columns.map((key) => all[key][i]))));
    }}, 'CSV'));
  if (lines.length > most) {
    bar.append(make('button', {class: 'do', onclick: () => { shownRows.set('processes', most * 4); render(); }}, `Show more (${format.count(lines.length - most)} left)`));
  }
  host.append(bar);
  drawGantt(host, view);
  const heads = ['process', 'life', 'began', 'lived', 'exit', 'ops', 'errors', 'bytes', 'time'];
  host.append(make('div', {class: 'scroll tall'}, make('table', {class: 'tree', 'data-table': 'processes', 'aria-label': 'processes'},
    make('thead', {}, make('tr', {}, ...heads.map((head) => make('th', {scope: 'col', class: head === 'life' ? 'text' : false}, head)))), body)));
  if (view.unknown) says(host, `${format.count(view.unknown)} processes have figures for the whole time alone: they are left empty.`);
  if (!all.recorded) says(host, 'No process records: processes are known from their operations alone, their ends are not.');
};
