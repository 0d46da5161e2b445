// Which stalls are in view, and what is drawn of them.

import { type Run, sampled } from "./data.js";
import { count, counted } from "./format.js";
import type { View } from "./scale.js";

/** Stalls of each lane by start, and the longest of each lane, which bounds how early a stall in view can begin. */
export interface Lanes {
  rows: Uint32Array[];
  longest: number[];
}

export function lanes(run: Run): Lanes {
  const rows: number[][] = run.head.lanes.map(() => []);
  const longest = run.head.lanes.map(() => 0);
  for (let row = 0; row < run.head.rows; row++) {
    const lane = run.lane[row] ?? 0;
    rows[lane]?.push(row);
    longest[lane] = Math.max(longest[lane] ?? 0, run.length[row] ?? 0);
  }
  return { rows: rows.map((of) => Uint32Array.from(of)), longest };
}

/** The first of `rows` that starts at or after a moment. */
export function firstFrom(run: Run, rows: Uint32Array, at: number): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((run.start[rows[middle] ?? 0] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Bars of a lane: the longest stall of each pixel step, so that no bar hides a longer one. */
export function bars(
  run: Run,
  of: Lanes,
  lane: number,
  mask: Uint8Array,
  view: View,
  width: number,
  visit: (row: number, x: number, w: number) => void,
): void {
  const rows = of.rows[lane];
  if (rows === undefined) return;
  const scale = width / (view.to - view.from);
  let best = -1;
  let column = -1;
  const put = (): void => {
    if (best < 0) return;
    const x = ((run.start[best] ?? 0) - view.from) * scale;
    visit(best, x, (run.length[best] ?? 0) * scale);
  };
  for (let at = firstFrom(run, rows, view.from - (of.longest[lane] ?? 0)); at < rows.length; at++) {
    const row = rows[at] ?? 0;
    const start = run.start[row] ?? 0;
    if (start > view.to) break;
    if (mask[row] === 0 || start + (run.length[row] ?? 0) < view.from) continue;
    const here = Math.floor((start - view.from) * scale);
    if (here !== column) {
      put();
      [best, column] = [row, here];
    } else if ((run.length[row] ?? 0) > (run.length[best] ?? 0)) {
      best = row;
    }
  }
  put();
}

/** The stall of a lane at a moment, or the nearest within `reach`; -1 for none. */
export function at(run: Run, of: Lanes, lane: number, mask: Uint8Array, moment: number, reach: number): number {
  const rows = of.rows[lane];
  if (rows === undefined) return -1;
  let best = -1;
  let nearest = Number.POSITIVE_INFINITY;
  for (let i = firstFrom(run, rows, moment - reach - (of.longest[lane] ?? 0)); i < rows.length; i++) {
    const row = rows[i] ?? 0;
    const start = run.start[row] ?? 0;
    if (start > moment + reach) break;
    if (mask[row] === 0) continue;
    const end = start + (run.length[row] ?? 0);
    const distance = moment < start ? start - moment : moment > end ? moment - end : 0;
    if (distance > reach) continue;
    // At equal distance the longer one, because that is the visible one.
    if (distance < nearest || (distance === nearest && (run.length[row] ?? 0) > (run.length[best] ?? 0))) {
      [best, nearest] = [row, distance];
    }
  }
  return best;
}

/** The shown stall after (or before) a row, in order of start; the row itself at the end. */
export function next(mask: Uint8Array, row: number, step: 1 | -1): number {
  for (let at = row + step; at >= 0 && at < mask.length; at += step) if (mask[at] === 1) return at;
  return row;
}

/** The longest shown stall in view; -1 if there is none. */
export function worst(run: Run, mask: Uint8Array, { from, to }: View): number {
  let best = -1;
  for (let row = 0; row < run.head.rows; row++) {
    const start = run.start[row] ?? 0;
    if (mask[row] !== 1 || start > to || start + (run.length[row] ?? 0) < from) continue;
    if (best < 0 || (run.length[row] ?? 0) > (run.length[best] ?? 0)) best = row;
  }
  return best;
}

/** Minimum number of values above a percentile for it to be meaningful. */
const SUPPORT = 10;

type Line = { points: [number, number][]; longest: [number, number] };

/** Ratio of adjacent waits in a line of moments. */
const STEP = 1.05;

/** Quantiles on the scale of the nines, while enough values lie above; and the longest. Those of the shown stalls'
 * lengths; or, of all moments in this time, how long one waits in them: of a stall, a moment waits for what is left. */
export function nines(run: Run, mask: Uint8Array, momentsNs: number | null): Line {
  const lengths: number[] = [];
  for (let row = 0; row < run.head.rows; row++) if (mask[row] === 1) lengths.push(run.length[row] ?? 0);
  lengths.sort((a, b) => a - b);
  return momentsNs === null ? ninesOfLengths(lengths) : ninesOfMoments(lengths, momentsNs);
}

function ninesOfLengths(lengths: number[]): Line {
  const points: [number, number][] = [];
  const end = lengths.length - SUPPORT;
  for (let at = 0; at <= end; at++) {
    const x = -Math.log10((lengths.length - at) / lengths.length);
    const y = lengths[at] ?? 0;
    const last = points[points.length - 1];
    if (last === undefined || x - last[0] > 0.004 || y > last[1] * 1.02 || at === end) {
      points.push([Math.max(x, 0), y]);
    }
  }
  return { points, longest: [Math.log10(Math.max(lengths.length, 1)), lengths[lengths.length - 1] ?? 0] };
}

function ninesOfMoments(lengths: number[], all: number): Line {
  const longest = lengths[lengths.length - 1] ?? 0;
  if (longest <= 0) return { points: [], longest: [0, 0] };
  const points: [number, number][] = [];
  let [longer, sum] = [lengths.length, lengths.reduce((a, b) => a + b, 0)];
  let at = 0;
  for (let wait = Math.max((lengths[0] ?? 0) / 16, 1); wait < longest; wait *= STEP) {
    for (; (lengths[at] ?? 0) <= wait && at < lengths.length; at++) {
      longer -= 1;
      sum -= lengths[at] ?? 0;
    }
    const above = sum - longer * wait;
    if (above < SUPPORT * wait) break;
    points.push([Math.max(-Math.log10(above / all), 0), wait]);
  }
  return { points, longest: [Math.max(Math.log10((2 * all) / longest), 0), longest] };
}

/** Lines on one axis. A line without a point at an x continues (`undefined`); between its end and its longest value
 * it has a gap (`null`), whatever points the others have there. */
export function aligned(curves: { points: [number, number][]; longest: [number, number] }[]): { xs: number[]; lines: (number | null | undefined)[][] } {
  const all = new Set<number>();
  const ends = curves.map(({ points }) => points[points.length - 1]?.[0] ?? 0);
  curves.forEach(({ points, longest }, at) => {
    for (const [x] of points) all.add(x);
    // Adds a place for the gap between the two.
    all.add(((ends[at] ?? 0) + longest[0]) / 2).add(longest[0]);
  });
  const xs = [...all].sort((a, b) => a - b);
  const lines = curves.map(({ points, longest }, at) => {
    const line = new Map<number, number | null>([...points, longest]);
    const end = ends[at] ?? 0;
    return xs.map((x) => line.get(x) ?? (x > end && x < longest[0] ? null : undefined));
  });
  return { xs, lines };
}

/** Describes what a chart of the page's stalls omits if the run has more; empty if nothing. `whole`: whether it
 * shows the whole run while nothing is filtered. */
export function leftOut(run: Run, mask: Uint8Array, culprit: number | null, whole: boolean): string {
  if (!sampled(run) || (whole && culprit === null)) return "";
  const [all, here] = [run.head.run.stalls, run.head.rows];
  const { noun } = run.head.run;
  if (culprit === null) {
    return `Of ${counted(all, noun)} ${count(here)} are in this page: of each moment the shortest and the longest; the others lie in the run only.`;
  }
  const shown = mask.reduce((sum, one) => sum + one, 0);
  const of = run.head.culprits[culprit];
  const known = Math.max(of?.stalls ?? 0, shown);
  return `Of the ${counted(here, noun)} in this page, which are a sample of ${count(all)}: ${count(shown)} of the ${count(known)} with ${of?.name ?? ""}. What it took in all of the run is in the table of culprits.`;
}

/** The highest of the points in each step across. */
export function tops(points: [number, number][], step: number): [number, number][] {
  const highest = new Map<number, [number, number]>();
  for (const point of points) {
    const at = Math.floor(point[0] / step);
    const known = highest.get(at);
    if (known === undefined || point[1] < known[1]) highest.set(at, point);
  }
  return [...highest.values()];
}

/** The legend of the series in a chart of the shown stalls: the culprit, how many share the last series, or that the
 * stalls were only counted. */
export function namesOfSeries(run: Run, mask: Uint8Array, seriesOf: ArrayLike<number>): { name: string; series: number }[] {
  const leaders = new Map<number, Set<number>>();
  for (let row = 0; row < run.head.rows; row++) {
    if (mask[row] !== 1) continue;
    const leader = run.leader[row] ?? -1;
    const series = leader < 0 ? 0 : (seriesOf[leader] ?? 0);
    const known = leaders.get(series);
    if (known === undefined) leaders.set(series, new Set([leader]));
    else known.add(leader);
  }
  const name = (leader: number): string => (leader < 0 ? "not attributed" : (run.head.culprits[leader]?.name ?? ""));
  return [...leaders]
    .sort(([a], [b]) => a - b)
    .map(([series, of]) => ({ series, name: of.size > 2 ? `${count(of.size)} others` : [...of].map(name).join(", ") }));
}

/** The shade of this many stalls in a cell of a map whose maximum is `most`. */
export function shade(n: number, most: number): number {
  return Math.min(Math.max(Math.ceil((Math.log1p(n) / Math.log1p(most)) * SHADES) - 1, 0), SHADES - 1);
}

export const SHADES = 8;

/** The minimum and maximum number of stalls of each used shade. */
export function shades(counts: ArrayLike<number>, most: number): { shade: number; from: number; to: number }[] {
  const used = new Set<number>();
  for (let at = 0; at < counts.length; at++) if ((counts[at] ?? 0) > 0) used.add(shade(counts[at] ?? 0, most));
  const fewest = (wanted: number): number => {
    let [low, high] = [1, most + 1];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (shade(middle, most) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const last = (of: number): number => (of === SHADES - 1 ? most : Math.min(fewest(of + 1) - 1, most));
  return [...used].sort((a, b) => a - b).map((of) => ({ shade: of, from: fewest(of), to: last(of) }));
}
