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
// not in rows), `note`, `narrow` (no wider than what is in it).
const drawTable = (host, columns, rows, options) => {
  const place = Math.max(0, columns.findIndex(({key}) => key === state.sort));
  const column = columns[place];
  const chosen = rows.filter((row) => row.some((cell) => typeof cell === 'string' && matches(cell)) || state.q === '');
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
      line.append(i === 0 ? make('th', {scope: 'row', class: form ? 'number' : false}, text) : make('td', {class: form ? false : 'text'}, text));
    });
    return line;
  };
  const most = shownRows.get(options.name) || 50;
  const body = make('tbody', {}, ...sorted.slice(0, most).map((row) => cells(row)));
  if (options.other && state.q === '') body.append(cells(options.other, 'others'));
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

const metricColumns = (name) => [
  {key: 'name', name},
  {key: 'count', name: 'ops', form: format.count},
  {key: 'errors', name: 'errors', form: format.count},
  {key: 'bytes', name: 'bytes', form: format.bytes},
  {key: 'read', name: 'read', form: format.bytes},
  {key: 'written', name: 'written', form: format.bytes},
  {key: 'time_ns', name: 'time', form: format.time},
  {key: 'longest_ns', name: 'longest', form: format.time},
];
// A row of the data, [name, count, errors, read, written, time, longest, bytes].
const metricRow = ([name, count, errors, read, written, time, longest, bytes]) =>
  [name, count, errors, bytes, read, written, time, longest];

// Rows of a table of the data for the chosen time. Exact: times are chosen by
// the bins that rows have.
const rowsOfTime = (table, [first, end]) => {
  const rows = [];
  table.series.forEach((series, i) => {
    if (series === null) return;
    const sum = [0, 0, 0, 0];
    for (let p = 0; p < series.length; p += 5) {
      if (series[p] < first || series[p] >= end) continue;
      for (let m = 0; m < 4; ++m) sum[m] += series[p + 1 + m];
    }
    if (sum[0] !== 0) rows.push([table.rows[i][0], sum[0], sum[1], sum[2], null, null, sum[3], null]);
  });
  return rows;
};

const singular = {files: 'file', directories: 'directory', extensions: 'extension', commands: 'command', users: 'user'};

const drawNames = (host) => {
  const table = data.tables[state.table] || data.tables.files;
  const bins = chosenBins();
  host.append(make('div', {class: 'bar'}, select('Show', state.table,
    Object.keys(data.tables).map((name) => [name, name]), (name) => change('files', {table: name}))));
  const other = ['others', ...metricRow([0, ...table.other]).slice(1)];
  drawTable(host, metricColumns(singular[state.table] || state.table), bins ? rowsOfTime(table, bins) : table.rows.map(metricRow), {
    name: state.table, panel: 'files', other: !bins && table.left_out ? other : null,
    note: bins ? 'of the chosen time; only rows whose times are kept' : '',
  });
};
