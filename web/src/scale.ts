// What part of the run is in view, and where its axis is marked.

/** From and to, nanoseconds since the start of the run. */
export interface View {
  from: number;
  to: number;
}

/** The least that can be in view: ten nanoseconds. */
const LEAST = 10;

/** A view within the run: never less than can be shown, never outside. */
export function within(view: View, duration: number): View {
  const whole = Math.max(duration, LEAST);
  const length = Math.min(Math.max(view.to - view.from, LEAST), whole);
  const from = Math.min(Math.max(view.from, 0), whole - length);
  return { from, to: from + length };
}

/** Zooms by a factor (below one: closer) around a moment that stays where it is. */
export function zoomed(view: View, at: number, factor: number, duration: number): View {
  return within({ from: at - (at - view.from) * factor, to: at + (view.to - at) * factor }, duration);
}

/** Moves by a share of what is in view. */
export function moved(view: View, share: number, duration: number): View {
  const by = (view.to - view.from) * share;
  return within({ from: view.from + by, to: view.to + by }, duration);
}

/** A stall with some room around it. */
export function around(start: number, length: number, duration: number): View {
  const room = Math.max(length * 0.12, 20);
  return within({ from: start - room, to: start + length + room }, duration);
}

/** Marks of an axis at round values, at most about `most`, and how far apart they are. */
export function marks(view: View, most: number): { step: number; at: number[] } {
  const least = (view.to - view.from) / Math.max(most, 1);
  const decade = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  const step = [1, 2, 5, 10].map((n) => n * decade).find((n) => n >= least * 0.999999) ?? decade * 10;
  const at: number[] = [];
  for (let mark = Math.ceil(view.from / step); mark * step <= view.to && at.length < 200; mark++) at.push(mark * step);
  return { step, at };
}

/** Lanes that are drawn at once; the others by scrolling. */
export const LANES_SHOWN = 32;

/** How high a lane is: a run with many has low ones. */
export function laneHeight(lanes: number): number {
  return lanes <= 12 ? 40 : lanes <= 20 ? 30 : 22;
}

/** The first lane that is drawn, of so many: never so far down that there would be room below the last. */
export function firstLane(wanted: number, lanes: number): number {
  return Math.min(Math.max(Math.round(wanted), 0), Math.max(lanes - LANES_SHOWN, 0));
}

/** The first lane that is drawn so that one is among them: as it is, where it is. */
export function laneInView(first: number, lane: number, lanes: number): number {
  if (lane >= first && lane < first + LANES_SHOWN) return first;
  return firstLane(lane - LANES_SHOWN / 2, lanes);
}
