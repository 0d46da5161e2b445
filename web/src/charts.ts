// The charts that follow the filter: percentiles, the scatter of stalls, the map of offsets.

import uPlot from "uplot";
import type { App, Part } from "./app.js";
import { element, fitted } from "./dom.js";
import { count, exact, moment, nines, ns, stalls } from "./format.js";
import { mark, SERIES } from "./look.js";
import { nines as ninesOf } from "./pick.js";
import { around, marks } from "./scale.js";

const DASHES = [[], [9, 4], [3, 3], [11, 3, 2, 3], [6, 2], [2, 5], [14, 5]];

function decade(value: number): boolean {
  const log = Math.log10(value);
  return Math.abs(log - Math.round(log)) < 1e-9;
}

/** A place in the figure of an image; the image stays for printing. */
export function place(chart: string, height: string): HTMLElement | null {
  const figure = document.querySelector<HTMLElement>(`[data-chart="${chart}"]`);
  if (figure === null) return null;
  figure.classList.add("live");
  const made = element("div", { class: "plot" });
  made.style.height = height;
  figure.append(made);
  return made;
}

export class Percentiles implements Part {
  private plot: uPlot | null = null;
  private shown = "";

  constructor(
    private readonly app: App,
    private readonly root: HTMLElement,
  ) {
    app.add(this);
    new ResizeObserver(() => this.plot?.setSize({ width: root.clientWidth, height: 380 })).observe(root);
  }

  static of(app: App): Percentiles | null {
    const root = place("percentiles", "auto");
    return root === null ? null : new Percentiles(app, root);
  }

  draw(): void {
    const { app, root } = this;
    const { culprit } = app.state;
    const now = `${culprit} ${app.look.ink}`;
    if (now === this.shown) return;
    this.shown = now;
    const curves = app.run.head.curves
      .filter((curve) => curve.measured === app.run.head.curves[0]?.measured)
      .map(({ name, points, longest }) => ({ name, points, longest }));
    if (culprit !== null) {
      const name = `stalls with ${app.run.head.culprits[culprit]?.name ?? ""}`;
      curves.unshift({ name, ...ninesOf(app.run, app.mask) });
    }
    // A line ends where ten lie above; the longest is a mark apart from it, so that nothing is there between.
    const lines = curves.map(({ points, longest }) => {
      const line = new Map<number, number | null>(points);
      const end = points[points.length - 1]?.[0] ?? 0;
      if (longest[0] > end) line.set((end + longest[0]) / 2, null);
      return line.set(...longest);
    });
    const xs = [...new Set(lines.flatMap((line) => [...line.keys()]))].sort((a, b) => a - b);
    // Where a line has no point of its own it goes on; only null is a gap.
    const data = [xs, ...lines.map((line) => xs.map((x) => line.get(x)))] as uPlot.AlignedData;
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
            label: "percentile (lines end where ten lie above; marks: the longest)",
            labelSize: 22,
            splits: (_plot, _axis, from, to) => Array.from({ length: Math.floor(to) + 1 }, (_, at) => at).filter((at) => at >= from),
            values: (_plot, at) => at.map((n) => nines(n)),
            space: 70,
          },
          {
            ...axis,
            // Decades alone: the lines between them would be more than the curve.
            grid: { ...axis.grid, filter: (_plot, at) => at.map((v) => (decade(v) ? v : null)) },
            size: 70, 
            values: (_plot, at) => at.map((v) => (decade(v) ? ns(v).replace(/\.0+ /, " ") : "")),
          },
        ],
        series: [
          { label: "percentile", value: (_plot, x) => (x === null ? "" : `${(100 * (1 - 10 ** -x)).toFixed(Math.min(Math.ceil(x) + 1, 9))} %`) },
          ...curves.map((curve, at) => ({
            label: curve.name,
            stroke: app.look.series[at % SERIES] ?? "",
            width: 2,
            dash: DASHES[at % SERIES] ?? [],
            points: { show: true, size: 8, filter: () => [ends[at] ?? 0] },
            value: (_plot: uPlot, y: number | null) => (y === null ? "" : ns(y)),
          })),
        ],
      },
      data,
      root,
    );
  }
}

export abstract class Picture implements Part {
  protected readonly canvas = element("canvas", { tabindex: "0", role: "img" });
  protected readonly tip = element("div", { class: "tip", hidden: "" });
  protected readonly left = 66;
  protected readonly bottom = 24;
  protected abstract get height(): number;
  private drawn = "";

  constructor(
    protected readonly app: App,
    root: HTMLElement,
  ) {
    root.append(this.canvas, this.tip);
    app.add(this);
    const at = (event: MouseEvent): [number, number] => {
      const box = this.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.canvas.addEventListener("pointermove", (event) => this.hover(...at(event)));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("click", (event) => this.click(...at(event)));
    new ResizeObserver(() => {
      this.drawn = "";
      app.later();
    }).observe(root);
  }

  protected get width(): number {
    return Math.max(this.canvas.clientWidth - this.left - 8, 50);
  }

  /** What it depends on: it is drawn when that has changed. */
  protected abstract key(): string;
  /** Before the height is asked for. */
  protected prepare(): void {}
  protected abstract paint(draw: CanvasRenderingContext2D): void;
  protected abstract told(x: number, y: number): string;
  protected abstract click(x: number, y: number): void;

  draw(): void {
    const now = `${this.app.state.culprit} ${this.app.look.ink} ${this.key()}`;
    if (now === this.drawn) return;
    this.drawn = now;
    this.prepare();
    const draw = fitted(this.canvas, this.height);
    if (draw === null) return;
    draw.font = "12px system-ui, sans-serif";
    draw.textBaseline = "middle";
    this.paint(draw);
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

export class Scatter extends Picture {
  protected get height(): number {
    return 400;
  }

  /** Which stall was drawn at which spot. */
  private spots = new Map<number, number>();
  private range: [number, number] = [1, 10];

  static of(app: App): Scatter | null {
    const root = place("outliers", "auto");
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
      // Marks of one series that would lie on one another are one.
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
    this.canvas.setAttribute("aria-label", `Every stall by time and length, ${count(run.head.rows)} of them; the table of the worst has them by length`);
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
    if (row >= 0) this.app.choose(row, true);
  }
}

const UNITS = [1e9, 1e8, 1e7];

export class Offsets extends Picture {
  protected get height(): number {
    return 400;
  }

  private readonly unit: number;
  private readonly each: number;
  private readonly columns: number;
  private readonly rows = 100;
  private counts = new Uint32Array(0);

  constructor(app: App, root: HTMLElement) {
    super(app, root);
    this.unit = UNITS.find((unit) => app.duration / unit >= 10) ?? 1e7;
    const units = Math.max(Math.ceil(app.duration / this.unit), 1);
    this.each = Math.ceil(units / 240);
    this.columns = Math.ceil(units / this.each);
  }

  static of(app: App): Offsets | null {
    const root = place("offsets", "auto");
    return root === null ? null : new Offsets(app, root);
  }

  protected key(): string {
    return "";
  }

  protected paint(draw: CanvasRenderingContext2D): void {
    const { app, left, width, rows, columns } = this;
    const { run } = app;
    this.counts = new Uint32Array(columns * rows);
    let most = 0;
    for (let row = 0; row < run.head.rows; row++) {
      if (app.mask[row] !== 1) continue;
      const start = run.start[row] ?? 0;
      const column = Math.min(Math.floor(start / this.unit / this.each), columns - 1);
      const at = column * rows + Math.floor(((start % this.unit) / this.unit) * rows);
      this.counts[at] = (this.counts[at] ?? 0) + 1;
      most = Math.max(most, this.counts[at] ?? 0);
    }
    const across = columns * this.each * this.unit;
    this.acrossTime(draw, across);
    const tall = this.height - this.bottom - 8;
    draw.textAlign = "right";
    for (let share = 0; share <= 1; share += 0.25) {
      draw.fillStyle = app.look.muted;
      draw.fillText(ns(share * this.unit).replace(/\.0+ /, " "), left - 6, Math.min(8 + share * tall, this.height - this.bottom));
    }
    for (let column = 0; column < columns; column++) {
      for (let row = 0; row < rows; row++) {
        const n = this.counts[column * rows + row] ?? 0;
        if (n === 0) continue;
        const step = Math.ceil((Math.log1p(n) / Math.log1p(most)) * 8) - 1;
        draw.fillStyle = app.look.heat[Math.min(Math.max(step, 0), 7)] ?? "";
        const x = left + (column / columns) * width;
        const y = 6 + (row / rows) * tall;
        draw.fillRect(x, y, width / columns + 0.4, tall / rows + 0.4);
      }
    }
    this.canvas.setAttribute("aria-label", `When within each ${ns(this.unit)} stalls begin; the table below has the fullest offsets`);
  }

  private cell(x: number, y: number): [number, number] | null {
    const column = Math.floor(((x - this.left) / this.width) * this.columns);
    const row = Math.floor(((y - 6) / (this.height - this.bottom - 8)) * this.rows);
    return column >= 0 && column < this.columns && row >= 0 && row < this.rows ? [column, row] : null;
  }

  protected told(x: number, y: number): string {
    const cell = this.cell(x, y);
    if (cell === null) return "";
    const [column, row] = cell;
    const n = this.counts[column * this.rows + row] ?? 0;
    const step = this.unit / this.rows;
    return `${stalls(n)} \u00b7 from ${moment(column * this.each * this.unit, this.unit)}, offset ${ns(row * step)} to ${ns((row + 1) * step)}`;
  }

  protected click(x: number, y: number): void {
    const cell = this.cell(x, y);
    if (cell === null) return;
    const [column, row] = cell;
    const step = this.unit / this.rows;
    const at = column * this.each * this.unit + row * step;
    this.app.set({ view: around(at, this.each === 1 ? step : this.each * this.unit, this.app.duration) });
    document.getElementById("timeline")?.scrollIntoView();
  }
}
