'use strict';
// Numbers as people read them; the same forms as the program's own.

const format = {
  count: (n) => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ','),
  digits: (v) => v.toFixed(v < 10 ? 2 : v < 100 ? 1 : 0),
  // Three digits, the rest cut, a blank and a unit: `factor` of a number.
  cut(n, factor, unit) {
    const whole = Math.floor(n / factor);
    if (factor === 1 || whole >= 100) return `${whole} ${unit}`;
    const digits = whole < 10 ? 2 : 1;
    const hundredths = Math.floor(n / (factor / 100)) % 100;
    return `${whole}.${String(hundredths).padStart(2, '0').slice(0, digits)} ${unit}`;
  },
  bytes(n) {
    const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB'];
    let factor = 1, at = 0;
    for (; n / factor >= 1000 && at + 1 < units.length; ++at) factor *= 1000;
    return format.cut(n, factor, units[at]);
  },
  // Sizes that programs choose: exact, and by 1024 where they are.
  size(n) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
    let at = 0;
    for (; n >= 1024 && n % 1024 === 0 && at + 1 < units.length; ++at) n /= 1024;
    return `${format.count(n)} ${units[at]}`;
  },
  time(ns) {
    if (ns < 1e3) return format.cut(ns, 1, 'ns');
    if (ns < 1e6) return format.cut(ns, 1e3, 'µs');
    if (ns < 1e9) return format.cut(ns, 1e6, 'ms');
    if (ns < 120e9) return format.cut(ns, 1e9, 's');
    if (ns < 7200e9) return format.cut(ns, 60e9, 'min');
    return format.cut(ns, 3600e9, 'h');
  },
  // How long operations took: of what took nothing at all no time is known.
  took: (ns) => (ns ? format.time(ns) : '-'),
  share(part, all) {
    if (all === 0) return '0 %';
    if (part === all) return '100 %';
    const percent = 100 * part / all;
    return percent > 99.9 ? '99.9 %' : `${percent.toFixed(percent < 10 || percent > 99 ? 1 : 0)} %`;
  },
  since: (ns) => (ns === null ? '-' : ns === 0 ? '0' : `${ns < 0 ? '-' : '+'}${format.time(Math.abs(ns))}`),
  text: (value) => (value === null ? '-' : String(value)),
};

// What can be measured of everything: its key in the data, its name, its form.
const measures = {
  time_ns: {name: 'time', form: format.took},
  count: {name: 'operations', form: format.count},
  bytes: {name: 'bytes', form: format.bytes},
  errors: {name: 'errors', form: format.count},
};

// About how wide a text is in pictures: DejaVu Sans, which is a wide font.
const letterWidth = (letter) => {
  if (letter > '\u007f') return 11;
  if ('mMwW@%'.includes(letter)) return 10;
  if ("ijlI.,:;'|!/()[] -ftr".includes(letter)) return 4.4;
  return letter >= 'A' && letter <= 'Z' ? 7.8 : 7;
};
// Arguments that go over several lines, in one.
const oneLine = (text) => text.replace(/\\(.)/g, (all, letter) => (letter === 'n' ? '\u21b5' : all));
const textWidth = (text) => [...text].reduce((sum, letter) => sum + letterWidth(letter), 0);
const shorten = (text, room) => {
  if (textWidth(text) <= room) return text;
  let kept = '', used = 11;
  for (const letter of text) {
    used += letterWidth(letter);
    if (used > room) break;
    kept += letter;
  }
  return kept === '' ? '' : `${kept}\u2026`;
};
