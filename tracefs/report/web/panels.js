// Panels that are tables alone, and the table of all panels.

const drawOperations = (host) => {
  const [first, end] = chosenFine();
  const all = !chosenBins();
  const columns = [
    {key: 'op', name: 'operation'}, {key: 'count', name: 'ops', form: format.count},
    {key: 'errors', name: 'errors', form: format.count}, {key: 'bytes', name: 'bytes', form: format.bytes},
    {key: 'time_ns', name: 'time', form: format.time}, {key: 'p50_ns', name: 'p50', form: format.time},
    {key: 'p90_ns', name: 'p90', form: format.time}, {key: 'p99_ns', name: 'p99', form: format.time},
    {key: 'p999_ns', name: 'p99.9', form: format.time}, {key: 'longest_ns', name: 'longest', form: format.time},
  ];
  const rows = data.operations.map((op) => (all
    ? [op.op, op.count, op.errors, op.bytes, op.time_ns, op.p50_ns, op.p90_ns, op.p99_ns, op.p999_ns, op.longest_ns]
    : [op.op, op.bins.slice(first, end).reduce((a, b) => a + b, 0), ...new Array(8).fill(null)]));
  drawTable(host, columns, rows, {name: 'operations', panel: 'operations', note: all ? '' : 'counts are of the chosen time'});
};

const drawErrors = (host) => {
  const errnos = new Map(), ops = new Map(), cells = new Map();
  const add = (map, key, n) => map.set(key, (map.get(key) || 0) + n);
  for (const [errno, op, , count] of data.errors.rows) {
    add(errnos, errno, count);
    add(ops, op, count);
    add(cells, `${errno} ${op}`, count);
  }
  const sorted = (map) => [...map].sort((a, b) => b[1] - a[1]);
  const heads = sorted(ops).slice(0, 12).map(([op]) => op);
  const matrix = make('tbody', {}, ...sorted(errnos).map(([errno, sum]) => make('tr', {}, make('th', {scope: 'row'}, errno),
    ...heads.map((op) => make('td', {}, cells.has(`${errno} ${op}`) ? format.count(cells.get(`${errno} ${op}`)) : '')), make('td', {}, format.count(sum)))));
  if (!data.errors.rows.length) { host.append(make('p', {}, 'No operation failed.')); return; }
  host.append(make('div', {class: 'scroll'}, make('table', {'data-table': 'error-matrix', 'aria-label': 'errors by operation'},
    make('thead', {}, make('tr', {}, ...['error', ...heads, 'all'].map((head) => make('th', {scope: 'col'}, head)))), matrix)));
  drawTable(host, [{key: 'error', name: 'error'}, {key: 'op', name: 'operation'}, {key: 'command', name: 'command'},
    {key: 'count', name: 'ops', form: format.count}], data.errors.rows,
  {name: 'errors', panel: 'errors', other: data.errors.others ? ['others', '', '', data.errors.others] : null});
  host.append(make('h3', {}, 'Where'));
  const failing = (table) => data.tables[table].rows.filter((row) => row[2] > 0).map((row) => [row[0], row[2], row[1]]).sort((a, b) => b[1] - a[1]);
  for (const [table, name] of [['directories', 'directory'], ['files', 'path']]) {
    drawTable(host, [{key: 'name', name}, {key: 'errors', name: 'errors', form: format.count}, {key: 'count', name: 'of ops', form: format.count}],
      failing(table), {name: `failing-${table}`, panel: 'errors'});
  }
};

const drawAccess = (host, still) => {
  host.append(...still);
  for (const way of ['read', 'write']) {
    const access = data.access[way];
    if (!access.sizes.length) continue;
    const total = access.sizes.reduce((sum, [, n]) => sum + n, 0);
    host.append(make('h3', {}, `Sizes of ${way}s`), make('p', {class: 'small'},
      `Most common: ${access.common.map(([size, n]) => `${format.size(size)} (${format.count(n)})`).join(', ')}. ` +
      `${format.count(access.unaligned)} of ${format.count(total)} not aligned to 4096 bytes.`));
    drawTable(host, [{key: 'size', name: 'from', form: format.size}, {key: 'below', name: 'to below', form: format.size},
      {key: 'count', name: 'ops', form: format.count}, {key: 'share', name: 'share', form: (v) => `${format.digits(100 * v)} %`}],
    access.sizes.map(([size, n]) => [size, size === 0 ? 1 : 2 * size, n, n / total]), {name: `sizes-${way}`, panel: 'access', narrow: true});
  }
};

const drawSlowest = (host) => {
  const time = chosenTime();
  const rows = data.slowest.filter(([ns]) => !time || (ns !== null && ns >= time[0] && ns < time[1]));
  drawTable(host, [
    {key: 'begin_ns', name: 'began', form: format.since}, {key: 'time_ns', name: 'took', form: format.time},
    {key: 'op', name: 'operation'}, {key: 'error', name: 'error'}, {key: 'pid', name: 'pid', form: String},
    {key: 'command', name: 'command'}, {key: 'name', name: 'path'},
  ], rows, {name: 'slowest', panel: 'slowest'});
};

const countedColumns = {
  count: {name: 'ops', form: format.count}, errors: {name: 'errors', form: format.count}, bytes: {name: 'bytes', form: format.bytes},
  time_ns: {name: 'time', form: format.time}, p50_ns: {name: 'p50', form: format.time}, p99_ns: {name: 'p99', form: format.time},
  longest_ns: {name: 'longest', form: format.time},
};
const drawCounted = (host) => data.counted.forEach((table, i) => {
  const keys = table.by.length ? table.by : ['key'];
  const line = (name, numbers) => [name, ...new Array(keys.length - 1).fill(''), ...numbers];
  host.append(make('h3', {}, `${table.trace}: ${table.title}`), make('p', {class: 'small'},
    `${format.count(table.sum[0])} operations in ${format.time(table.length_ns)}`));
  drawTable(host, [...keys.map((name) => ({key: name, name})), ...table.values.map((key) => ({key, ...countedColumns[key]}))],
    table.by.length ? table.rows : table.rows.map((row) => ['all', ...row]),
    {name: `counted-${i + 1}`, label: `${table.trace}: ${table.title}`, panel: 'counted', other: table.other && line('other keys', table.other)});
});

// By the id of a section; the others stay as they came.
const panels = {
  timeline: drawTimeline, operations: drawOperations, latency: drawLatency, directories: drawPlaces, files: drawNames,
  tree: drawTree, processes: drawProcesses, access: drawAccess, errors: drawErrors, flame: drawFlame,
  slowest: drawSlowest, counted: drawCounted,
};
