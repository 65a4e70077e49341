// Where the marks of an axis stand, at round numbers, and what they say; the
// same ones as in pictures that the program draws (axis.cc).

const roundStep = (length, most) => {
  const least = length / most;
  if (!(least > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((times) => times * power >= least * (1 - 1e-9)) || 10);
};
const roundTimeStep = (length, most) => {
  const least = length / most;
  if (least <= 20e9) return Math.max(1, roundStep(length, most));
  const seconds = [30, 60, 120, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200, 86400].find((s) => s * 1e9 >= least);
  return seconds ? seconds * 1e9 : 86400e9 * Math.max(1, roundStep(length / 86400e9, most));
};
const multiples = (begin, end, step) => {
  const all = [];
  for (let at = Math.ceil(begin / step - 1e-9); at * step <= end * (1 + 1e-9) && all.length < 100; ++at) all.push(at * step);
  return all;
};

const tickTime = (ns, step) => {
  if (ns === 0) return '0';
  const [, unit, name] = [[1e3, 1, 'ns'], [1e6, 1e3, 'µs'], [1e9, 1e6, 'ms'], [120e9, 1e9, 's'], [7200e9, 60e9, 'min'], [Infinity, 3600e9, 'h']]
    .find(([below]) => Math.abs(ns) < below);
  let digits = 0;
  for (let part = step / unit; digits < 6 && Math.abs(part - Math.round(part)) > 1e-6 * part; part *= 10) ++digits;
  return `${(ns / unit).toFixed(digits)} ${name}`;
};
const roundNumber = (value) => {
  if (value >= 1e9) return `${Number((value / 1e9).toPrecision(4))}G`;
  if (value >= 1e6) return `${Number((value / 1e6).toPrecision(4))}M`;
  return value >= 1000 ? format.count(value) : String(Number(value.toPrecision(3)));
};

const logTimeTicks = (low, high) => {
  const ticks = (times) => {
    const all = [];
    for (let power = 1; power <= 1e16; power *= 10) {
      for (const factor of times) if (factor * power >= low && factor * power <= high) all.push(factor * power);
    }
    return all;
  };
  const all = ticks([1]);
  return all.length < 3 ? ticks([1, 2, 5]) : all;
};
