// Where in their files reads and writes go, and how large they are.

// Of one way, in the chosen time: {classes: [[name, ops, bytes]], sizes: [[from, ops]], unaligned}.
const accessOfTime = (way) => {
  const access = data.access[way];
  const bins = chosenBins();
  if (!bins) return access;
  const classes = access.classes.map(([name]) => [name, 0, 0]);
  eachInBins(access.bins.classes, 4, bins, (at, ops, bytes) => { classes[at][1] += ops; classes[at][2] += bytes; });
  const sizes = access.sizes.map(([from]) => [from, 0]);
  eachInBins(access.bins.sizes, 3, bins, (at, ops) => { sizes[at][1] += ops; });
  let unaligned = 0;
  eachInBins(access.bins.unaligned, 2, bins, (ops) => { unaligned += ops; });
  return {classes, sizes: sizes.filter(([, ops]) => ops > 0), unaligned, common: null};
};

const accessPicture = (ways) => {
  const left = 66, line = 26;
  const svg = picture(room.width, 10, 'Where reads and writes go in their files, by operations');
  const top = drawLegend(svg, left, data.access.read.classes.map(([name], i) => [name, `c${i}`]));
  ways.forEach(([way, {classes}], at) => {
    const y = top + line * at, all = classes.reduce((sum, [, ops]) => sum + ops, 0);
    svg.append(shape('text', {x: left - 8, y: y + 14, 'text-anchor': 'end'}, way));
    let x = left;
    classes.forEach(([name, ops, bytes], i) => {
      if (!ops) return;
      const width = ops / all * (room.right - left);
      const text = `${format.count(ops)} (${format.share(ops, all)})`;
      svg.append(titled(shape('rect', {x, y, width, height: line - 6, class: `box c${i}`}), `${name}: ${format.count(ops)} ${way}s, ${format.bytes(bytes)}`));
      if (textWidth(text) < width - 6) svg.append(shape('text', {x: x + 4, y: y + 14, class: 'on', 'pointer-events': 'none'}, text));
      x += width;
    });
  });
  svg.setAttribute('viewBox', `0 0 ${room.width} ${top + line * ways.length}`);
  return svg;
};

const drawAccess = (host) => {
  const ways = ['read', 'write'].map((way) => [way, accessOfTime(way)]).filter(([, {classes}]) => classes.some(([, ops]) => ops > 0));
  if (state.q !== '') says(host, 'Search does not narrow this: names are not kept with it. tracefs-report access has it file by file.');
  if (!ways.length) { host.append(make('p', {}, `No read or write whose place is known${chosenBins() ? ' in that time' : ''}.`)); return; }
  host.append(make('div', {class: 'figure'}, accessPicture(ways)));
  for (const [way, access] of ways) {
    const total = access.sizes.reduce((sum, [, n]) => sum + n, 0);
    host.append(make('h3', {}, `Sizes of ${way}s`), make('p', {class: 'small'},
      (access.common ? `Most common: ${access.common.map(([size, n]) => `${format.size(size)} (${format.count(n)})`).join(', ')}. ` : 'Exact sizes are kept for the whole time alone. ') +
      `${format.count(access.unaligned)} of ${format.count(total)} not aligned to 4096 bytes.`));
    drawTable(host, [{key: 'size', name: 'from', form: format.size}, {key: 'below', name: 'to below', form: format.size},
      {key: 'count', name: 'ops', form: format.count}, {key: 'share', name: 'share', form: (v) => format.share(v, 1)}],
    access.sizes.map(([size, n]) => [size, size === 0 ? 1 : 2 * size, n, n / total]), {name: `sizes-${way}`, panel: 'access', narrow: true, always: true});
  }
};
