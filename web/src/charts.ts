// The charts that follow the filter: percentiles and the scatter of stalls.

import uPlot from "uplot";
import type { App, Part } from "./app.js";
import { element, fitted } from "./dom.js";
import { count, exact, moment, nines, ns } from "./format.js";
import { mark, SERIES } from "./look.js";
import { aligned, leftOut, namesOfSeries, next, nines as ninesOf } from "./pick.js";
import { marks } from "./scale.js";

const DASHES = [[], [9, 4], [3, 3], [11, 3, 2, 3], [6, 2], [2, 5], [14, 5], [9, 3, 2, 3, 2, 3], [1, 3]];

const stepped = uPlot.paths.stepped?.({ align: 1 }) ?? null;

function decade(value: number): boolean {
  const log = Math.log10(value);
  return Math.abs(log - Math.round(log)) < 1e-9;
}

/** Marks of the nines, as many as fit: a label takes up to this width. */
export function ninesAt(from: number, to: number, width: number): number[] {
  const step = Math.max(Math.ceil(((to - from) * 78) / Math.max(width, 78)), 1);
  const at: number[] = [];
  for (let n = 0; n <= to; n += step) if (n >= from) at.push(n);
  return at;
}

/** Description of the axes of charts with stalls over time. */
export const OVER_TIME = "time since the start across, length up, log scale";

/** A place in an image's figure; the image stays for printing. */
export function place(chart: string, height: string, axes: string): HTMLElement | null {
  const figure = document.querySelector<HTMLElement>(`[data-chart="${chart}"]`);
  if (figure === null) return null;
  figure.classList.add("live");
  // The figure no longer scrolls, and its contents take the keys.
  figure.removeAttribute("tabindex");
  const made = element("div", { class: "plot" });
  made.style.height = height;
  // The image's title and axis labels.
  const title = figure.querySelector("svg.chart .title")?.textContent ?? "";
  figure.append(element("p", { class: "note axes" }, /^[A-Z]/.test(axes) ? axes : `${title}: ${axes}`), made);
  return made;
}

/** Scrolls to the selection's details: the timeline and the panel next to it. */
export function reveal(): void {
  document.getElementById("timeline")?.scrollIntoView();
}

export class Percentiles implements Part {
  private plot: uPlot | null = null;
  private readonly note = element("p", { class: "note sample", hidden: "" });
  private shown = "";

  constructor(
    private readonly app: App,
    private readonly root: HTMLElement,
  ) {
    app.add(this);
    root.after(this.note);
    new ResizeObserver(() => this.plot?.setSize({ width: root.clientWidth, height: 380 })).observe(root);
  }

  static of(app: App): Percentiles | null {
    const root = place("percentiles", "auto", "time up, log scale");
    return root === null ? null : new Percentiles(app, root);
  }

  draw(): void {
    const { app, root } = this;
    const { culprit } = app.state;
    const now = `${culprit} ${app.look.ink}`;
    if (now === this.shown) return;
    this.shown = now;
    say(this.note, leftOut(app.run, app.mask, culprit, true));
    const curves = app.run.head.curves
      .filter((curve) => curve.measured === app.run.head.curves[0]?.measured)
      .map(({ name, points, longest }) => ({ name, points, longest }));
    if (culprit !== null) {
      const name = `${app.noun.many} with ${app.run.head.culprits[culprit]?.name ?? ""}`;
      curves.unshift({ name, ...ninesOf(app.run, app.mask, app.run.head.curves[0]?.moments_ns ?? null) });
    }
    // A line ends where fewer than ten values lie above. The longest is a separate mark, with a gap in between.
    const { xs, lines } = aligned(curves);
    const data = [xs, ...lines] as uPlot.AlignedData;
    const ends = curves.map((curve) => xs.indexOf(curve.longest[0]));
    const axis = { stroke: app.look.muted, grid: { stroke: app.look.line, width: 1 }, ticks: { show: false } };
    this.plot?.destroy();
    this.plot = new uPlot(
      {
        width: root.clientWidth,
        height: 380,
        scales: { x: { time: false }, y: { distr: 3 } },
        axes: [
          {
            ...axis,
            label: `percentile${root.clientWidth < 600 ? "" : " (lines end where ten lie above; marks: the longest)"}`,
            labelSize: 22,
            splits: (plot, _axis, from, to) => ninesAt(from, to, plot.bbox.width / devicePixelRatio),
            values: (_plot, at) => at.map((n) => nines(n)),
            space: 70,
          },
          {
            ...axis,
            // Only decades: more lines would hide the curve.
            grid: { ...axis.grid, filter: (_plot, at) => at.map((v) => (decade(v) ? v : null)) },
            size: 70, 
            values: (_plot, at) => at.map((v) => (decade(v) ? ns(v).replace(/\.0+ /, " ") : "")),
          },
        ],
        legend: { markers: { show: false } },
        series: [
          { label: "percentile", value: (_plot, x) => (x === null ? "" : `${(100 * (1 - 10 ** -x)).toFixed(Math.min(Math.ceil(x) + 1, 9))} %`) },
          ...curves.map((curve, at) => ({
            label: curve.name,
            stroke: app.look.series[at % SERIES] ?? "",
            width: 2,
            // A value holds until the next one begins.
            ...(stepped && { paths: stepped }),
            dash: DASHES[at % SERIES] ?? [],
            points: { show: true, size: 8, filter: () => [ends[at] ?? 0] },
            value: (_plot: uPlot, y: number | null) => (y === null ? "" : ns(y)),
          })),
        ],
      },
      data,
      root,
    );
    // The legend's own markers are squares, but a line also differs by its dashes.
    root.querySelectorAll(".u-legend .u-series").forEach((row, at) => {
      if (at > 0) row.querySelector("th")?.prepend(dashed(app.look.series[(at - 1) % SERIES] ?? "", DASHES[(at - 1) % SERIES] ?? []));
    });
  }
}

/** A line segment as the chart draws it. */
function dashed(colour: string, dashes: number[]): SVGElement {
  const make = (name: string, attributes: Record<string, string>): SVGElement => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name) as SVGElement;
    for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
    return made;
  };
  const line = make("line", { x1: "0", y1: "5", x2: "34", y2: "5", stroke: colour, "stroke-width": "2", "stroke-dasharray": dashes.join(" ") });
  const sample = make("svg", { class: "dashes", width: "34", height: "10", "aria-hidden": "true" });
  sample.append(line);
  return sample;
}

/** Shows a text, or nothing. */
function say(note: HTMLElement, text: string): void {
  note.hidden = text === "";
  if (note.textContent !== text) note.textContent = text;
}

export interface Key {
  name: string;
  paint: (draw: CanvasRenderingContext2D) => void;
}

function swatch(paint: Key["paint"]): HTMLCanvasElement {
  const made = element("canvas", { class: "swatch", width: "28", height: "28", "aria-hidden": "true" });
  const draw = made.getContext("2d");
  draw?.setTransform(2, 0, 0, 2, 0, 0);
  if (draw) paint(draw);
  return made;
}

/** The key of the culprits that lead the shown stalls. */
export function culpritKeys(app: App): Key[] {
  return namesOfSeries(app.run, app.mask, app.series).map(({ name, series }) => ({
    name,
    paint: (draw): void => {
      draw.strokeStyle = app.look.series[series] ?? "";
      draw.lineWidth = 1.5;
      draw.beginPath();
      mark(draw, series, 7, 7, 4);
      draw.stroke();
    },
  }));
}

/** A chart on a canvas. With the keyboard focus, arrows go from one item to the next, and Enter acts like a click. */
export abstract class Picture implements Part {
  protected readonly canvas = element("canvas", { tabindex: "0", role: "application" });
  protected readonly tip = element("div", { class: "tip", hidden: "", role: "status" });
  private readonly note = element("p", { class: "note sample", hidden: "" });
  /** The legend of its colours and marks. */
  private readonly keys = element("ul", { class: "keys", hidden: "" });
  /** The item with the keyboard focus. */
  private cursor: [number, number] | null = null;
  /** Whether it shows the whole run while nothing is filtered, although the page does not have all stalls. */
  protected readonly whole: boolean = false;
  protected readonly left = 66;
  protected readonly bottom = 24;
  protected abstract get height(): number;
  private drawn = "";

  constructor(
    protected readonly app: App,
    root: HTMLElement,
  ) {
    root.append(this.canvas, this.tip, this.keys);
    root.after(this.note);
    app.add(this);
    const at = (event: MouseEvent): [number, number] => {
      const box = this.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.canvas.addEventListener("pointermove", (event) => this.hover(...at(event)));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("click", (event) => this.click(...at(event)));
    this.canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !this.pressed(event.key)) return;
      event.preventDefault();
    });
    this.canvas.addEventListener("blur", () => (this.tip.hidden = true));
    new ResizeObserver(() => {
      this.drawn = "";
      app.later();
    }).observe(root);
  }

  protected get width(): number {
    return Math.max(this.canvas.clientWidth - this.left - 8, 50);
  }

  /** Its inputs: it is redrawn when they change. */
  protected abstract key(): string;
  /** Called before the height is read. */
  protected prepare(): void {}
  protected abstract paint(draw: CanvasRenderingContext2D): void;
  protected abstract told(x: number, y: number): string;
  protected abstract click(x: number, y: number): void;
  /** Its contents, each with a function that paints its 14 by 14 pixel symbol. */
  protected keyed(): Key[] {
    return [];
  }
  /** The next item in a direction, from the last one or from none; `null` if there is none. */
  protected abstract next(key: string, from: [number, number] | null): [number, number] | null;

  private pressed(key: string): boolean {
    if (key === "Enter") {
      if (this.cursor === null) return false;
      this.click(...this.cursor);
      return true;
    }
    if (key === "Escape") {
      this.tip.hidden = true;
      this.cursor = null;
      return true;
    }
    if (!key.startsWith("Arrow")) return false;
    const to = this.next(key, this.cursor);
    if (to === null) return false;
    this.cursor = to;
    this.hover(...to);
    return true;
  }

  draw(): void {
    const now = `${this.app.state.culprit} ${this.app.look.ink} ${this.key()}`;
    if (now === this.drawn) return;
    this.drawn = now;
    say(this.note, leftOut(this.app.run, this.app.mask, this.app.state.culprit, this.whole));
    this.prepare();
    const draw = fitted(this.canvas, this.height);
    if (draw === null) return;
    draw.font = "12px system-ui, sans-serif";
    draw.textBaseline = "middle";
    this.paint(draw);
    const keys = this.keyed();
    this.keys.hidden = keys.length === 0;
    this.keys.replaceChildren(...keys.map(({ name, paint }) => element("li", {}, swatch(paint), name)));
    if (this.cursor !== null && !this.tip.hidden) this.hover(...this.cursor);
  }

  private hover(x: number, y: number): void {
    const text = this.told(x, y);
    this.tip.hidden = text === "";
    if (text === "") return;
    this.tip.textContent = text;
    this.tip.style.left = `${Math.max(Math.min(x + 12, this.canvas.clientWidth - this.tip.offsetWidth - 4), 0)}px`;
    this.tip.style.top = `${y + 14}px`;
  }

  protected acrossTime(draw: CanvasRenderingContext2D, duration: number): void {
    const { step, at } = marks({ from: 0, to: duration }, this.width / 90);
    draw.textAlign = "center";
    for (const time of at) {
      const x = Math.round(this.left + (time / duration) * this.width) + 0.5;
      this.rule(draw, x, 6, x, this.height - this.bottom);
      draw.fillStyle = this.app.look.muted;
      const text = moment(time, step);
      const half = draw.measureText(text).width / 2;
      draw.fillText(text, Math.min(x, this.left + this.width + 6 - half), this.height - this.bottom / 2);
    }
  }

  protected rule(draw: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
    draw.strokeStyle = this.app.look.line;
    draw.lineWidth = 1;
    draw.beginPath();
    draw.moveTo(x1, y1);
    draw.lineTo(x2, y2);
    draw.stroke();
  }
}

/** The next shown stall: from the selected one, or from the beginning. */
export function nextStall(app: App, key: string): number {
  const step = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
  const from = app.row >= 0 ? app.row : step > 0 ? -1 : app.run.head.rows;
  const row = next(app.mask, from, step);
  return app.mask[row] === 1 ? row : -1;
}

export class Scatter extends Picture {
  protected get height(): number {
    return 400;
  }

  /** The stall drawn at each spot. */
  private spots = new Map<number, number>();
  private range: [number, number] = [1, 10];

  static of(app: App): Scatter | null {
    const root = place("outliers", "auto", OVER_TIME);
    return root === null ? null : new Scatter(app, root);
  }

  protected key(): string {
    return `${this.app.state.stall}`;
  }

  private place(row: number): [number, number] {
    const { run } = this.app;
    const [low, high] = this.range;
    const up = Math.log((run.length[row] ?? 1) / low) / Math.log(high / low);
    const tall = this.height - this.bottom - 12;
    return [this.left + ((run.start[row] ?? 0) / Math.max(this.app.duration, 1)) * this.width, 8 + (1 - up) * tall];
  }

  private spot(x: number, y: number): number {
    return Math.floor(x / 3) * 4096 + Math.floor(y / 3);
  }

  protected paint(draw: CanvasRenderingContext2D): void {
    const { app, left, width } = this;
    const { run } = app;
    let [low, high] = [Number.POSITIVE_INFINITY, 0];
    for (let row = 0; row < run.head.rows; row++) {
      const length = Math.max(run.length[row] ?? 1, 1);
      low = Math.min(low, length);
      high = Math.max(high, length);
    }
    if (high === 0) return;
    this.range = [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(high * 1.001))];
    this.acrossTime(draw, Math.max(app.duration, 1));
    draw.textAlign = "right";
    for (let length = this.range[0]; length <= this.range[1] * 1.001; length *= 10) {
      const up = Math.log(length / this.range[0]) / Math.log(this.range[1] / this.range[0]);
      const y = 8 + (1 - up) * (this.height - this.bottom - 12);
      this.rule(draw, left, y, left + width, y);
      draw.fillStyle = app.look.muted;
      draw.fillText(ns(length).replace(/\.0+ /, " "), left - 6, y);
    }
    const taken = new Set<number>();
    this.spots = new Map();
    const paths = Array.from({ length: SERIES }, (): number[] => []);
    for (let row = 0; row < run.head.rows; row++) {
      if (app.mask[row] !== 1) continue;
      const leader = run.leader[row] ?? -1;
      const series = leader < 0 ? 0 : (app.series[leader] ?? 0);
      const [x, y] = this.place(row);
      const spot = this.spot(x, y);
      this.spots.set(spot, row);
      // Marks of one series at the same spot are drawn once.
      if (taken.has(spot * SERIES + series)) continue;
      taken.add(spot * SERIES + series);
      paths[series]?.push(x, y);
    }
    draw.lineWidth = 1.2;
    paths.forEach((points, series) => {
      draw.strokeStyle = app.look.series[series] ?? "";
      draw.beginPath();
      for (let at = 0; at < points.length; at += 2) mark(draw, series, points[at] ?? 0, points[at + 1] ?? 0, 3);
      draw.stroke();
    });
    if (app.row >= 0) {
      const [x, y] = this.place(app.row);
      draw.strokeStyle = app.look.ink;
      draw.lineWidth = 2;
      draw.beginPath();
      draw.arc(x, y, 8, 0, 7);
      draw.stroke();
    }
    this.canvas.setAttribute("aria-label", `Every ${app.noun.one} by time and length, ${count(run.head.rows)} of them, with arrow keys one after another; the table of the worst has them by length`);
  }

  protected override keyed(): Key[] {
    return culpritKeys(this.app);
  }

  protected next(key: string): [number, number] | null {
    const row = nextStall(this.app, key);
    if (row < 0) return null;
    this.app.choose(row, false);
    return this.place(row);
  }

  private near(x: number, y: number): number {
    for (let reach = 0; reach <= 3; reach++) {
      for (let dx = -reach; dx <= reach; dx++) {
        for (let dy = -reach; dy <= reach; dy++) {
          const row = this.spots.get(this.spot(x + dx * 3, y + dy * 3));
          if (row !== undefined) return row;
        }
      }
    }
    return -1;
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
    this.app.choose(row, true);
    reveal();
  }
}
