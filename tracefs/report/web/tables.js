// Tables that sort and search, and what is downloaded of them.

const shownRows = new Map();  // by table: how many rows, if more were asked for

// A cell for a spreadsheet, which may take =, +, - and @ for a formula: as
// tracefs/text/csv_text.h has it.
const csvEscape = (text) => [...new TextEncoder().encode(text)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
const csvCell = (value) => {
  let text = value === null || value === undefined ? '' : String(value);
  if (typeof value === 'string') {
    text = text.replace(/(^|;)(\s*)([=+\-@\uff1d\uff0b\uff0d\uff20])/g, (_, start, blanks, sign) => start + blanks + csvEscape(sign))
      .replace(/[\t\r\n]/g, csvEscape);
  }
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const csvText = (columns, rows) =>
  [columns.map(({key}) => key), ...rows].map((row) => row.map(csvCell).join(',')).join('\r\n') + '\r\n';

// columns: {key, name, form}; those without a form are texts. options: `name`,
// `panel`, `label` (how it is called), `other` (the last line: sums of what is
// not in rows), `note`, `narrow` (no wider than what is in it), `always` (rows
// without names, which no search finds), `open` (the key
// of the state that has the name of the row that is open) and `inside` (makes
// what is shown below that one).
const drawTable = (host, columns, rows, options) => {
  const place = Math.max(0, columns.findIndex(({key}) => key === state.sort));
  const column = columns[place];
  const chosen = rows.filter((row) => options.always || state.q === '' || row.some((cell) => typeof cell === 'string' && matches(cell)));
  const sign = (state.up === '1' ? 1 : -1) * (column.form ? 1 : -1);
  const sorted = columns.some(({key}) => key === state.sort)
    ? [...chosen].sort((a, b) => (a[place] < b[place] ? -sign : a[place] > b[place] ? sign : 0)) : chosen;
  const head = make('tr');
  for (const {key, name, form} of columns) {
    const is = key === state.sort;
    head.append(make('th', {scope: 'col', class: form ? false : 'text', 'aria-sort': is && (state.up === '1' ? 'ascending' : 'descending')},
      make('button', {
        onclick: () => {
          change(options.panel, {sort: key, up: is && state.up === '' ? '1' : ''});
          document.querySelector(`#${options.panel} th[aria-sort] button`)?.focus();
        },
      }, name)));
  }
  const cells = (row, style) => {
    const line = make('tr', {class: style || false});
    row.forEach((cell, i) => {
      const form = columns[i].form;
      const text = cell === null || cell === undefined ? '-' : form ? form(cell) : String(cell);
      const opens = i === 0 && options.open && !style;
      line.append(i === 0 ? make('th', {scope: 'row', class: form ? 'number' : false}, opens ? rowButton(options, text) : text) :
        make('td', {class: form ? false : 'text'}, text));
    });
    return line;
  };
  const most = shownRows.get(options.name) || 50;
  const body = make('tbody');
  for (const row of sorted.slice(0, most)) {
    body.append(cells(row));
    if (options.open && state[options.open] === row[0]) {
      body.append(make('tr', {class: 'inside'}, make('td', {colspan: columns.length}, options.inside(row[0]))));
    }
  }
  if (options.other && state.q === '') body.append(cells(options.other, 'others'));
  if (!body.childNodes.length) body.append(make('tr', {class: 'nothing'}, make('td', {colspan: columns.length}, state.q === '' ? 'Nothing then.' : 'Nothing has that in its name.')));
  const bar = make('div', {class: 'bar'},
    make('span', {role: 'status'}, `${format.count(sorted.length)} of ${format.count(rows.length)} rows`),
    make('button', {class: 'do', onclick: () => download(`${options.name}.csv`, 'text/csv', csvText(columns, sorted))}, 'CSV'));
  if (sorted.length > most) {
    bar.append(make('button', {
      class: 'do', onclick: () => { shownRows.set(options.name, most * 4); render(); },
    }, `Show more (${format.count(sorted.length - most)} left)`));
  }
  if (options.note) bar.append(make('span', {class: 'small'}, options.note));
  host.append(bar, make('div', {class: 'scroll'},
    make('table', {'data-table': options.name, 'aria-label': options.label || options.name, class: options.narrow ? 'narrow' : false}, make('thead', {}, head), body)));
};

// Opens its row, and closes it.
const rowButton = (options, name) => {
  const isOpen = state[options.open] === name;
  return make('button', {class: 'row', 'aria-expanded': isOpen ? 'true' : 'false',
    onclick: () => change(options.panel, {[options.open]: isOpen ? '' : name})}, name);
};

const metricColumns = (name) => [
  {key: 'name', name},
  {key: 'count', name: 'ops', form: format.count},
  {key: 'errors', name: 'errors', form: format.count},
  {key: 'bytes', name: 'bytes', form: format.bytes},
  {key: 'read', name: 'read', form: format.bytes},
  {key: 'written', name: 'written', form: format.bytes},
  {key: 'time_ns', name: 'time', form: format.took},
  {key: 'longest_ns', name: 'longest', form: format.took},
];
// A row of the data, [name, count, errors, read, written, time, longest, bytes].
const metricRow = ([name, count, errors, read, written, time, longest, bytes]) =>
  [name, count, errors, bytes, read, written, time, longest];

// Of a time no more is known than this.
const timeColumns = (name) => metricColumns(name).filter(({key}) => !['read', 'written', 'longest_ns'].includes(key));

// Rows of a table of the data for the chosen time, and the last line.
const rowsOfTime = (table, bins) => {
  const rows = [], sums = [];
  let without = 0;
  table.series.forEach((series, i) => {
    const sum = sumOfSeries(series, bins);
    if (sum === null) { ++without; return; }
    if (sum.count === 0 && sum.bytes === 0) return;
    sums.push(sum);
    rows.push([table.rows[i][0], sum.count, sum.errors, sum.bytes, sum.time_ns]);
  });
  without += table.rows.length - table.series.length + table.left_out;
  const rest = restOf(totalsOfTime(bins), sums);
  return {rows, other: without ? ['others', rest.count, rest.errors, rest.bytes, rest.time_ns] : null, without};
};
const withoutBins = (without) => (without ? `of the chosen time; others: ${format.count(without)} whose times are not kept apart` : 'of the chosen time');

const singular = {files: 'file', directories: 'directory', extensions: 'extension', commands: 'command', users: 'user'};

const drawNames = (host) => {
  const kind = data.tables[state.table] ? state.table : 'files';
  const table = data.tables[kind];
  const bins = chosenBins();
  host.append(make('div', {class: 'bar'}, select('Show', kind,
    Object.keys(data.tables).map((name) => [name, name]), (name) => change('files', {table: name, file: ''}))));
  const links = kind === 'files' ? {open: 'file', inside: usersOfFile} : kind === 'commands' ? {open: 'file', inside: filesOfCommand} : {};
  if (bins) {
    const {rows, other, without} = rowsOfTime(table, bins);
    drawTable(host, timeColumns(singular[kind]), rows, {name: kind, panel: 'files', other, note: withoutBins(without), ...links});
    return;
  }
  const other = ['others', ...metricRow([0, ...table.other]).slice(1)];
  drawTable(host, metricColumns(singular[kind]), table.rows.map(metricRow), {
    name: kind, panel: 'files', other: table.left_out ? other : null, note: links.open ? 'a name opens who used it' : '', ...links,
  });
};
