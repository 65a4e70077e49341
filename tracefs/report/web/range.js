// Figures of the chosen time: sums over the coarse bins in it. Times are chosen
// by these bins, so that sums are exact.

const kPoint = ['count', 'errors', 'bytes', 'time_ns'];

// Of a series (bin, count, errors, bytes, time_ns; and so on); null: none was kept.
const sumOfSeries = (series, bins) => {
  if (!series) return null;
  const sum = {count: 0, errors: 0, bytes: 0, time_ns: 0};
  for (let p = 0; p < series.length; p += 5) {
    if (series[p] < bins[0] || series[p] >= bins[1]) continue;
    kPoint.forEach((key, i) => { sum[key] += series[p + 1 + i]; });
  }
  return sum;
};
// Of what has a bin, some more numbers that say which row, and one or more numbers: `use` is called with these.
const eachInBins = (flat, stride, bins, use) => {
  for (let p = 0; p < flat.length; p += stride) {
    if (flat[p] >= bins[0] && flat[p] < bins[1]) use(...flat.slice(p + 1, p + stride));
  }
};
const allBins = () => [0, data.time.coarse_bins];

const sumOf = (numbers, first, end) => {
  let sum = 0;
  for (let i = first; i < end; ++i) sum += numbers[i] || 0;
  return sum;
};

// Of operations one by one and of those that were only counted.
const totalsOfTime = (bins) => {
  const totals = {count: 0, errors: 0, bytes: 0, time_ns: 0, read: 0, written: 0};
  for (const {series} of data.operations) {
    const sum = sumOfSeries(series, bins);
    if (sum) kPoint.forEach((key) => { totals[key] += sum[key]; });
  }
  const [first, end] = chosenFine();
  totals.read = sumOf(data.timeline.read, first, end);
  totals.written = sumOf(data.timeline.written, first, end);
  return totals;
};
// What is left of totals when rows are taken off; never less than nothing: what a copy moves is of both its files.
const restOf = (totals, sums) => {
  const rest = {};
  kPoint.forEach((key) => { rest[key] = Math.max(0, sums.reduce((left, sum) => left - sum[key], totals[key])); });
  return rest;
};

// Quantiles by rows of durations: as tracefs/tally/histogram.h has them, with fewer rows.
const cellCounts = (operations, bins) => {
  const counts = [];
  for (const {cells} of operations) {
    eachInBins(cells, 3, bins, (row, count) => { counts[row] = (counts[row] || 0) + count; });
  }
  return counts;
};
const quantileOf = (counts, share, shortest, longest) => {
  const rows = data.latency.cell_rows;
  const all = counts.reduce((sum, n) => sum + n, 0);
  if (all === 0) return null;
  const rank = Math.min(all, Math.max(1, Math.floor(share * all + 0.999999)));
  let seen = 0;
  for (let row = 0; row < counts.length; ++row) {
    seen += counts[row] || 0;
    if (seen < rank) continue;
    const end = rows[row + 1] ?? longest + 1;
    const middle = rows[row] + Math.floor((end - 1 - rows[row]) / 2);
    return Math.min(longest, Math.max(shortest, middle));
  }
  return null;
};
// By how much a quantile may be off: half a row.
const cellPrecision = () => {
  const rows = data.latency.cell_rows;
  const at = rows.findIndex((ns) => ns >= 1024);
  const share = at > 0 && rows[at + 1] ? (rows[at + 1] - rows[at]) / rows[at] / 2 : 1 / 16;
  return `${Math.ceil(100 * share)} %`;
};

// What a panel says when it cannot follow.
const says = (host, text) => host.append(make('p', {class: 'small says-so'}, text));
