// Elements. Texts of a trace are set as text and as nothing else.

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children);
  return element;
};

const shape = (tag, attributes = {}, text) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
};
const titled = (element, text) => {
  element.append(shape('title', {}, text));
  return element;
};

// Pictures are as wide as the page, so that their letters have one size.
const kPrintWidth = 720;
const room = {width: 960, right: 950};
const measureRoom = (print) => {
  const main = document.querySelector('main');
  const style = getComputedStyle(main);
  const inner = main.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  room.width = print ? kPrintWidth : Math.round(Math.min(1600, Math.max(320, inner)));
  room.right = room.width - 10;
};
// Where the names beside a picture end, and it begins.
const namesWidth = () => Math.round(Math.min(270, room.width * 0.34));

const picture = (width, height, label) =>
  shape('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label});

// A legend from `left` on, in as many lines as it needs; returns how high it is.
const drawLegend = (svg, left, items) => {
  let x = left, y = 2;
  for (const [name, style] of items) {
    const width = 30 + textWidth(name);
    if (x + width > room.width && x > left) { x = left; y += 16; }
    svg.append(shape('rect', {x, y, width: 10, height: 10, class: style}), shape('text', {x: x + 14, y: y + 9}, shorten(name, room.width - x - 20)));
    x += width;
  }
  return y + 20;
};

// From times to places from left to right: those of the chosen time, if not others are given.
const timeScale = (left, span) => {
  const [begin, end] = span || chosenTime() || [0, Math.max(1, data.time.length_ns)];
  const x = (ns) => left + Math.min(1, Math.max(0, (ns - begin) / (end - begin))) * (room.right - left);
  return {left, begin, end, x, ns: (at) => begin + (at - left) / (room.right - left) * (end - begin)};
};

const timeAxis = (svg, scale, y) => {
  svg.append(shape('path', {d: `M${scale.left} ${y}H${room.right}`, class: 'axis'}));
  const most = Math.max(2, Math.min(10, Math.floor((room.right - scale.left) / 85)));
  const step = roundTimeStep(scale.end - scale.begin, most);
  for (const ns of multiples(scale.begin, scale.end, step)) {
    const x = scale.x(ns), text = `${ns > 0 ? '+' : ''}${tickTime(ns, step)}`;
    svg.append(shape('path', {d: `M${x} ${y}v4`, class: 'axis'}),
      shape('text', {x, y: y + 16, 'text-anchor': x + textWidth(text) / 2 > room.width ? 'end' : 'middle'}, text));
  }
};

const select = (label, value, choices, use) => {
  const list = make('select', {onchange: () => use(list.value)});
  for (const [key, name] of choices) list.append(make('option', {value: key, selected: key === value}, name));
  return make('label', {}, `${label} `, list);
};
const measureChoices = Object.entries(measures).map(([key, {name}]) => [key, name]);

const download = (name, type, text) => {
  const link = make('a', {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
