// Operations over time, and the choice of a time.

const kTimelineLeft = 70;
const countedNote = 'What was counted is known by its periods alone: over each of them it is drawn with one rate. What several traces have counted is in it several times.';

const timelineLayers = () => {
  const perSecond = 1e9 / data.time.bin_ns;
  const {timeline} = data;
  const rate = (v) => `${roundNumber(v)}/s`;
  switch (state.timeline) {
    case 'bytes': return {form: (v) => `${format.bytes(v)}/s`, per: perSecond, layers: [['read', timeline.read], ['written', timeline.written]]};
    case 'errors': return {form: rate, per: perSecond, layers: [['errors', timeline.errors]]};
    case 'time_ns': return {form: roundNumber, per: 1 / data.time.bin_ns, layers: [['in flight', timeline.time_ns]]};
  }
  const ops = [...data.operations.map(({op, ...more}) => ({name: op, ...more})), ...timeline.counted].sort((a, b) => b.count - a.count);
  const layers = ops.slice(0, 7).map(({name, bins}) => [name, bins]);
  const others = ops.slice(7).map(({bins}) => bins);
  if (others.length) layers.push(['others', others.reduce((a, b) => a.map((n, i) => n + b[i]))]);
  return {form: rate, per: perSecond, layers};
};

// Arrow keys move the chosen time, with Shift they change its length.
const brushKeys = (event) => {
  const step = Math.max(1, Math.round(data.time.coarse_bins / 32));
  const [first, end] = chosenBins() || [0, data.time.coarse_bins];
  const bins = data.time.coarse_bins;
  const way = {ArrowLeft: -step, ArrowRight: step}[event.key];
  if (event.key === 'Escape') change('timeline', {from: '', to: ''});
  else if (!way) return;
  else if (event.shiftKey) choose(first, Math.min(bins, Math.max(first + 1, end + way)));
  else if (!chosenBins()) choose(0, Math.max(1, Math.round(bins / 4)));
  else {
    const move = Math.min(Math.max(way, -first), bins - end);
    choose(first + move, end + move);
  }
  event.preventDefault();
  document.querySelector('#timeline svg')?.focus();
};
const choose = (first, end) => change('timeline', {from: String(first), to: String(end)});

const drawTimeline = (host) => {
  const {form, per, layers} = timelineLayers();
  const {bins, bin_ns: width, begin_ns: begin, length_ns: length, coarse_bins: coarse} = data.time;
  const top = 24, bottom = 220;
  const x = (ns) => kTimelineLeft + Math.min(1, Math.max(0, ns / Math.max(1, length))) * (kRight - kTimelineLeft);
  const sums = new Array(bins).fill(0);
  for (const [, numbers] of layers) numbers.forEach((n, i) => { sums[i] += n; });
  const most = Math.max(...sums, Number.MIN_VALUE);
  const y = (v) => bottom - v / most * (bottom - top);
  const svg = picture(kWidth, bottom + 24, `${state.timeline} over time, at most ${form(most * per)}; arrow keys choose a time`);
  svg.setAttribute('tabindex', '0');
  svg.setAttribute('role', 'application');
  const step = roundStep(most * per, 5);
  for (const value of multiples(step, most * per, step)) {
    const at = y(value / per);
    svg.append(shape('path', {d: `M${kTimelineLeft} ${at}H${kRight}`, class: 'grid'}),
      shape('text', {x: kTimelineLeft - 6, y: at + 4, 'text-anchor': 'end'}, form(value)));
  }
  const below = new Array(bins).fill(0);
  let legend = kTimelineLeft + 8;
  layers.forEach(([name, numbers], at) => {
    let d = '';
    numbers.forEach((n, i) => {
      if (n === 0) return;
      const left = x(begin + i * width);
      d += `M${left.toFixed(1)} ${y(below[i]).toFixed(1)}V${y(below[i] + n).toFixed(1)}H${Math.max(x(begin + (i + 1) * width), left + 0.6).toFixed(1)}V${y(below[i]).toFixed(1)}z`;
      below[i] += n;
    });
    const style = at < 7 ? `c${at}` : 'cx';
    svg.append(shape('path', {d, class: style}),
      shape('rect', {x: legend, y: 2, width: 10, height: 10, class: style}),
      shape('text', {x: legend + 14, y: 11}, name));
    legend += 30 + textWidth(name);
  });
  for (const [ns, count, reason] of data.losses.seen) {
    svg.append(titled(shape('rect', {x: Math.max(kTimelineLeft, x(ns) - 1.5), y: top, width: 3, height: bottom - top, class: 'loss'}),
      `${reason}: ${format.count(count)} operations missing`));
  }
  const chosen = chosenTime();
  const brush = shape('rect', {y: top, height: bottom - top, class: 'brush', width: 0, x: 0});
  if (chosen) {
    brush.setAttribute('x', x(chosen[0]));
    brush.setAttribute('width', Math.max(1, x(chosen[1]) - x(chosen[0])));
  }
  const hit = shape('rect', {x: kTimelineLeft, y: top, width: kRight - kTimelineLeft, height: bottom - top, class: 'hit'});
  const binAt = (event) => {
    const box = svg.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * kWidth;
    const ns = (at - kTimelineLeft) / (kRight - kTimelineLeft) * length;
    return Math.min(coarse - 1, Math.max(0, Math.floor((ns - data.time.coarse_begin_ns) / data.time.coarse_bin_ns)));
  };
  hit.addEventListener('pointerdown', (event) => {
    const first = binAt(event);
    hit.setPointerCapture(event.pointerId);
    const range = (to) => [Math.min(first, binAt(to)), Math.max(first, binAt(to)) + 1];
    hit.onpointermove = (to) => {
      const [from, end] = range(to).map((bin) => x(binTime(bin)));
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
  const scale = {left: kTimelineLeft, begin: 0, end: Math.max(1, length), x};
  timeAxis(svg, scale, bottom);
  // Of what was counted, no more is known over time.
  const choices = [['count', 'operations a second'], ['bytes', 'bytes a second'], ['errors', 'errors a second'], ['time_ns', 'operations in flight']];
  if (data.operations.length) {
    host.append(make('div', {class: 'bar'}, select('Show', state.timeline, choices, (value) => change('timeline', {timeline: value}))));
  }
  if (!sums.some((n) => n > 0)) host.append(make('p', {}, 'Nothing of that in this trace.'));
  host.append(make('div', {class: 'figure'}, svg));
  if (data.timeline.counted.length) host.append(make('p', {class: 'small'}, countedNote));
};
