// Numbers for display, in the same formats as in the text report.

/** Three digits with a suitable unit: `17 ns`, `1.30 ms`. */
export function ns(value: number): string {
  if (value < 1000) return `${Math.round(value)} ns`;
  const [scaled, unit] =
    value < 999_500 ? [value / 1e3, "us"] : value < 999_500_000 ? [value / 1e6, "ms"] : [value / 1e9, "s"];
  return `${scaled.toFixed(scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0)} ${unit}`;
}

/** Whole nanoseconds with separators: `1,302,113 ns`. */
export function exact(value: number): string {
  return `${count(Math.round(value))} ns`;
}

/** `1,234,567`. */
export function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** The word for a run's stalls: slow messages, late wake-ups. */
export interface Noun {
  one: string;
  many: string;
}

/** `1 stall`, `1,234 slow messages`. */
export function counted(value: number, noun: Noun): string {
  return `${count(value)} ${value === 1 ? noun.one : noun.many}`;
}

/** With a capital, for the start of a sentence. */
export function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** `41.2 %`. */
export function percent(share: number): string {
  const p = share * 100;
  return p > 0 && p < 0.05 ? "<0.1 %" : `${p.toFixed(1)} %`;
}

/** A moment since the start on an axis whose marks are `step` apart: `3.2 s`, `3.200 045 s`. */
export function moment(value: number, step: number): string {
  const digits = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(Math.max(1, step)) - 1e-9)));
  const sign = value < 0 ? "-" : "";
  const [whole, fraction] = (Math.abs(value) / 1e9).toFixed(digits).split(".");
  return `${sign}${whole}${fraction === undefined ? "" : `.${grouped(fraction)}`} s`;
}

function grouped(digits: string): string {
  return digits.replace(/(\d{3})(?=\d)/g, "$1\u2009");
}

/** Time of day in UTC from nanoseconds since the epoch, with the precision of `step`. */
export function wall(epochNs: bigint, step: number): string {
  const second = epochNs / 1_000_000_000n;
  const nanos = Number(epochNs % 1_000_000_000n);
  const time = new Date(Number(second) * 1000).toISOString().slice(11, 19);
  const digits = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(Math.max(1, step)) - 1e-9)));
  if (digits === 0) return time;
  return `${time}.${grouped(nanos.toString().padStart(9, "0").slice(0, digits))}`;
}

/** Date and time in UTC to the nanosecond. */
export function utc(epochNs: bigint): string {
  const day = new Date(Number(epochNs / 1_000_000n)).toISOString().slice(0, 10);
  return `${day} ${wall(epochNs, 1).replaceAll("\u2009", "")} UTC`;
}

/** `99.9 %` of three nines. */
export function nines(value: number): string {
  if (value <= 0) return "0 %";
  if (value === 1) return "90 %";
  return value === 2 ? "99 %" : `99.${"9".repeat(value - 2)} %`;
}
