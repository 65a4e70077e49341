// All processes on as few lines as they need: below who began them, and beside each other where one ends before the
// next begins.

const kLane = 17;
const kMostLanes = 400;

// {node, lane}; the lane of a child is below that of its parent.
const ganttLanes = (view) => {
  const {begin_ns: begins, end_ns: ends, parent, count} = data.processes;
  const [from, to] = chosenTime() || [-Infinity, Infinity];
  const nodes = [...view.shown].filter((i) => begins[i] !== null && begins[i] < to && ends[i] >= from && (count[i] > 0 || ends[i] > begins[i]));
  nodes.sort((a, b) => begins[a] - begins[b] || a - b);
  const ended = [], lane = new Map(), bars = [];
  let left = 0;
  for (const node of nodes) {
    let at = lane.has(parent[node]) ? lane.get(parent[node]) + 1 : 0;
    while (ended[at] !== undefined && ended[at] > begins[node]) ++at;
    if (at >= kMostLanes) { ++left; continue; }
    ended[at] = ends[node];
    lane.set(node, at);
    bars.push({node, lane: at});
  }
  return {bars, lanes: ended.length, left};
};

const drawGantt = (host, view) => {
  const {bars, lanes, left} = ganttLanes(view);
  if (bars.length < 2) return;
  const {begin_ns: begins, end_ns: ends, name, exit, count} = data.processes;
  // A colour for each of the programs that are there most often, whatever is chosen.
  const often = new Map();
  name.forEach((it, i) => { if (it !== '' && begins[i] !== null) often.set(it, (often.get(it) || 0) + 1); });
  const names = [...often].sort((a, b) => b[1] - a[1]).slice(0, 7).map(([it]) => it);
  const style = (node) => (exit[node] !== '' && exit[node] !== '0' ? 'bad' : names.includes(name[node]) ? `c${names.indexOf(name[node])}` : 'cx');
  const items = names.map((it, i) => [it, `c${i}`]);
  if (bars.some(({node}) => style(node) === 'cx')) items.push(['others', 'cx']);
  if (bars.some(({node}) => style(node) === 'bad')) items.push(['ended with an error', 'bad']);
  const scale = timeScale(10);
  const svg = picture(room.width, 10, `${format.count(bars.length)} processes over time, at most ${format.count(lanes)} beside each other`);
  const top = drawLegend(svg, 4, items);
  svg.setAttribute('viewBox', `0 0 ${room.width} ${top + kLane * lanes + 24}`);
  timeAxis(svg, scale, top + kLane * lanes);
  for (const {node, lane} of bars) {
    const x = scale.x(begins[node]), width = Math.max(1, scale.x(ends[node]) - x), y = top + kLane * lane;
    const rect = titled(shape('rect', {x, y, width, height: kLane - 1, class: `box ${style(node)}`}),
      `${processName(node)}: ${format.count(count[node])} operations${exit[node] ? `, exit ${exit[node]}` : ''}`);
    rect.addEventListener('click', () => {
      change('processes', {process: String(node)});
      document.querySelector('#processes tr.picked')?.scrollIntoView({block: 'nearest'});
    });
    svg.append(rect);
    if (width >= 34) svg.append(shape('text', {x: x + 3, y: y + 12, class: 'on', 'pointer-events': 'none'}, shorten(shortName(node), width - 6)));
  }
  host.append(make('div', {class: 'figure tall gantt'}, svg));
  if (left) says(host, `${format.count(left)} more lived at the same time and are not drawn: choose a shorter time.`);
};
