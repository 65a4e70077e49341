'use strict';
// Numbers as people read them; the same forms as the program's own.

const format = {
  count: (n) => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ','),
  digits: (v) => v.toFixed(v < 10 ? 2 : v < 100 ? 1 : 0),
  bytes(n) {
    if (n < 1000) return `${Math.round(n)} B`;
    const units = ['kB', 'MB', 'GB', 'TB', 'PB', 'EB'];
    let at = 0;
    for (n /= 1000; n >= 999.5 && at + 1 < units.length; ++at) n /= 1000;
    return `${format.digits(n)} ${units[at]}`;
  },
  // Sizes that programs choose: exact, and by 1024 where they are.
  size(n) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
    let at = 0;
    for (; n >= 1024 && n % 1024 === 0 && at + 1 < units.length; ++at) n /= 1024;
    return `${format.count(n)} ${units[at]}`;
  },
  time(ns) {
    if (ns < 1000) return `${Math.round(ns)} ns`;
    if (ns < 999.5e3) return `${format.digits(ns / 1e3)} us`;
    if (ns < 999.5e6) return `${format.digits(ns / 1e6)} ms`;
    if (ns < 120e9) return `${format.digits(ns / 1e9)} s`;
    if (ns < 7200e9) return `${format.digits(ns / 60e9)} min`;
    return `${format.digits(ns / 3600e9)} h`;
  },
  since: (ns) => (ns === null ? '-' : `${ns < 0 ? '-' : '+'}${format.time(Math.abs(ns))}`),
  text: (value) => (value === null ? '-' : String(value)),
};

// What can be measured of everything: its key in the data, its name, its form.
const measures = {
  time_ns: {name: 'time', form: format.time},
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
