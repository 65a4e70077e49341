// Heat maps: latency, and places, over time.

const heatCells = () => {
  const paths = new Array(8).fill('');
  return {
    add(x, y, width, height, share) {
      paths[Math.min(7, Math.floor(share * 8))] += `M${x.toFixed(1)} ${y.toFixed(1)}h${width.toFixed(1)}v${height.toFixed(1)}h-${width.toFixed(1)}z`;
    },
    draw: (svg) => paths.forEach((d, i) => d && svg.append(shape('path', {d, class: `h${i}`}))),
    // Which colour is how much, in a line of its own.
    legend(svg, x, what, from, to) {
      const text = room.width < 520 ? `a cell: ${from}` : `${what} in a cell: ${from}`;
      svg.append(shape('text', {x, y: 11}, text));
      x += textWidth(text) + 6;
      for (let i = 0; i < 8; ++i) svg.append(shape('rect', {x: x + 14 * i, y: 2, width: 14, height: 10, class: `h${i}`}));
      svg.append(shape('text', {x: x + 118, y: 11}, room.width < 520 ? `${to} (log)` : `${to} (logarithmic)`));
    },
  };
};
const binWidth = (scale, bin) => Math.max(1, scale.x(binTime(bin + 1)) - scale.x(binTime(bin)));

// The cells of all operations, or finer ones of one kind or some.
const latencyCells = () => {
  const found = data.operations.filter(({op}) => (state.op === '' ? state.q !== '' && matches(op) : op === state.op));
  if (!found.length || found.length === data.operations.length) return {...data.latency, of: data.operations};
  return {rows: data.latency.cell_rows, cells: found.flatMap(({cells}) => cells), of: found};
};

const latencyTicks = (svg, rows, low, high, step, bottom) => {
  let above = bottom + 14;
  for (const ns of logTimeTicks(Math.max(rows[low], rows[1]), rows[high + 1] ?? rows[high])) {
    let row = low;
    while (row < high && rows[row + 1] <= ns) ++row;
    const share = row + 1 < rows.length ? Math.min(1, (ns - rows[row]) / (rows[row + 1] - rows[row])) : 0;
    const y = bottom - step * (row - low + share);
    if (above - y < 13) continue;
    above = y;
    svg.append(shape('path', {d: `M66 ${y}H70`, class: 'axis'}), shape('text', {x: 64, y: y + 4, 'text-anchor': 'end'}, tickTime(ns, ns)));
  }
};

// Of one kind, or of all, over the whole time quantiles are in the data.
const latencyQuantiles = (of, bins) => {
  const whole = of.length === data.operations.length ? data.totals : of.length === 1 ? of[0] : null;
  if (!chosenBins() && whole) return {p50: whole.p50_ns, p99: whole.p99_ns, within: '0.8 %'};
  const counts = cellCounts(of, bins);
  const shortest = Math.min(...of.map((op) => op.shortest_ns)), longest = Math.max(...of.map((op) => op.longest_ns));
  return {p50: quantileOf(counts, 0.5, shortest, longest), p99: quantileOf(counts, 0.99, shortest, longest), within: cellPrecision()};
};
const latencySays = (host, of, count) => {
  const {p50, p99, within} = latencyQuantiles(of, chosenBins() || allBins());
  const names = of.length === data.operations.length ? 'operations' : of.map(({op}) => op).join(', ');
  says(host, `${format.count(count)} ${names}${chosenBins() ? ' of the chosen time' : ''}: half took at most ${format.took(p50)}, 99 of 100 at most ${format.took(p99)} (within ${within}).`);
};

const drawLatency = (host) => {
  const {rows, cells, of} = latencyCells();
  const [first, end] = chosenBins() || allBins();
  host.append(make('div', {class: 'bar'}, select('Of', state.op, [['', 'all operations'], ...data.operations.map(({op}) => [op, op])], (op) => change('latency', {op}))));
  if (state.q !== '' && of.length === data.operations.length) says(host, 'Search finds kinds of operations here; durations are not kept by name.');
  let low = rows.length, high = -1;
  const sums = new Array(rows.length).fill(0), numbers = new Map();
  for (let i = 0; i < cells.length; i += 3) {
    const [bin, row, count] = [cells[i], cells[i + 1], cells[i + 2]];
    if (bin < first || bin >= end) continue;
    low = Math.min(low, row);
    high = Math.max(high, row);
    sums[row] += count;
    const key = bin * rows.length + row;
    numbers.set(key, (numbers.get(key) || 0) + count);
  }
  if (high < 0) { host.append(make('p', {}, 'No operation with a duration in that time.')); return; }
  const largest = Math.max(...numbers.values());
  latencySays(host, of, sums.reduce((a, b) => a + b, 0));
  const scale = timeScale(70);
  const step = Math.min(16, Math.max(rows === data.latency.rows ? 8 : 3, 220 / (high - low + 1)));
  const bottom = 24 + step * (high - low + 1);
  const svg = picture(room.width, bottom + 24, `latency over time, from ${format.time(rows[low])} on; at most ${format.count(largest)} operations in a cell`);
  const heat = heatCells();
  for (const [key, count] of numbers) {
    const row = key % rows.length, bin = (key - row) / rows.length;
    heat.add(scale.x(binTime(bin)), bottom - step * (row - low + 1), binWidth(scale, bin), step, Math.log1p(count) / Math.log1p(largest));
  }
  heat.draw(svg);
  heat.legend(svg, 70, 'operations', 1, format.count(largest));
  latencyTicks(svg, rows, low, high, step, bottom);
  timeAxis(svg, scale, bottom);
  host.append(make('div', {class: 'figure'}, svg));
  const details = make('details', {}, make('summary', {}, 'As a table'));
  drawTable(details, [{key: 'from_ns', name: 'from', form: format.time}, {key: 'count', name: 'ops', form: format.count}],
    rows.map((ns, i) => [ns, sums[i]]).filter(([, n]) => n > 0), {name: 'latency', panel: 'latency'});
  host.append(details);
};

const drawPlaces = (host) => {
  const table = data.tables[state.places] || data.tables.directories;
  const column = {count: 1, errors: 2, bytes: 3, time_ns: 4}[state.heat] || 1;
  const [first, end] = chosenBins() || allBins();
  const lines = [];
  let largest = 0;
  table.series.forEach((series, i) => {
    if (series === null || !matches(table.rows[i][0])) return;
    let sum = 0;
    for (let p = 0; p < series.length; p += 5) {
      if (series[p] < first || series[p] >= end) continue;
      sum += series[p + column];
      largest = Math.max(largest, series[p + column]);
    }
    if (sum > 0) lines.push({name: table.rows[i][0], series, sum});
  });
  lines.sort((a, b) => b.sum - a.sum);
  host.append(make('div', {class: 'bar'},
    select('Of', state.places, Object.keys(data.tables).map((name) => [name, name]), (value) => change('directories', {places: value})),
    select('by', state.heat, measureChoices, (value) => change('directories', {heat: value}))));
  const shown = lines.slice(0, 40);
  if (!shown.length) { host.append(make('p', {}, 'Nothing of that.')); return; }
  const names = namesWidth(), totals = 70, bottom = 20 + 16 * shown.length;
  const without = table.rows.length - table.series.filter((series) => series !== null).length + table.left_out;
  if (without) says(host, `${format.count(without)} ${state.places} whose times are not kept apart are not drawn.`);
  const scale = timeScale(names);
  const {form, name: what} = measures[state.heat] || measures.count;
  const svg = picture(room.width + totals, bottom + 24, `${state.heat} of ${state.places} over time; most: ${shown[0].name}, ${form(shown[0].sum)}`);
  const heat = heatCells();
  shown.forEach(({name, series, sum}, line) => {
    const y = 20 + 16 * line;
    for (let p = 0; p < series.length; p += 5) {
      const bin = series[p];
      if (bin < first || bin >= end || series[p + column] === 0) continue;
      heat.add(scale.x(binTime(bin)), y, binWidth(scale, bin), 15, Math.log1p(series[p + column]) / Math.log1p(largest));
    }
    svg.append(titled(shape('text', {x: names - 6, y: y + 12, 'text-anchor': 'end'}, shorten(name, names - 8)), name),
      shape('text', {x: room.width + totals - 4, y: y + 12, 'text-anchor': 'end'}, form(sum)));
  });
  heat.draw(svg);
  heat.legend(svg, room.width < 520 ? 4 : names, what, form(1), form(largest));
  timeAxis(svg, scale, bottom);
  host.append(make('div', {class: 'figure'}, svg));
  const details = make('details', {}, make('summary', {}, 'As a table'));
  drawTable(details, [{key: 'name', name: singular[state.places] || state.places}, {key: state.heat, name: (measures[state.heat] || measures.count).name, form}],
    lines.map(({name, sum}) => [name, sum]), {name: 'places', panel: 'directories'});
  host.append(details);
};
