// The visible part of the run, and the marks of its axis.

/** From and to, nanoseconds since the start of the run. */
export interface View {
  from: number;
  to: number;
}

/** The smallest view: ten nanoseconds. */
const LEAST = 10;

/** Limits a view to the run and to the smallest view. */
export function within(view: View, duration: number): View {
  const whole = Math.max(duration, LEAST);
  const length = Math.min(Math.max(view.to - view.from, LEAST), whole);
  const from = Math.min(Math.max(view.from, 0), whole - length);
  return { from, to: from + length };
}

/** Zooms by a factor (below one: closer) around a fixed moment. */
export function zoomed(view: View, at: number, factor: number, duration: number): View {
  return within({ from: at - (at - view.from) * factor, to: at + (view.to - at) * factor }, duration);
}

/** Moves by a share of the view. */
export function moved(view: View, share: number, duration: number): View {
  const by = (view.to - view.from) * share;
  return within({ from: view.from + by, to: view.to + by }, duration);
}

/** A stall with some room around it. */
export function around(start: number, length: number, duration: number): View {
  const room = Math.max(length * 0.12, 20);
  return within({ from: start - room, to: start + length + room }, duration);
}

/** Marks of an axis at round values, about `most` of them, and their distance. */
export function marks(view: View, most: number): { step: number; at: number[] } {
  const least = (view.to - view.from) / Math.max(most, 1);
  const decade = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  const step = [1, 2, 5, 10].map((n) => n * decade).find((n) => n >= least * 0.999999) ?? decade * 10;
  const at: number[] = [];
  for (let mark = Math.ceil(view.from / step); mark * step <= view.to && at.length < 200; mark++) at.push(mark * step);
  return { step, at };
}

/** Maximum of lanes drawn at once; the others by scrolling. */
export const LANES_SHOWN = 32;

/** The height of a lane: runs with many lanes have low ones. */
export function laneHeight(lanes: number): number {
  return lanes <= 12 ? 40 : lanes <= 20 ? 30 : 22;
}

/** The first drawn lane, limited so that no room stays empty below the last. */
export function firstLane(wanted: number, lanes: number): number {
  return Math.min(Math.max(Math.round(wanted), 0), Math.max(lanes - LANES_SHOWN, 0));
}

/** The first drawn lane that makes a given lane visible; unchanged if it already is. */
export function laneInView(first: number, lane: number, lanes: number): number {
  if (lane >= first && lane < first + LANES_SHOWN) return first;
  return firstLane(lane - LANES_SHOWN / 2, lanes);
}
