// Processes: who began whom, with a bar of the life of each.

const folded = new Set();  // processes whose children are not shown

const lifeBar = (node) => {
  const {begin_ns: begins, end_ns: ends, ended, exit} = data.processes;
  const svg = shape('svg', {viewBox: '0 0 1000 12', preserveAspectRatio: 'none', 'aria-hidden': 'true'});
  if (begins[node] === null) return svg;
  const [from, to] = chosenTime() || [0, Math.max(1, data.time.length_ns)];
  const at = (ns) => Math.min(1000, Math.max(0, (ns - from) / (to - from) * 1000));
  const failed = exit[node] !== '' && exit[node] !== '0';
  svg.append(shape('rect', {x: at(begins[node]), y: 1, width: Math.max(2, at(ends[node]) - at(begins[node])), height: 10,
    class: failed ? 'bad' : ended[node] ? 'c0' : 'c0 open'}));
  return svg;
};

const drawProcesses = (host) => {
  const all = data.processes;
  const children = all.name.map(() => []);
  for (let i = 1; i < all.name.length; ++i) children[all.parent[i]].push(i);
  const chosen = chosenTime();
  const text = (i) => `${all.pid[i] || ''} ${all.command[i] || all.name[i]}`.trim();
  // A line that stands for callers of whom there were none.
  const isNobody = (i) => all.begin_ns[i] === null && all.count[i] === 0 && !all.pid[i] && !children[i].length;
  // Shown: what matches, lives in the chosen time, and all above it.
  const shown = new Set();
  for (let i = 1; i < all.name.length; ++i) {
    const lives = !chosen || (all.begin_ns[i] !== null && all.begin_ns[i] < chosen[1] && all.end_ns[i] >= chosen[0]);
    if (!lives || !matches(text(i)) || isNobody(i)) continue;
    for (let at = i; at !== 0 && !shown.has(at); at = all.parent[at]) shown.add(at);
  }
  const lines = [];
  const walk = (node, depth) => {
    if (node !== 0) {
      if (!shown.has(node)) return;
      lines.push([node, depth]);
    }
    if (!folded.has(node)) for (const child of children[node]) walk(child, depth + 1);
  };
  walk(0, -1);
  const most = shownRows.get('processes') || 60;
  const body = make('tbody');
  for (const [node, depth] of lines.slice(0, most)) {
    const name = make('td', {});
    name.style.paddingLeft = `${8 + 14 * Math.min(depth, 16)}px`;
    if (children[node].length) {
      name.append(make('button', {
        'aria-expanded': folded.has(node) ? 'false' : 'true', 'aria-label': `children of ${text(node)}`,
        onclick: () => { if (!folded.delete(node)) folded.add(node); render(); },
      }, folded.has(node) ? '+' : '\u2212'));
    }
    name.append(text(node));
    const life = make('td', {class: 'life'});
    life.append(lifeBar(node));
    const cell = (value) => make('td', {}, value);
    const begin = all.begin_ns[node];
    body.append(make('tr', {}, name, life,
      cell(format.since(begin)), cell(begin === null ? '-' : format.time(all.end_ns[node] - begin)),
      cell(all.exit[node] || (all.ended[node] ? '?' : 'open')), cell(format.count(all.count[node])),
      cell(format.count(all.errors[node])), cell(format.bytes(all.bytes[node])), cell(format.time(all.time_ns[node]))));
  }
  const heads = ['process', 'life', 'began', 'lived', 'exit', 'ops', 'errors', 'bytes', 'time'];
  const bar = make('div', {class: 'bar'},
    make('span', {role: 'status'}, `${format.count(lines.length)} processes`),
    make('button', {class: 'do', onclick: () => {
      const columns = ['pid', 'ppid', 'name', 'command', 'begin_ns', 'end_ns', 'exit', 'count', 'errors', 'read', 'written', 'time_ns'];
      download('processes.csv', 'text/csv', csvText(columns.map((key) => ({key})), lines.map(([i]) => columns.map((key) => all[key][i]))));
    }}, 'CSV'));
  if (lines.length > most) {
    bar.append(make('button', {class: 'do', onclick: () => { shownRows.set('processes', most * 4); render(); }}, `Show more (${format.count(lines.length - most)} left)`));
  }
  if (!all.recorded) bar.append(make('span', {class: 'small'}, 'No process records: processes are known from their operations alone, their ends are not.'));
  host.append(bar, make('div', {class: 'scroll'}, make('table', {class: 'tree', 'data-table': 'processes', 'aria-label': 'processes'},
    make('thead', {}, make('tr', {}, ...heads.map((head) => make('th', {scope: 'col'}, head)))), body)));
};
