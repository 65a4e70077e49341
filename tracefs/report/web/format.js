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

const shorten = (text, room) => {
  const letters = [...text];
  const most = Math.floor(room / 6.3);
  return letters.length <= most ? text : most < 2 ? '' : `${letters.slice(0, most - 1).join('')}\u2026`;
};
