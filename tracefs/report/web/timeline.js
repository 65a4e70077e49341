// Operations over time, and the choice of a time.

const kTimelineLeft = 70;

const timelineLayers = () => {
  const perSecond = 1e9 / data.time.bin_ns;
  const {timeline} = data;
  switch (state.timeline) {
    case 'bytes': return {form: (v) => `${format.bytes(v * perSecond)}/s`, layers: [['read', timeline.read], ['written', timeline.written]]};
    case 'errors': return {form: (v) => `${format.count(v * perSecond)}/s`, layers: [['errors', timeline.errors]]};
    case 'time_ns': return {form: (v) => format.digits(v / data.time.bin_ns), layers: [['in flight', timeline.time_ns]]};
  }
  const ops = [...data.operations].sort((a, b) => b.count - a.count);
  const layers = ops.slice(0, 7).map(({op, bins}) => [op, bins]);
  const others = ops.slice(7).map(({bins}) => bins);
  if (timeline.counted.some((n) => n > 0)) others.push(timeline.counted);
  if (others.length) layers.push(['others', others.reduce((a, b) => a.map((n, i) => n + b[i]))]);
  return {form: (v) => `${format.count(v * perSecond)}/s`, layers};
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
  const {form, layers} = timelineLayers();
  const {bins, bin_ns: width, begin_ns: begin, length_ns: length, coarse_bins: coarse} = data.time;
  const top = 24, bottom = 220;
  const x = (ns) => kTimelineLeft + Math.min(1, Math.max(0, ns / Math.max(1, length))) * (kRight - kTimelineLeft);
  const sums = new Array(bins).fill(0);
  for (const [, numbers] of layers) numbers.forEach((n, i) => { sums[i] += n; });
  const most = Math.max(...sums, Number.MIN_VALUE);
  const y = (v) => bottom - v / most * (bottom - top);
  const svg = picture(kWidth, bottom + 24, `${state.timeline} over time, at most ${form(most)}; arrow keys choose a time`);
  svg.setAttribute('tabindex', '0');
  svg.setAttribute('role', 'application');
  for (let i = 1; i <= 4; ++i) {
    svg.append(shape('path', {d: `M${kTimelineLeft} ${y(most * i / 4)}H${kRight}`, class: 'grid'}),
      shape('text', {x: kTimelineLeft - 6, y: y(most * i / 4) + 4, 'text-anchor': 'end'}, form(most * i / 4)));
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
    legend += 30 + 6.5 * name.length;
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
  host.append(make('div', {class: 'bar'}, select('Show', state.timeline,
    [['count', 'operations a second'], ['bytes', 'bytes a second'], ['errors', 'errors a second'], ['time_ns', 'operations in flight']],
    (value) => change('timeline', {timeline: value}))), make('div', {class: 'figure'}, svg));
};
