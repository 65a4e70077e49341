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
      const text = `${what} in a cell: ${from}`;
      svg.append(shape('text', {x, y: 11}, text));
      x += textWidth(text) + 6;
      for (let i = 0; i < 8; ++i) svg.append(shape('rect', {x: x + 14 * i, y: 2, width: 14, height: 10, class: `h${i}`}));
      svg.append(shape('text', {x: x + 118, y: 11}, `${to} (logarithmic)`));
    },
  };
};
const binWidth = (scale, bin) => Math.max(1, scale.x(binTime(bin + 1)) - scale.x(binTime(bin)));

const drawLatency = (host) => {
  const {rows, cells} = data.latency;
  const [first, end] = chosenBins() || [0, data.time.coarse_bins];
  let low = rows.length, high = -1, largest = 1;
  for (let i = 0; i < cells.length; i += 3) {
    if (cells[i] < first || cells[i] >= end) continue;
    low = Math.min(low, cells[i + 1]);
    high = Math.max(high, cells[i + 1]);
    largest = Math.max(largest, cells[i + 2]);
  }
  if (high < 0) { host.append(make('p', {}, 'No operation with a duration in that time.')); return; }
  const scale = timeScale(70);
  const step = Math.min(16, Math.max(8, 220 / (high - low + 1)));
  const bottom = 24 + step * (high - low + 1);
  const svg = picture(kWidth, bottom + 24, `latency over time, from ${format.time(rows[low])} on; at most ${format.count(largest)} operations in a cell`);
  const heat = heatCells();
  const sums = new Array(rows.length).fill(0);
  for (let i = 0; i < cells.length; i += 3) {
    const [bin, row, count] = [cells[i], cells[i + 1], cells[i + 2]];
    if (bin < first || bin >= end) continue;
    sums[row] += count;
    heat.add(scale.x(binTime(bin)), bottom - step * (row - low + 1), binWidth(scale, bin), step, Math.log1p(count) / Math.log1p(largest));
  }
  heat.draw(svg);
  heat.legend(svg, 70, 'operations', 1, format.count(largest));
  for (const ns of logTimeTicks(Math.max(rows[low], rows[1]), rows[high + 1] ?? rows[high])) {
    let row = low;
    while (row < high && rows[row + 1] <= ns) ++row;
    const share = row + 1 < rows.length ? Math.min(1, (ns - rows[row]) / (rows[row + 1] - rows[row])) : 0;
    const y = bottom - step * (row - low + share);
    svg.append(shape('path', {d: `M66 ${y}H70`, class: 'axis'}), shape('text', {x: 64, y: y + 4, 'text-anchor': 'end'}, tickTime(ns, ns)));
  }
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
  const [first, end] = chosenBins() || [0, data.time.coarse_bins];
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
  const names = 270, totals = 70, bottom = 20 + 16 * shown.length;
  const scale = timeScale(names);
  const {form, name: what} = measures[state.heat] || measures.count;
  const svg = picture(kWidth + totals, bottom + 24, `${state.heat} of ${state.places} over time; most: ${shown[0].name}, ${form(shown[0].sum)}`);
  const heat = heatCells();
  shown.forEach(({name, series, sum}, line) => {
    const y = 20 + 16 * line;
    for (let p = 0; p < series.length; p += 5) {
      const bin = series[p];
      if (bin < first || bin >= end || series[p + column] === 0) continue;
      heat.add(scale.x(binTime(bin)), y, binWidth(scale, bin), 15, Math.log1p(series[p + column]) / Math.log1p(largest));
    }
    svg.append(titled(shape('text', {x: names - 6, y: y + 12, 'text-anchor': 'end'}, shorten(name, names - 8)), name),
      shape('text', {x: kWidth + totals - 4, y: y + 12, 'text-anchor': 'end'}, form(sum)));
  });
  heat.draw(svg);
  heat.legend(svg, names, what, form(1), form(largest));
  timeAxis(svg, scale, bottom);
  host.append(make('div', {class: 'figure'}, svg));
  const details = make('details', {}, make('summary', {}, 'As a table'));
  drawTable(details, [{key: 'name', name: singular[state.places] || state.places}, {key: state.heat, name: (measures[state.heat] || measures.count).name, form}],
    lines.map(({name, sum}) => [name, sum]), {name: 'places', panel: 'directories'});
  host.append(details);
};
