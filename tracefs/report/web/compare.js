// Two runs side by side: their time lines at one scale, and tables of what differs.

defaults.by = 'count';
defaults.sort = '';
state.by = 'count';
state.sort = '';

const signed = (form) => (n) => (n === 0 ? '0' : `${n < 0 ? '-' : '+'}${form(Math.abs(n))}`);
const forms = {
  number: format.count, signed: signed(format.count), bytes: format.bytes, duration: format.time,
  'signed-duration': signed(format.time), share: (part) => `${part > 0 ? '+' : ''}${(100 * part).toFixed(1)} %`,
};

// Of a side: {form, per (of one bin), layers}. A kind of operation has one colour in both.
const layersOf = (side, names) => {
  const perSecond = 1e9 / side.time.bin_ns;
  switch (state.by) {
    case 'bytes': return {form: (v) => `${format.bytes(v)}/s`, per: perSecond, layers: [['read', side.timeline.read], ['written', side.timeline.written]]};
    case 'errors': return {form: (v) => `${roundNumber(v)}/s`, per: perSecond, layers: [['errors', side.timeline.errors]]};
    case 'time_ns': return {form: roundNumber, per: 1 / side.time.bin_ns, layers: [['in flight', side.timeline.time_ns]]};
  }
  const bins = new Map(side.operations.map(({op, bins: numbers}) => [op, numbers]));
  const none = new Array(side.time.bins).fill(0);
  const layers = names.slice(0, 7).map((name) => [name, bins.get(name) || none]);
  const others = names.slice(7).map((name) => bins.get(name)).filter(Boolean);
  if (names.length > 7) layers.push(['others', others.reduce((a, b) => a.map((n, i) => n + b[i]), none)]);
  return {form: (v) => `${roundNumber(v)}/s`, per: perSecond, layers};
};

// As many of the highest bins as would flatten all others are cut, in both.
const commonTop = (all) => {
  const rates = all.flatMap(({sums, per}) => sums.map((n) => n * per)).filter((rate) => rate > 0).sort((a, b) => a - b);
  const most = rates.at(-1) || 1, usual = rates[Math.floor((rates.length - 1) * 0.95)] || most;
  return most > 4 * usual ? 1.5 * usual : most;
};

const drawSide = (host, name, side, it, top, length) => {
  const left = 70, above = 18, height = 130, bottom = above + height;
  const svg = picture(room.width, bottom + 22, `${name} over time, at most ${it.form(Math.max(...it.sums, 0) * it.per)}`);
  const time = timeScale(left, [0, length]);
  const step = roundStep(top, 3);
  for (const value of multiples(step, top, step)) {
    const y = bottom - value / top * height;
    svg.append(shape('path', {d: `M${left} ${y}H${room.right}`, class: 'grid'}), shape('text', {x: left - 6, y: y + 4, 'text-anchor': 'end'}, it.form(value)));
  }
  const below = new Array(it.sums.length).fill(0);
  it.layers.forEach(([, numbers], at) => {
    let d = '';
    numbers.forEach((n, i) => {
      if (!n) return;
      const high = Math.min(1, it.sums[i] * it.per / top) * height;
      const x = time.x(side.time.begin_ns + i * side.time.bin_ns), end = Math.max(x + 0.6, time.x(side.time.begin_ns + (i + 1) * side.time.bin_ns));
      const place = (part) => (bottom - part / it.sums[i] * high).toFixed(1);
      d += `M${x.toFixed(1)} ${place(below[i])}V${place(below[i] + n)}H${end.toFixed(1)}V${place(below[i])}z`;
      below[i] += n;
    });
    svg.append(shape('path', {d, class: at < 7 ? `c${at}` : 'cx'}));
  });
  const cut = it.sums.filter((n) => n * it.per > top).length;
  timeAxis(svg, time, bottom);
  host.append(make('h3', {}, `${name}: ${format.time(side.time.length_ns || 0)}${cut ? `; ${format.count(cut)} bins go beyond the picture, up to ${it.form(Math.max(...it.sums) * it.per)}` : ''}`),
    make('div', {class: 'figure'}, svg));
};

const drawBoth = (host) => {
  const counts = new Map();
  for (const side of data.sides) for (const {op, count} of side.operations) counts.set(op, (counts.get(op) || 0) + count);
  const names = [...counts].sort((a, b) => b[1] - a[1]).map(([op]) => op);
  const all = data.sides.map((side) => {
    const it = layersOf(side, names);
    it.sums = new Array(side.time.bins).fill(0);
    for (const [, numbers] of it.layers) numbers.forEach((n, i) => { it.sums[i] += n; });
    return it;
  });
  host.append(make('div', {class: 'bar'}, select('Show', state.by, [['count', 'operations a second'], ['bytes', 'bytes a second'],
    ['errors', 'errors a second'], ['time_ns', 'operations in flight']], (by) => change('timeline', {by}))));
  const legend = picture(room.width, 20, 'colours');
  const high = drawLegend(legend, 70, all[0].layers.map(([name], at) => [name, at < 7 ? `c${at}` : 'cx']));
  legend.setAttribute('viewBox', `0 0 ${room.width} ${high}`);
  host.append(make('div', {class: 'figure'}, legend));
  const top = commonTop(all), length = Math.max(1, ...data.sides.map(({time}) => time.length_ns || 0));
  data.sides.forEach((side, i) => drawSide(host, 'AB'[i], side, all[i], top, length));
};

const render = () => {
  measureRoom(false);
  const time = document.querySelector('#timeline > .body');
  time.replaceChildren();
  drawBoth(time);
  for (const table of data.tables) {
    const host = document.querySelector(`#by-${table.name} > .body`);
    host.replaceChildren();
    drawTable(host, table.columns.map(({name, unit}) => ({key: name, name, form: forms[unit]})), table.rows, {name: `by-${table.name}`, panel: `by-${table.name}`, other: table.other});
    for (const row of host.querySelectorAll('tbody tr')) {
      const is = [...row.cells].find((cell) => /^(slower|faster|new|gone|same)$/.test(cell.textContent));
      if (is) is.classList.add(`is-${is.textContent}`);
    }
  }
};

const tools = () => {
  const search = make('input', {type: 'search', id: 'search', placeholder: 'Search ( / )', 'aria-label': 'Search names', value: state.q, oninput: () => change(state.panel, {q: search.value})});
  const host = document.getElementById('tools');
  host.append(search, make('span', {}, 'A is before, B after: what takes longer in B is slower.'),
    make('button', {class: 'do', onclick: () => download('comparison.json', 'application/json', document.getElementById('data').textContent)}, 'Data (JSON)'));
  host.hidden = false;
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || /^(INPUT|SELECT)$/.test(event.target.tagName)) return;
    event.preventDefault();
    search.focus();
  });
};

readFragment();
tools();
render();
let resized = 0;
addEventListener('resize', () => {
  clearTimeout(resized);
  resized = setTimeout(render, 150);
});
document.documentElement.dataset.ready = '1';
