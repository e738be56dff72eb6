// SPDX-License-Identifier: MIT
//
// Numbers as people read them. Every function accepts undefined (not known) and returns a dash for it.

export const NONE = "–";

const known = (value) => value !== undefined && value !== null && Number.isFinite(value);

/** 0, 0.4, 12.3, 950, 12.4k, 3.1M: about three digits. */
export function number(value) {
  if (!known(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 1e9) return trim(value / 1e9, 3) + "G";
  if (size >= 1e6) return trim(value / 1e6, 3) + "M";
  if (size >= 1e4) return trim(value / 1e3, 3) + "k";
  if (size >= 100) return String(Math.round(value));
  return trim(value, size >= 10 ? 3 : 2);
}

function trim(value, digits) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const decimals = size >= 100 ? 0 : size >= 10 ? digits - 2 : size >= 1 ? digits - 1 : 2;
  return value.toFixed(Math.max(decimals, 0)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

/** A count with separators between thousands. */
export function count(value) {
  return known(value) ? Math.round(value).toLocaleString("en-GB") : NONE;
}

/** "1 service", "2 services"; `many` is the plural where it is not the word with an s. */
export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function perSecond(value) {
  return known(value) ? `${number(value)}/s` : NONE;
}

/** A share of 1 as a percentage. Only 1 becomes 100 %, only 0 becomes 0 %. */
export function percent(share) {
  if (!known(share)) return NONE;
  if (share >= 1) return "100 %";
  if (share <= 0) return "0 %";
  if (share > 0.999) return share > 0.9999 ? ">99.99 %" : `${(Math.floor(share * 1e4) / 100).toFixed(2)} %`;
  if (share < 0.001) return "<0.1 %";
  return `${trim(share * 100, 3)} %`;
}

/** An amplification: 1.00×. */
export function times(value) {
  return known(value) ? `${value.toFixed(value >= 10 ? 1 : 2)}×` : NONE;
}

/** Milliseconds, in a fitting unit. */
export function ms(value) {
  if (!known(value)) return NONE;
  if (value === 0) return "0 ms";
  if (value < 1) return `${Math.max(1, Math.round(value * 1000))} µs`;
  if (value < 1000) return `${trim(value, value >= 100 ? 3 : 2)} ms`;
  if (value < 60000) return `${trim(value / 1000, 3)} s`;
  return duration(value);
}

/** A long time, in two units: 3 h 5 min. */
export function duration(milliseconds) {
  if (!known(milliseconds)) return NONE;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** The time of day, of a date or of milliseconds since 1970. */
export function clock(time, withMs = false) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return NONE;
  const two = (n) => String(n).padStart(2, "0");
  const text = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return withMs ? `${text}.${String(date.getMilliseconds()).padStart(3, "0")}` : text;
}

/** How long ago. */
export function ago(time, now = Date.now()) {
  const since = now - new Date(time).getTime();
  if (Number.isNaN(since)) return NONE;
  return since < 1500 ? "just now" : `${duration(since)} ago`;
}

/** "budget_empty" as words. */
export function words(word) {
  return word === undefined ? NONE : word.toLowerCase().replaceAll("_", " ");
}
