// The tiles on top: what there was of the chosen time, or of all.

const tile = (id, value, more, alarm) => {
  const it = document.getElementById(`tile-${id}`);
  if (!it) return;
  it.querySelector('b').textContent = value;
  it.querySelector('.more').textContent = more;
  it.classList.toggle('alarm', Boolean(alarm));
};

const tilesAsMade = new Map();  // by id: [value, more, alarm] of the whole time

const drawTiles = () => {
  for (const it of document.querySelectorAll('.tile')) {
    const id = it.id.replace('tile-', '');
    if (!tilesAsMade.has(id)) tilesAsMade.set(id, [it.querySelector('b').textContent, it.querySelector('.more').textContent, it.classList.contains('alarm')]);
  }
  const bins = chosenBins();
  if (!bins) {
    for (const [id, made] of tilesAsMade) tile(id, ...made);
    return;
  }
  const [begin, end] = chosenTime();
  const totals = totalsOfTime(bins);
  const seconds = (end - begin) / 1e9;
  tile('elapsed', format.time(end - begin), `from ${format.since(Math.max(0, begin))} to ${format.since(end)}`);
  tile('time', format.took(totals.time_ns), 'of operations that began then');
  tile('operations', format.count(totals.count), `${roundNumber(totals.count / seconds)} a second`);
  tile('bytes', format.bytes(totals.bytes), `${format.bytes(totals.read)} read, ${format.bytes(totals.written)} written`);
  tile('errors', format.count(totals.errors), totals.count ? `${format.share(totals.errors, totals.count)} of operations` : '');
  const lost = data.losses.seen.filter(([ns]) => ns >= begin && ns < end).reduce((sum, [, count]) => sum + count, 0);
  tile('losses', lost ? format.count(lost) : 'none', lost ? 'told about then' : 'told then', lost > 0);
};
