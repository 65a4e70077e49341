// Operations over time, and the choice of a time.

const kTimelineLeft = 70;
const kTimelineHeight = 196;
const countedNote = 'What was counted is known by its periods alone: over each of them it is drawn with one rate. What several traces have counted is in it several times.';

// What is drawn: {form, per, layers: [[name, numbers]], note}.
const timelineLayers = () => {
  const perSecond = 1e9 / data.time.bin_ns;
  const {timeline} = data;
  const rate = (v) => `${roundNumber(v)}/s`;
  const note = state.q === '' ? '' : 'Search finds kinds of operations here, in operations a second; names of files and commands are not kept in this panel.';
  switch (state.timeline) {
    case 'bytes': return {form: (v) => `${format.bytes(v)}/s`, per: perSecond, layers: [['read', timeline.read], ['written', timeline.written]], note};
    case 'errors': return {form: rate, per: perSecond, layers: [['errors', timeline.errors]], note};
    case 'time_ns': return {form: roundNumber, per: 1 / data.time.bin_ns, layers: [['in flight', timeline.time_ns]], note};
  }
  const all = [...data.operations.map(({op, ...more}) => ({name: op, ...more})), ...timeline.counted].sort((a, b) => b.count - a.count);
  const found = all.filter(({name}) => matches(name));
  const ops = found.length ? found : all;
  const layers = ops.slice(0, 7).map(({name, bins}) => [name, bins]);
  const others = ops.slice(7).map(({bins}) => bins);
  if (others.length) layers.push(['others', others.reduce((a, b) => a.map((n, i) => n + b[i]))]);
  return {form: rate, per: perSecond, layers, note: found.length ? '' : note};
};

// How high bars are. On a linear scale one bin that is far above nearly all others would flatten these: it is cut then,
// and says so.
const timelineScale = (sums, bottom) => {
  const most = Math.max(...sums, Number.MIN_VALUE);
  const some = sums.filter((n) => n > 0).sort((a, b) => a - b);
  if (state.scale === 'log') {
    const least = Math.min(some[0] ?? 1, most / 10);
    const height = (v) => (v <= 0 ? 0 : (Math.log(v / least) + 0.7) / (Math.log(most / least) + 0.7) * kTimelineHeight);
    return {top: most, least, log: true, y: (v) => bottom - height(v)};
  }
  const usual = some[Math.floor((some.length - 1) * 0.95)] ?? most;
  const top = state.scale === 'auto' && most > 4 * usual ? 1.5 * usual : most;
  return {top, log: false, y: (v) => bottom - Math.min(1, v / top) * kTimelineHeight};
};

const choose = (first, end) => change('timeline', {from: String(first), to: String(end)});
const zoomTo = (bins) => change('timeline', {zoom: bins ? `${bins[0]}-${bins[1]}` : ''});

// Arrow keys move the chosen time, with Shift they change its length; z zooms to it, Z and Escape lead back.
const brushKeys = (event) => {
  const shown = zoomedBins() || allBins();
  const step = Math.max(1, Math.round((shown[1] - shown[0]) / 32));
  const chosen = chosenBins();
  const [first, end] = chosen || shown;
  const way = {ArrowLeft: -step, ArrowRight: step}[event.key];
  if (event.key === 'z' && chosen) zoomTo(chosen);
  else if (event.key === 'Z') zoomTo(null);
  else if (event.key === 'Escape') change('timeline', {from: '', to: '', zoom: ''});
  else if (!way) return;
  else if (event.shiftKey) choose(first, Math.min(shown[1], Math.max(first + 1, end + way)));
  else if (!chosen) choose(shown[0], Math.min(shown[1], shown[0] + Math.max(1, Math.round((shown[1] - shown[0]) / 4))));
  else {
    const move = Math.max(Math.min(way, shown[1] - end), shown[0] - first);
    choose(first + move, end + move);
  }
  event.preventDefault();
  document.querySelector('#timeline svg')?.focus();
};

const timelineTicks = (svg, scale, per, form, bottom) => {
  const line = (value) => {
    const at = scale.y(value / per);
    svg.append(shape('path', {d: `M${kTimelineLeft} ${at}H${room.right}`, class: 'grid'}),
      shape('text', {x: kTimelineLeft - 6, y: at + 4, 'text-anchor': 'end'}, form(value)));
  };
  if (!scale.log) {
    const step = roundStep(scale.top * per, 5);
    multiples(step, scale.top * per, step).forEach(line);
    return;
  }
  let above = bottom + 14;
  for (let power = 10 ** Math.ceil(Math.log10(scale.least * per)); power <= scale.top * per * (1 + 1e-9); power *= 10) {
    if (above - scale.y(power / per) < 14) continue;
    above = scale.y(power / per);
    line(power);
  }
};

// One path a layer. Where the scale is logarithmic, or a bar is cut, the parts of a bar have their shares of it.
const timelineBars = (svg, layers, sums, shown, scale, x, bottom) => {
  const {bin_ns: width, begin_ns: begin} = data.time;
  const below = new Array(sums.length).fill(0);
  layers.forEach(([, numbers], at) => {
    let d = '';
    for (let i = shown[0]; i < shown[1]; ++i) {
      const n = numbers[i];
      if (!n) continue;
      const height = bottom - scale.y(sums[i]);
      const place = (part) => (bottom - part / sums[i] * height).toFixed(1);
      const left = x(begin + i * width);
      d += `M${left.toFixed(1)} ${place(below[i])}V${place(below[i] + n)}H${Math.max(x(begin + (i + 1) * width), left + 0.6).toFixed(1)}V${place(below[i])}z`;
      below[i] += n;
    }
    svg.append(shape('path', {d, class: at < 7 ? `c${at}` : 'cx'}));
  });
};

// Bars that go on beyond the picture: a mark each, and how far the highest ones go.
const timelineCuts = (svg, sums, shown, scale, per, form, x, top) => {
  const cut = [];
  for (let i = shown[0]; i < shown[1]; ++i) if (!scale.log && sums[i] > scale.top) cut.push(i);
  const taken = [];
  for (const i of cut.sort((a, b) => sums[b] - sums[a])) {
    const at = x(data.time.begin_ns + (i + 0.5) * data.time.bin_ns);
    svg.append(shape('path', {d: `M${at - 4} ${top}l4 -6l4 6z`, class: 'cut'}));
    const text = form(sums[i] * per), half = textWidth(text) / 2 + 4;
    const middle = Math.min(Math.max(at, kTimelineLeft + half), room.right - half);
    if (taken.some((other) => Math.abs(other.middle - middle) < other.half + half) || taken.length > 8) continue;
    taken.push({middle, half});
    svg.append(shape('text', {x: middle, y: top - 8, 'text-anchor': 'middle'}, text));
  }
  return cut.length;
};

const timelineBrush = (svg, scale, top, bottom) => {
  const chosen = chosenTime();
  const shown = zoomedBins() || allBins();
  const brush = shape('rect', {y: top, height: bottom - top, class: 'brush', width: 0, x: 0});
  if (chosen) {
    brush.setAttribute('x', scale.x(chosen[0]));
    brush.setAttribute('width', Math.max(1, scale.x(chosen[1]) - scale.x(chosen[0])));
  }
  const hit = shape('rect', {x: scale.left, y: top, width: room.right - scale.left, height: bottom - top, class: 'hit'});
  const binAt = (event) => {
    const box = svg.getBoundingClientRect();
    const ns = scale.ns((event.clientX - box.left) / box.width * room.width);
    return Math.min(shown[1] - 1, Math.max(shown[0], Math.floor((ns - data.time.coarse_begin_ns) / data.time.coarse_bin_ns)));
  };
  hit.addEventListener('pointerdown', (event) => {
    const first = binAt(event);
    hit.setPointerCapture(event.pointerId);
    const range = (to) => [Math.min(first, binAt(to)), Math.max(first, binAt(to)) + 1];
    hit.onpointermove = (to) => {
      const [from, end] = range(to).map((bin) => scale.x(binTime(bin)));
      brush.setAttribute('x', from);
      brush.setAttribute('width', Math.max(1, end - from));
    };
    hit.onpointerup = (to) => {
      hit.onpointermove = hit.onpointerup = null;
      const [from, end] = range(to);
      if (end - from <= 1 && Math.abs(to.clientX - event.clientX) < 3) change('timeline', {from: '', to: ''});
      else choose(from, end);
    };
  });
  svg.append(brush, hit);
  svg.addEventListener('keydown', brushKeys);
};

const timelineBar = (host) => {
  const bar = make('div', {class: 'bar'});
  // Of what was counted, no more is known over time.
  const choices = [['count', 'operations a second'], ['bytes', 'bytes a second'], ['errors', 'errors a second'], ['time_ns', 'operations in flight']];
  if (data.operations.length) bar.append(select('Show', state.timeline, choices, (value) => change('timeline', {timeline: value})));
  bar.append(select('scale', state.scale, [['auto', 'linear, spikes cut'], ['linear', 'linear'], ['log', 'logarithmic']], (value) => change('timeline', {scale: value})));
  const chosen = chosenBins(), zoomed = zoomedBins();
  if (chosen && (!zoomed || chosen[0] !== zoomed[0] || chosen[1] !== zoomed[1])) {
    bar.append(make('button', {class: 'do', id: 'zoom-in', onclick: () => zoomTo(chosen)}, 'Zoom to it (z)'));
  }
  if (zoomed) bar.append(make('button', {class: 'do', id: 'zoom-out', onclick: () => zoomTo(null)}, 'Back to all (Z)'));
  if (chosen) bar.append(make('button', {class: 'do', onclick: () => change('timeline', {from: '', to: ''})}, 'Choose no time (Esc)'));
  host.append(bar);
};

// The chosen time with more detail than bins have: the program makes another page of it.
const tellCommand = (host) => {
  const time = chosenTime();
  if (!time) return;
  const at = (ns) => `@${BigInt(data.time.origin_ns) + BigInt(Math.round(ns))}`;
  host.append(make('p', {class: 'small'}, 'More of this time: ',
    make('code', {}, `tracefs-report TRACE --from ${at(time[0])} --to ${at(time[1])} -o part.html`)));
};

const drawTimeline = (host) => {
  timelineBar(host);
  const {form, per, layers, note} = timelineLayers();
  const {bins} = data.time;
  const zoomed = zoomedBins();
  const span = zoomed ? zoomed.map(binTime) : [0, Math.max(1, data.time.length_ns)];
  const shown = zoomed ? fineBins(span) : [0, bins];
  const sums = new Array(bins).fill(0);
  for (const [, numbers] of layers) numbers.forEach((n, i) => { sums[i] += n; });
  const seen = sums.slice(shown[0], shown[1]);
  const svg = picture(room.width, 10, `${state.timeline} over time, at most ${form(Math.max(...seen, 0) * per)}; arrow keys choose a time`);
  svg.setAttribute('tabindex', '0');
  svg.setAttribute('role', 'application');
  const top = drawLegend(svg, kTimelineLeft + 8, layers.map(([name], at) => [name, at < 7 ? `c${at}` : 'cx'])) + 16;
  const bottom = top + kTimelineHeight;
  svg.setAttribute('viewBox', `0 0 ${room.width} ${bottom + 22}`);
  const scale = timelineScale(seen, bottom);
  const time = timeScale(kTimelineLeft, span);
  timelineTicks(svg, scale, per, form, bottom);
  timelineBars(svg, layers, sums, shown, scale, time.x, bottom);
  const cut = timelineCuts(svg, sums, shown, scale, per, form, time.x, top);
  for (const [ns, count, reason] of data.losses.seen) {
    if (ns < span[0] && zoomed || ns > span[1]) continue;
    svg.append(titled(shape('rect', {x: Math.max(kTimelineLeft, time.x(ns) - 1.5), y: top, width: 3, height: bottom - top, class: 'loss'}),
      `${reason}: ${format.count(count)} operations missing`));
  }
  timelineBrush(svg, time, top, bottom);
  timeAxis(svg, time, bottom);
  if (!sums.some((n) => n > 0)) host.append(make('p', {}, 'Nothing of that in this trace.'));
  host.append(make('div', {class: 'figure'}, svg));
  const notes = [];
  if (cut) notes.push(`${format.count(cut)} of ${format.count(seen.length)} bins go beyond the picture, marked with a triangle.`);
  if (scale.log) notes.push('The height of a bar is logarithmic; its colours have their shares of it.');
  if (data.timeline.counted.length) notes.push(countedNote);
  if (note) notes.push(note);
  if (notes.length) says(host, notes.join(' '));
  tellCommand(host);
};
