// Puts it all together.

const stills = new Map();  // what panels had without scripts

let printing = false;

const render = () => {
  measureRoom(printing);
  const open = new Set([...document.querySelectorAll('details[open]')].map((it) => it.closest('section').id));
  for (const [id, draw] of Object.entries(panels)) {
    const host = document.querySelector(`#${id} > .body`);
    if (!host) continue;
    if (!stills.has(id)) stills.set(id, [...host.childNodes]);
    host.replaceChildren();
    // A panel that fails takes no other with it, and shows what it had.
    try {
      draw(host, stills.get(id));
    } catch (error) {
      host.replaceChildren(...stills.get(id));
      console.error(id, error);
    }
    const details = host.querySelector('details');
    if (details && open.has(id)) details.open = true;
    const heading = document.querySelector(`#${id} > h2`);
    heading.querySelector('a')?.remove();
    heading.append(make('a', {href: fragment(id), 'aria-label': `link to this view of ${id}`, class: 'small'}, ' #'));
  }
  drawTiles();
  const time = chosenTime();
  const told = document.getElementById('chosen');
  told.textContent = time ? `${format.since(Math.max(0, time[0]))} to ${format.since(time[1])}` : 'the whole time';
  document.getElementById('all-time').hidden = !time;
  document.body.classList.toggle('of-time', Boolean(time));
};

const tools = () => {
  const search = make('input', {type: 'search', id: 'search', placeholder: 'Search ( / )', 'aria-label': 'Search names', value: state.q,
    oninput: () => change(state.panel, {q: search.value})});
  const host = document.getElementById('tools');
  host.append(search, make('span', {id: 'chosen', role: 'status'}),
    make('button', {class: 'do', id: 'all-time', onclick: () => change(state.panel, {from: '', to: ''})}, 'All the time'),
    make('button', {class: 'do', id: 'save-json', onclick: () => download('report.json', 'application/json', document.getElementById('data').textContent)}, 'Data (JSON)'));
  host.hidden = false;
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    search.focus();
  });
};

readFragment();
tools();
render();
addEventListener('hashchange', () => {
  readFragment();
  document.getElementById('search').value = state.q;
  render();
});
if (state.panel) document.getElementById(state.panel)?.scrollIntoView();
// Printed is what the panels have now, with nothing folded, at the width of a sheet.
const print = (now) => {
  printing = now;
  render();
  if (now) document.querySelectorAll('details').forEach((it) => { it.open = true; });
};
addEventListener('beforeprint', () => print(true));
addEventListener('afterprint', () => print(false));
let resized = 0;
addEventListener('resize', () => {
  clearTimeout(resized);
  const before = room.width;
  resized = setTimeout(() => {
    measureRoom(printing);
    if (room.width !== before) render();
  }, 150);
});
document.documentElement.dataset.ready = '1';
