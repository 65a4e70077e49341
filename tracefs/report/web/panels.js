// Panels that are tables alone, and the table of all panels.

const drawOperations = (host) => {
  const bins = chosenBins();
  const columns = [
    {key: 'op', name: 'operation'}, {key: 'count', name: 'ops', form: format.count},
    {key: 'errors', name: 'errors', form: format.count}, {key: 'bytes', name: 'bytes', form: format.bytes},
    {key: 'time_ns', name: 'time', form: format.took}, {key: 'p50_ns', name: 'p50', form: format.took},
    {key: 'p90_ns', name: 'p90', form: format.took}, {key: 'p99_ns', name: 'p99', form: format.took},
    {key: 'p999_ns', name: 'p99.9', form: format.took}, {key: 'longest_ns', name: 'longest', form: format.took},
  ];
  const ofTime = (op) => {
    const sum = sumOfSeries(op.series, bins);
    const counts = cellCounts([op], bins);
    const at = (share) => quantileOf(counts, share, op.shortest_ns, op.longest_ns);
    return [op.op, sum.count, sum.errors, sum.bytes, sum.time_ns, at(0.5), at(0.9), at(0.99), at(0.999), at(1)];
  };
  const rows = bins ? data.operations.filter(({series}) => series).map(ofTime).filter((row) => row[1] > 0) : data.operations.map((op) =>
    [op.op, op.count, op.errors, op.bytes, op.time_ns, op.p50_ns, op.p90_ns, op.p99_ns, op.p999_ns, op.longest_ns]);
  drawTable(host, columns, rows, {name: 'operations', panel: 'operations', note: bins ? `of the chosen time; percentiles and the longest within ${cellPrecision()}` : ''});
};

// Errors of the chosen time: rows as of the data, and how many are in none.
const errorsOfTime = () => {
  const {rows, series, others} = data.errors;
  const bins = chosenBins();
  if (!bins) return {rows, others};
  const found = [];
  rows.forEach(([error, op, command], i) => {
    let count = 0;
    if (series[i]) eachInBins(series[i], 2, bins, (n) => { count += n; });
    if (count) found.push([error, op, command, count]);
  });
  return {rows: found, others: Math.max(0, totalsOfTime(bins).errors - found.reduce((sum, row) => sum + row[3], 0))};
};

const errorMatrix = (rows) => {
  const errnos = new Map(), ops = new Map(), cells = new Map();
  const add = (map, key, n) => map.set(key, (map.get(key) || 0) + n);
  for (const [errno, op, , count] of rows) {
    add(errnos, errno, count);
    add(ops, op, count);
    add(cells, `${errno} ${op}`, count);
  }
  const sorted = (map) => [...map].sort((a, b) => b[1] - a[1]);
  const heads = sorted(ops).slice(0, 12).map(([op]) => op);
  const body = make('tbody', {}, ...sorted(errnos).map(([errno, sum]) => make('tr', {}, make('th', {scope: 'row'}, errno),
    ...heads.map((op) => make('td', {}, cells.has(`${errno} ${op}`) ? format.count(cells.get(`${errno} ${op}`)) : '')), make('td', {}, format.count(sum)))));
  return make('div', {class: 'scroll'}, make('table', {'data-table': 'error-matrix', 'aria-label': 'errors by operation'},
    make('thead', {}, make('tr', {}, ...['error', ...heads, 'all'].map((head) => make('th', {scope: 'col'}, head)))), body));
};

const drawErrors = (host) => {
  const {rows, others} = errorsOfTime();
  if (!rows.length && !others) { host.append(make('p', {}, chosenBins() ? 'No operation failed then.' : 'No operation failed.')); return; }
  const found = rows.filter((row) => state.q === '' || row.slice(0, 3).some(matches));
  if (found.length) host.append(errorMatrix(found));
  drawTable(host, [{key: 'error', name: 'error'}, {key: 'op', name: 'operation'}, {key: 'command', name: 'command'},
    {key: 'count', name: 'ops', form: format.count}], rows,
  {name: 'errors', panel: 'errors', other: others ? ['others', '', '', others] : null, note: chosenBins() ? 'of the chosen time' : ''});
  host.append(make('h3', {}, 'Where'));
  const bins = chosenBins();
  for (const [name, title] of [['directories', 'directory'], ['files', 'path']]) {
    const table = data.tables[name];
    const {rows: of, without} = bins ? rowsOfTime(table, bins) : {rows: table.rows, without: 0};
    drawTable(host, [{key: 'name', name: title}, {key: 'errors', name: 'errors', form: format.count}, {key: 'count', name: 'of ops', form: format.count}],
      of.filter((row) => row[2] > 0).map((row) => [row[0], row[2], row[1]]).sort((a, b) => b[1] - a[1]), {name: `failing-${name}`, panel: 'errors', note: bins ? withoutBins(without) : ''});
  }
};

const drawSlowest = (host) => {
  const time = chosenTime();
  const rows = time ? [...data.slowest, ...data.slowest_of_bins].filter(([ns]) => ns !== null && ns >= time[0] && ns < time[1]).sort((a, b) => b[1] - a[1]) : data.slowest;
  const all = totalsOfTime(chosenBins() || allBins()).count;
  drawTable(host, [
    {key: 'begin_ns', name: 'began', form: format.since}, {key: 'time_ns', name: 'took', form: format.time},
    {key: 'op', name: 'operation'}, {key: 'error', name: 'error'}, {key: 'pid', name: 'pid', form: String},
    {key: 'command', name: 'command'}, {key: 'name', name: 'path'},
  ], rows, {name: 'slowest', panel: 'slowest', note: time && rows.length < all ? `of ${format.count(all)} of the chosen time; the first five are the slowest of them, between others some may be missing` : ''});
};

const countedColumns = {
  count: {name: 'ops', form: format.count}, errors: {name: 'errors', form: format.count}, bytes: {name: 'bytes', form: format.bytes},
  time_ns: {name: 'time', form: format.took}, p50_ns: {name: 'p50', form: format.took}, p99_ns: {name: 'p99', form: format.took},
  longest_ns: {name: 'longest', form: format.took},
};
const drawCounted = (host) => {
  if (chosenBins()) says(host, 'Of all the time: what was counted is not kept by time for each key; Over time has it by operation.');
  data.counted.forEach((table, i) => drawCountedTable(host, table, i));
};
const drawCountedTable = (host, table, i) => {
  const keys = table.by.length ? table.by : ['key'];
  const line = (name, numbers) => [name, ...new Array(keys.length - 1).fill(''), ...numbers];
  host.append(make('h3', {}, `${table.trace}: ${table.title}`), make('p', {class: 'small'},
    `${format.count(table.sum[0])} operations in ${format.time(table.length_ns)}`));
  drawTable(host, [...keys.map((name) => ({key: name, name})), ...table.values.map((key) => ({key, ...countedColumns[key]}))],
    table.by.length ? table.rows : table.rows.map((row) => ['all', ...row]),
    {name: `counted-${i + 1}`, label: `${table.trace}: ${table.title}`, panel: 'counted', other: table.other && line('other keys', table.other)});
};

// Lines of the headers: what is searched for stays. They are of no time.
const drawConfiguration = (host, still) => {
  host.append(...still);
  if (chosenBins()) says(host, 'This does not depend on the chosen time.');
  for (const name of host.querySelectorAll('dt')) {
    const value = name.nextElementSibling;
    const hide = state.q !== '' && !matches(name.textContent) && !matches(value.textContent);
    name.hidden = hide;
    value.hidden = hide;
  }
};

// By the id of a section; the others stay as they came.
const panels = {
  timeline: drawTimeline, operations: drawOperations, latency: drawLatency, directories: drawPlaces, files: drawNames,
  tree: drawTree, processes: drawProcesses, access: drawAccess, errors: drawErrors, flame: drawFlame,
  slowest: drawSlowest, counted: drawCounted, configuration: drawConfiguration,
};
