// What the reader looks at; the fragment of the address has all of it, so that
// a link leads to the same view: #PANEL?key=value&...

const data = JSON.parse(document.getElementById('data').textContent);

const defaults = {
  q: '', from: '', to: '', zoom: '', scale: 'auto', timeline: 'count', op: '', places: 'directories', heat: 'count',
  tree: 'time_ns', root: '0', flame: 'time_ns', top: '0', table: 'files', file: '', process: '', idle: '',
  sort: 'time_ns', up: '',
};
const state = {panel: '', ...defaults};

const readFragment = () => {
  const [panel, query] = location.hash.slice(1).split('?');
  const given = new URLSearchParams(query || '');
  state.panel = panel;
  for (const key of Object.keys(defaults)) {
    if (query !== undefined) state[key] = given.get(key) ?? defaults[key];
  }
};

const fragment = (panel) => {
  const given = new URLSearchParams();
  for (const key of Object.keys(defaults)) {
    if (state[key] !== defaults[key]) given.set(key, state[key]);
  }
  const query = given.toString();
  return `#${panel}${query === '' ? '' : `?${query}`}`;
};

// Changes what is looked at, and shows it.
const change = (panel, changes) => {
  Object.assign(state, changes);
  history.replaceState(null, '', fragment(panel));
  render();
};

// The chosen time as coarse bins [first, end), or null: all of it.
const chosenBins = () => {
  if (state.from === '' || state.to === '') return null;
  const {coarse_bins: bins} = data.time;
  const first = Math.min(Math.max(Math.floor(Number(state.from)) || 0, 0), bins - 1);
  const end = Math.min(Math.max(Math.floor(Number(state.to)) || 0, first + 1), bins);
  return [first, end];
};
// What the timeline shows, as coarse bins: all, or what it was zoomed to.
const zoomedBins = () => {
  const {coarse_bins: bins} = data.time;
  const [from, to] = state.zoom.split('-').map((word) => Math.floor(Number(word)));
  return state.zoom !== '' && from >= 0 && to > from && to <= bins ? [from, to] : null;
};
const binTime = (bin) => data.time.coarse_begin_ns + bin * data.time.coarse_bin_ns;
// The same as times since the first operation.
const chosenTime = () => {
  const bins = chosenBins();
  return bins && [binTime(bins[0]), binTime(bins[1])];
};
// Fine bins of a time that begins and ends with coarse ones, and of the chosen one.
const fineBins = (time) => {
  const at = (ns) => Math.round((ns - data.time.begin_ns) / data.time.bin_ns);
  return [Math.max(0, at(time[0])), Math.min(data.time.bins, at(time[1]))];
};
const chosenFine = () => {
  const time = chosenTime();
  return time ? fineBins(time) : [0, data.time.bins];
};
const matches = (text) => state.q === '' || text.toLowerCase().includes(state.q.toLowerCase());
