// The page's state, and the parts that follow it.

import { having, type Run } from "./data.js";
import type { Noun } from "./format.js";
import { type Look, look, seriesOf } from "./look.js";
import { type Lanes, lanes } from "./pick.js";
import { around, firstLane, laneInView, type View, within } from "./scale.js";
import { NOTHING, read, type State, written } from "./state.js";

export interface Part {
  /** Redraws itself. */
  draw(): void;
}

/** The common scales of compared runs: equal lengths have equal sizes, and a culprit has one colour. */
export interface Shared {
  duration: number;
  /** The shortest and the longest stall. */
  lengths: [number, number];
  series: Int32Array[];
}

export function shared(runs: Run[]): Shared {
  let [shortest, longest] = [Number.POSITIVE_INFINITY, 1];
  for (const run of runs) {
    for (const length of run.length) [shortest, longest] = [Math.min(shortest, length), Math.max(longest, length)];
  }
  return {
    duration: Math.max(...runs.map(({ head }) => head.run.duration_ns)),
    lengths: [Math.max(Math.min(shortest, longest), 1), longest],
    series: seriesOf(runs),
  };
}

export class App {
  readonly lanes: Lanes;
  readonly series: Int32Array;
  look: Look;
  state: State = NOTHING;
  mask: Uint8Array;
  private parts: Part[] = [];
  private drawing = 0;
  private writing = 0;
  /** Time of the last selection. */
  private pushed = Number.NEGATIVE_INFINITY;

  /** `addressed`: whether the page's address describes this run, as it does for a single run. */
  constructor(
    readonly run: Run,
    private readonly beside: Shared = shared([run]),
    at = 0,
    readonly addressed = true,
  ) {
    this.lanes = lanes(run);
    this.series = beside.series[at] ?? new Int32Array(run.head.culprits.length);
    this.look = look();
    this.mask = having(run, null);
  }

  /** The word for its stalls. */
  get noun(): Noun {
    return this.run.head.run.noun;
  }

  get duration(): number {
    return this.beside.duration;
  }

  /** The shortest and the longest stall. */
  get lengths(): [number, number] {
    return this.beside.lengths;
  }

  get view(): View {
    return this.state.view ?? { from: 0, to: Math.max(this.duration, 10) };
  }

  /** The row of the selected stall; -1 for none. */
  get row(): number {
    return this.state.stall === null ? -1 : (this.run.byId.get(this.state.stall) ?? -1);
  }

  add(part: Part): void {
    this.parts.push(part);
  }

  /** Applies an address. */
  follow(hash: string): void {
    const state = read(hash);
    if (state === null) return;
    const row = state.stall === null ? undefined : this.run.byId.get(state.stall);
    // A link to a stall without a view leads to its position.
    const view =
      state.view ??
      (row === undefined ? null : around(this.run.start[row] ?? 0, this.run.length[row] ?? 0, this.duration));
    const culprit = state.culprit !== null && state.culprit < this.run.head.culprits.length ? state.culprit : null;
    // A stall that a link leads to is shown despite the filter.
    const led = culprit !== null && row !== undefined && having(this.run, culprit)[row] !== 1 ? null : culprit;
    const lanes = this.run.head.lanes.length;
    const first = firstLane(state.lane, lanes);
    const lane = row === undefined ? first : laneInView(first, this.run.lane[row] ?? 0, lanes);
    this.take({ ...state, culprit: led, lane, view: view === null ? null : within(view, this.duration) });
  }

  set(change: Partial<State>): void {
    const next = { ...this.state, ...change };
    next.lane = firstLane(next.lane, this.run.head.lanes.length);
    if (next.view !== null) {
      const whole = next.view.from <= 0 && next.view.to >= this.duration;
      next.view = whole ? null : within(next.view, this.duration);
    }
    // A selection is a step in the browser history; moving the view is not.
    const chosen = next.stall !== this.state.stall || next.culprit !== this.state.culprit;
    // Holding a key counts as one step.
    const step = this.addressed && chosen && performance.now() - this.pushed > 400;
    if (chosen) this.pushed = performance.now();
    if (step) this.write();
    this.take(next);
    if (step) {
      history.pushState(null, "", this.address());
      return;
    }
    // Browsers reject address changes at every mouse movement.
    clearTimeout(this.writing);
    if (!this.addressed) return;
    this.writing = window.setTimeout(() => this.write(), 250);
  }

  /** Updates the address if necessary. */
  private write(): void {
    if (this.writing === 0) return;
    clearTimeout(this.writing);
    this.writing = 0;
    history.replaceState(null, "", this.address());
  }

  private address(): string {
    return written(this.state) || location.pathname + location.search;
  }

  private take(state: State): void {
    if (state.culprit !== this.state.culprit) {
      this.mask = having(this.run, state.culprit);
      const row = state.stall === null ? undefined : this.run.byId.get(state.stall);
      // Deselects a stall that the filter hides, and leaves a view without any stall.
      if (row !== undefined && this.mask[row] !== 1) state.stall = null;
      if (state.view !== null && !this.anyIn(state.view)) state.view = null;
    }
    this.state = state;
    this.later();
  }

  /** Whether the filter keeps a stall that is in view. */
  private anyIn({ from, to }: View): boolean {
    const { run, mask } = this;
    for (let row = 0; row < run.head.rows; row++) {
      const start = run.start[row] ?? 0;
      if (start > to) break;
      if (mask[row] === 1 && start + (run.length[row] ?? 0) >= from) return true;
    }
    return false;
  }

  /** Redraws everything before the next frame. */
  later(): void {
    if (this.drawing !== 0) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = 0;
      this.now();
    });
  }

  private now(): void {
    performance.mark("jitterscope-draw-begins");
    for (const part of this.parts) part.draw();
    performance.measure("jitterscope-draw", "jitterscope-draw-begins");
  }

  /** Handles a change of the theme. */
  relook(): void {
    this.look = look();
    this.later();
  }

  /** Handles a change of the theme when no frame will be shown before the result is needed. */
  relookNow(): void {
    this.look = look();
    this.now();
  }

  /** Chooses a stall and brings it into view, in one step. `filter` is the culprit to filter by. */
  choose(row: number, zoom: boolean, filter = this.state.culprit): void {
    const id = this.run.id[row];
    if (id === undefined) return this.set({ stall: null });
    const [start, length] = [this.run.start[row] ?? 0, this.run.length[row] ?? 0];
    const lane = laneInView(this.state.lane, this.run.lane[row] ?? 0, this.run.head.lanes.length);
    const { from, to } = this.view;
    const middle = start + length / 2;
    const half = (to - from) / 2;
    const seen = start + length >= from && start <= to;
    const moved = zoom ? around(start, length, this.duration) : { from: middle - half, to: middle + half };
    this.set({ stall: id, lane, culprit: filter, ...(zoom || !seen ? { view: moved } : {}) });
  }
}
