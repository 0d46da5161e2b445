// The charts that summarize the filtered stalls: the longest stall of each moment, and the time by culprit.

import type { App } from "./app.js";
import { culpritKeys, type Key, nextStall, OVER_TIME, Picture, place, reveal } from "./charts.js";
import { culpritOf } from "./data.js";
import { fit } from "./dom.js";
import { capital, counted, exact, moment, ns, percent } from "./format.js";
import { hanging, mark, SERIES } from "./look.js";
import { bars, tops } from "./pick.js";
import { around } from "./scale.js";

const PANEL = 118;
/** Lanes with a panel of their own, as in the image. */
const PANELS = 6;
const TOP = 20;

/** The longest stall of each moment as a stick, with a panel per lane. */
export class Series extends Picture {
  private readonly lanes: number[];
  private range: [number, number] = [1, 10];

  constructor(app: App, root: HTMLElement) {
    super(app, root);
    const { longest } = app.lanes;
    this.lanes = [...longest.keys()]
      .filter((lane) => (longest[lane] ?? 0) > 0)
      .sort((a, b) => (longest[b] ?? 0) - (longest[a] ?? 0))
      .slice(0, PANELS)
      .sort((a, b) => a - b);
    let [low, high] = [Number.POSITIVE_INFINITY, 1];
    for (const length of app.run.length) {
      low = Math.min(low, Math.max(length, 1));
      high = Math.max(high, length);
    }
    this.range = [10 ** Math.floor(Math.log10(Math.min(low, high))), 10 ** Math.ceil(Math.log10(high * 1.001))];
  }

  static of(app: App): Series | null {
    const root = app.run.head.rows > 0 ? place("series", "auto", OVER_TIME) : null;
    return root === null ? null : new Series(app, root);
  }

  protected get height(): number {
    return PANEL * this.lanes.length + this.bottom + 8;
  }

  protected key(): string {
    return `${this.app.state.stall}`;
  }

  private up(length: number): number {
    const [low, high] = this.range;
    return Math.max(Math.log(Math.max(length, 1) / low) / Math.log(high / low), 0);
  }

  protected paint(draw: CanvasRenderingContext2D): void {
    const { app, left, width } = this;
    const { run } = app;
    this.acrossTime(draw, Math.max(app.duration, 1));
    const all = { from: 0, to: Math.max(app.duration, 1) };
    this.lanes.forEach((lane, at) => {
      const base = PANEL * (at + 1);
      const tall = PANEL - TOP;
      draw.textAlign = "right";
      for (let length = this.range[0]; length <= this.range[1] * 1.001; length *= 10) {
        const y = base - this.up(length) * tall;
        this.rule(draw, left, y, left + width, y);
        draw.fillStyle = app.look.muted;
        const close = tall / Math.log10(this.range[1] / this.range[0]) < 15;
        const decades = Math.round(Math.log10(length / this.range[0]));
        if (!close || decades % 2 === 0) draw.fillText(ns(length).replace(/\.0+ /, " "), left - 6, y);
      }
      draw.textAlign = "left";
      draw.fillStyle = app.look.ink;
      draw.fillText(run.head.lanes[lane] ?? "", left, base - tall - 9);
      const paths = Array.from({ length: SERIES }, (): [number, number][] => []);
      bars(run, app.lanes, lane, app.mask, all, width, (row, x) => {
        const leader = run.leader[row] ?? -1;
        paths[leader < 0 ? 0 : (app.series[leader] ?? 0)]?.push([left + x, base - this.up(run.length[row] ?? 1) * tall]);
      });
      draw.lineWidth = 1.5;
      paths.forEach((sticks, series) => {
        draw.strokeStyle = app.look.series[series] ?? "";
        draw.beginPath();
        for (const [x, y] of sticks) {
          draw.moveTo(x, base);
          draw.lineTo(x, Math.min(y, base - 1));
        }
        draw.stroke();
      });
      this.marks(draw, paths, base);
    });
    this.canvas.setAttribute("aria-label", `The longest ${app.noun.one} of each moment, a panel for each CPU or thread, with arrow keys one by one; the table below has it by steps of time`);
  }

  /** Also marks a stick's culprit with a symbol, on the highest of several adjacent sticks: in print on both sides,
   * so that it stands out among sticks of the same colour. */
  private marks(draw: CanvasRenderingContext2D, paths: [number, number][][], foot: number): void {
    const { look } = this.app;
    const marked = paths.map((sticks) => tops(sticks, 14).map(([x, end]): [number, number] => [x, hanging(end, foot)]));
    draw.fillStyle = look.paper;
    for (const [x, y] of marked.flat()) for (const left of [-3.6, 1.8]) draw.fillRect(x + left, y - 3, 1.8, 6);
    draw.lineWidth = 1.2;
    draw.lineJoin = "round";
    marked.forEach((at, series) => {
      draw.strokeStyle = look.series[series] ?? "";
      draw.beginPath();
      for (const [x, y] of at) mark(draw, series, x, y, 3);
      draw.stroke();
    });
  }

  protected override keyed(): Key[] {
    return culpritKeys(this.app);
  }

  protected next(key: string): [number, number] | null {
    const row = nextStall(this.app, key);
    if (row < 0) return null;
    this.app.choose(row, false);
    const { run, duration } = this.app;
    const panel = this.lanes.indexOf(run.lane[row] ?? -1);
    const x = this.left + ((run.start[row] ?? 0) / Math.max(duration, 1)) * this.width;
    return [x, PANEL * (Math.max(panel, 0) + 1) - this.up(run.length[row] ?? 1) * (PANEL - TOP)];
  }

  /** The longest stall within a few pixels; -1 for none. */
  private near(x: number, y: number): number {
    const lane = this.lanes[Math.floor(y / PANEL)];
    if (lane === undefined || x < this.left - 4) return -1;
    const each = this.app.duration / this.width;
    const middle = (x - this.left) * each;
    let best = -1;
    const view = { from: middle - 3 * each, to: middle + 3 * each };
    bars(this.app.run, this.app.lanes, lane, this.app.mask, view, 1, (row) => {
      if (best < 0 || (this.app.run.length[row] ?? 0) > (this.app.run.length[best] ?? 0)) best = row;
    });
    return best;
  }

  protected told(x: number, y: number): string {
    const row = this.near(x, y);
    if (row < 0) return "";
    const { run } = this.app;
    const name = run.head.culprits[run.leader[row] ?? -1]?.name;
    return [exact(run.length[row] ?? 0), name, moment(run.start[row] ?? 0, 1000)].filter((text) => text !== undefined).join(" \u00b7 ");
  }

  protected click(x: number, y: number): void {
    const row = this.near(x, y);
    if (row < 0) return;
    this.app.choose(row, false);
    this.app.set({ view: around(this.app.run.start[row] ?? 0, this.app.run.length[row] ?? 0, this.app.duration) });
    reveal();
  }
}

const BARS = 14;
const LINE = 24;

interface Bar {
  culprit: number;
  total: number;
  stalls: number;
}

/** The time of the shown stalls by culprit. */
export class Culprits extends Picture {
  private shown: Bar[] = [];
  protected override readonly whole = true;

  static of(app: App): Culprits | null {
    const root = app.run.head.rows > 0 ? place("culprits", "auto", `Of each the share, the time, and in how many ${app.noun.many} it has a part`) : null;
    return root === null ? null : new Culprits(app, root);
  }

  protected get height(): number {
    return LINE * Math.max(Math.min(this.shown.length, BARS), 1) + 30;
  }

  protected key(): string {
    return "";
  }

  /** For all stalls, uses the run's own sums, which include stalls that are not drawn. */
  protected override prepare(): void {
    const { run, state, mask } = this.app;
    const sums: Bar[] = run.head.culprits.map((of, culprit) => ({ culprit, total: of.total_ns, stalls: of.stalls }));
    if (state.culprit !== null) {
      for (const sum of sums) [sum.total, sum.stalls] = [0, 0];
      for (let row = 0; row < run.head.rows; row++) {
        if (mask[row] !== 1) continue;
        const end = run.firstPart[row + 1] ?? 0;
        const met = new Set<number>();
        for (let part = run.firstPart[row] ?? 0; part < end; part++) {
          const culprit = culpritOf(run, part);
          const sum = sums[culprit];
          if (sum === undefined) continue;
          sum.total += run.net[part] ?? 0;
          if (!met.has(culprit)) sum.stalls += 1;
          met.add(culprit);
        }
      }
    }
    this.shown = sums.filter((sum) => sum.total > 0).sort((a, b) => b.total - a.total || a.culprit - b.culprit);
  }

  protected paint(draw: CanvasRenderingContext2D): void {
    const { app } = this;
    const { head } = app.run;
    const narrow = this.canvas.clientWidth < 600;
    const from = narrow ? 8 : 300;
    const to = this.canvas.clientWidth - (narrow ? 8 : 230);
    const all = this.shown.reduce((sum, bar) => sum + bar.total, 0);
    const most = this.shown[0]?.total ?? 1;
    draw.textAlign = "left";
    draw.fillStyle = app.look.muted;
    const chosen = app.state.culprit === null ? undefined : head.culprits[app.state.culprit]?.name;
    draw.fillText(fit(draw, chosen === undefined ? `All ${app.noun.many}` : `${capital(app.noun.many)} with ${chosen}`, this.canvas.clientWidth - 16), 8, 12);
    this.shown.slice(0, BARS).forEach((bar, at) => {
      const of = head.culprits[bar.culprit];
      if (of === undefined) return;
      const y = 24 + LINE * at;
      const long = Math.max((bar.total / most) * Math.max(to - from, 20), 1);
      const tall = narrow ? 6 : LINE - 8;
      const top = narrow ? y + 14 : y;
      if (of.explained) {
        draw.fillStyle = app.look.fills[app.series[bar.culprit] ?? SERIES - 1] ?? "";
        draw.fillRect(from, top, long, tall);
      } else {
        draw.strokeStyle = app.look.muted;
        draw.setLineDash([4, 3]);
        draw.strokeRect(from + 0.5, top + 0.5, long, tall - 1);
        draw.setLineDash([]);
      }
      draw.fillStyle = app.look.ink;
      const told = `${percent(bar.total / Math.max(all, 1))}, ${ns(bar.total)}`;
      if (narrow) {
        draw.textAlign = "left";
        const room = this.canvas.clientWidth - 24 - draw.measureText(told).width;
        draw.fillText(fit(draw, of.name, room), from, y + 6);
        draw.textAlign = "right";
        draw.fillText(told, this.canvas.clientWidth - 8, y + 6);
      } else {
        draw.textAlign = "right";
        draw.fillText(fit(draw, of.name, from - 20), from - 10, y + 8);
        draw.textAlign = "left";
        draw.fillText(`${told}, ${counted(bar.stalls, app.noun)}`, from + long + 8, y + 8);
      }
    });
    const more = this.shown.length - BARS;
    this.canvas.setAttribute("aria-label", `Stolen time by culprit, with arrow keys bar by bar, Enter shows one alone${chosen === undefined ? "" : `, of ${app.noun.many} with ${chosen}`}${more > 0 ? `; ${more} more are in the table` : ""}; the table below has all of the run`);
  }

  protected next(key: string, from: [number, number] | null): [number, number] | null {
    const last = from === null ? -1 : Math.floor((from[1] - 22) / LINE);
    const at = last + (key === "ArrowDown" || key === "ArrowRight" ? 1 : -1);
    if (at < 0 || at >= Math.min(this.shown.length, BARS)) return from;
    return [this.canvas.clientWidth < 600 ? 12 : 304, 24 + LINE * at + 8];
  }

  private bar(y: number): Bar | undefined {
    return this.shown[Math.floor((y - 22) / LINE)];
  }

  protected told(_x: number, y: number): string {
    const bar = this.bar(y);
    const of = bar === undefined ? undefined : this.app.run.head.culprits[bar.culprit];
    return bar === undefined || of === undefined ? "" : `${of.name} \u00b7 ${exact(bar.total)} in ${counted(bar.stalls, this.app.noun)}`;
  }

  protected click(_x: number, y: number): void {
    const bar = this.bar(y);
    if (bar === undefined) return;
    this.app.set({ culprit: this.app.state.culprit === bar.culprit ? null : bar.culprit });
  }
}
