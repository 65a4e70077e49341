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

const picture = (width, height, label) =>
  shape('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label});

const kWidth = 960;
const kRight = 950;

// From the chosen time to places from left to right.
const timeScale = (left) => {
  const [begin, end] = chosenTime() || [0, Math.max(1, data.time.length_ns)];
  const x = (ns) => left + Math.min(1, Math.max(0, (ns - begin) / (end - begin))) * (kRight - left);
  return {left, begin, end, x, ns: (at) => begin + (at - left) / (kRight - left) * (end - begin)};
};

const timeAxis = (svg, scale, y) => {
  svg.append(shape('path', {d: `M${scale.left} ${y}H${kRight}`, class: 'axis'}));
  const step = roundTimeStep(scale.end - scale.begin, 10);
  for (const ns of multiples(scale.begin, scale.end, step)) {
    const x = scale.x(ns), text = `${ns > 0 ? '+' : ''}${tickTime(ns, step)}`;
    svg.append(shape('path', {d: `M${x} ${y}v4`, class: 'axis'}),
      shape('text', {x, y: y + 16, 'text-anchor': x + textWidth(text) / 2 > kWidth ? 'end' : 'middle'}, text));
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
