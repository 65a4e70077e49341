// From one thing to what had to do with it: file, process, command, operation.

// uses: place of the file, place of the process, count, errors, bytes, time; and so on.
const eachUse = (use) => {
  const {rows} = data.uses;
  for (let p = 0; p < rows.length; p += 6) use(rows[p], rows[p + 1], rows.slice(p + 2, p + 6));
};

const processName = (i) => {
  const {pid, command, name} = data.processes;
  return oneLine(`${pid[i] || ''} ${command[i] || name[i]}`.trim());
};
// The program, without the folder it lies in, and its arguments.
const shortName = (i) => {
  const {command, name} = data.processes;
  const [program, ...more] = (command[i] || name[i]).split(' ');
  return oneLine([program.replace(/^.*\/(?=.)/, ''), ...more].join(' '));
};

// Nodes of the flame graph by what they are called without their command: files, or "" for the command itself.
let filesOfFlame = null;
const flameFiles = () => {
  if (filesOfFlame) return filesOfFlame;
  const {name, parent} = data.flame;
  const path = [], depth = [0], command = [];
  filesOfFlame = new Map();
  const isParent = new Set(parent);
  for (let i = 1; i < name.length; ++i) {
    depth[i] = depth[parent[i]] + 1;
    command[i] = depth[i] === 1 ? name[i] : command[parent[i]];
    path[i] = depth[i] <= 1 ? '' : `${path[parent[i]] || ''}${name[i]}`;
    if (depth[i] < 3 || isParent.has(i) || !data.operations.some(({op}) => op === name[i])) continue;
    const file = path[parent[i]].replace(/^\/\(/, '(').replace(/(.)\/$/, '$1');
    if (!filesOfFlame.has(file)) filesOfFlame.set(file, []);
    filesOfFlame.get(file).push({command: command[i], op: name[i], at: i});
  }
  return filesOfFlame;
};

const smallTable = (heads, rows, label) => make('table', {'aria-label': label, class: 'narrow small-table'},
  make('thead', {}, make('tr', {}, ...heads.map((head) => make('th', {scope: 'col'}, head)))),
  make('tbody', {}, ...rows.map((cells) => make('tr', {}, ...cells.map((cell) => make('td', {class: typeof cell === 'string' && /^[\d.,]+( |$)/.test(cell) ? false : 'text'}, cell))))));

const toProcess = (i) => make('button', {class: 'row', onclick: () => {
  change('processes', {process: String(i)});
  document.querySelector('#processes tr.picked')?.scrollIntoView({block: 'center'});
}}, shorten(processName(i), 420));
const toFile = (row) => make('button', {class: 'row', onclick: () => {
  change('files', {table: 'files', file: data.tables.files.rows[row][0], q: ''});
  document.getElementById('files').scrollIntoView();
}}, data.tables.files.rows[row][0]);

const numbersOf = ([count, errors, bytes, time]) => [format.count(count), format.count(errors), format.bytes(bytes), format.took(time)];
const kMostLinks = 20;

const allTheTime = 'Of all the time: these are not kept by it.';

// Which processes used a file, and by which operations of which commands.
const usersOfFile = (name) => {
  const at = data.tables.files.rows.findIndex((row) => row[0] === name);
  const box = make('div', {class: 'links'});
  const [, count] = data.tables.files.rows[at] || [];
  const users = [];
  eachUse((row, process, numbers) => { if (row === at) users.push([process, numbers]); });
  const told = users.reduce((sum, [, [n]]) => sum + n, 0);
  const shown = users.slice(0, kMostLinks);
  if (users.length) box.append(smallTable(['process', 'ops', 'errors', 'bytes', 'time'], shown.map(([process, numbers]) => [toProcess(process), ...numbersOf(numbers)]), `processes that used ${name}`));
  const rest = count - shown.reduce((sum, [, [n]]) => sum + n, 0);
  if (rest > 0) {
    says(box, users.length ? `${format.count(rest)} more operations by others${told < count ? '; which is not kept for all of them' : ''}.` :
      'Which processes used it is not kept: only for the files of which most is told.');
  }
  const ops = (flameFiles().get(name) || []).map(({command, op, at: node}) => [command, op, data.flame.count[node], data.flame.errors[node], data.flame.bytes[node], data.flame.time_ns[node]]);
  ops.sort((a, b) => b[2] - a[2]);
  const known = ops.slice(0, kMostLinks).reduce((sum, row) => sum + row[2], 0);
  if (ops.length) box.append(smallTable(['command', 'operation', 'ops', 'errors', 'bytes', 'time'], ops.slice(0, kMostLinks).map(([command, op, ...numbers]) => [command, op, ...numbersOf(numbers)]), `operations on ${name}`));
  if (known < count) says(box, `${format.count(count - known)} ${ops.length ? 'more operations' : 'operations'}: by which command and of which kind is not kept.`);
  if (chosenBins()) says(box, allTheTime);
  return box;
};

// Which files a command used most, and which processes are called so.
const filesOfCommand = (name) => {
  const box = make('div', {class: 'links'});
  const sums = new Map();
  for (const [file, nodes] of flameFiles()) {
    for (const {command, at} of nodes) {
      if (command !== name) continue;
      const sum = sums.get(file) || [0, 0, 0, 0];
      kPoint.forEach((key, i) => { sum[i] += data.flame[key][at]; });
      sums.set(file, sum);
    }
  }
  const rows = [...sums].sort((a, b) => b[1][0] - a[1][0]);
  const place = new Map(data.tables.files.rows.map((row, i) => [row[0], i]));
  if (rows.length) {
    box.append(smallTable(['file', 'ops', 'errors', 'bytes', 'time'], rows.slice(0, kMostLinks).map(([file, numbers]) =>
      [place.has(file) ? toFile(place.get(file)) : file, ...numbersOf(numbers)]), `files that ${name} used`));
  }
  says(box, rows.length > kMostLinks ? `${format.count(rows.length - kMostLinks)} more files.` : rows.length ? 'Files that matter less may be missing.' : 'Which files it used is not kept.');
  const called = data.processes.name.map((it, i) => [it, i]).filter(([it, i]) => it === name && data.processes.count[i] > 0).map(([, i]) => i);
  if (called.length) {
    called.sort((a, b) => data.processes.time_ns[b] - data.processes.time_ns[a]);
    box.append(smallTable(['process', 'ops', 'errors', 'bytes', 'time'], called.slice(0, kMostLinks).map((i) =>
      [toProcess(i), ...numbersOf(kPoint.map((key) => data.processes[key][i]))]), `processes called ${name}`));
    if (called.length > kMostLinks) says(box, `${format.count(called.length - kMostLinks)} more processes of that name.`);
  }
  if (chosenBins()) says(box, allTheTime);
  return box;
};

// What a process was begun with, and which files it used.
const filesOfProcess = (at) => {
  const box = make('div', {class: 'links'});
  const {command, ppid, count} = data.processes;
  if (command[at]) box.append(make('pre', {}, oneLine(command[at])));
  if (ppid[at]) says(box, `Begun by process ${ppid[at]}.`);
  const files = [];
  eachUse((row, process, numbers) => { if (process === at) files.push([row, numbers]); });
  files.sort((a, b) => b[1][0] - a[1][0]);
  const shown = files.slice(0, kMostLinks);
  if (shown.length) box.append(smallTable(['file', 'ops', 'errors', 'bytes', 'time'], shown.map(([row, numbers]) => [toFile(row), ...numbersOf(numbers)]), 'files it used'));
  const rest = count[at] + (data.processes.folded[at]?.count || 0) - shown.reduce((sum, [, [n]]) => sum + n, 0);
  if (rest > 0) says(box, `${format.count(rest)} ${shown.length ? 'more ' : ''}operations on files of which that is not shown.`);
  if (chosenBins()) says(box, allTheTime);
  return box;
};
