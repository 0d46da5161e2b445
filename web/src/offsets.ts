// The map of offsets: when within each unit of time stalls begin. A period appears as a horizontal line.

import type { App } from "./app.js";
import { type Key, Picture, place, reveal } from "./charts.js";
import { count, counted, moment, ns } from "./format.js";
import { shade, shades } from "./pick.js";
import { around } from "./scale.js";

/** Number in a cell with the strongest colour if no cell has more, so that single stalls are faint. */
const FEW = 6;
const UNITS = [1e9, 1e8, 1e7];

export class Offsets extends Picture {
  protected get height(): number {
    return 400;
  }

  private readonly unit: number;
  private readonly each: number;
  private readonly columns: number;
  private readonly rows: number;
  private counts = new Uint32Array(0);
  private most = FEW;

  constructor(app: App, root: HTMLElement) {
    super(app, root);
    const known = app.run.head.offsets;
    this.unit = known?.unit_ns ?? UNITS.find((unit) => app.duration / unit >= 10) ?? 1e7;
    const units = Math.max(Math.ceil(app.duration / this.unit), 1);
    this.each = known?.units_per_column ?? Math.ceil(units / 240);
    this.columns = known?.columns ?? Math.ceil(units / this.each);
    this.rows = known?.rows ?? 100;
  }

  static of(app: App): Offsets | null {
    const root = place("offsets", "auto", "time since the start across, offset down");
    return root === null ? null : new Offsets(app, root);
  }

  protected override readonly whole = true;

  protected key(): string {
    return "";
  }

  protected paint(draw: CanvasRenderingContext2D): void {
    const { app, left, width, rows, columns } = this;
    const { run } = app;
    this.counts = new Uint32Array(columns * rows);
    let most = 0;
    // If the run has more stalls than the page, its own counts of all of them.
    const all = app.state.culprit === null ? run.head.offsets : undefined;
    if (all !== undefined) {
      this.counts = Uint32Array.from(all.counts);
      most = this.counts.reduce((most, n) => Math.max(most, n), 0);
    }
    for (let row = 0; all === undefined && row < run.head.rows; row++) {
      if (app.mask[row] !== 1) continue;
      const start = run.start[row] ?? 0;
      const column = Math.min(Math.floor(start / this.unit / this.each), columns - 1);
      const at = column * rows + Math.floor(((start % this.unit) / this.unit) * rows);
      this.counts[at] = (this.counts[at] ?? 0) + 1;
      most = Math.max(most, this.counts[at] ?? 0);
    }
    const across = columns * this.each * this.unit;
    this.most = Math.max(most, FEW);
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
        draw.fillStyle = app.look.heat[shade(n, Math.max(most, FEW))] ?? "";
        const x = left + (column / columns) * width;
        const y = 6 + (row / rows) * tall;
        draw.fillRect(x, y, width / columns + 0.4, tall / rows + 0.4);
      }
    }
    // After the end nothing could begin, which is not the same as quiet.
    const after = this.firstAfter();
    const [x, y] = [left + ((columns - 1) / columns) * width, 6 + (after / rows) * tall];
    const [w, h] = [width / columns, tall - (after / rows) * tall];
    if (h > 0) {
      draw.fillStyle = app.look.soft;
      draw.fillRect(x, y, w, h);
      for (let line = y + 3; line < y + h; line += 5) this.rule(draw, x, line, x + w, line);
    }
    this.canvas.setAttribute("aria-label", `When within each ${ns(this.unit)} ${counted(this.counts.reduce((sum, n) => sum + n, 0), app.noun)} begin, with arrow keys cell by cell; the table below has the fullest offsets`);
  }

  protected override keyed(): Key[] {
    const { heat, line, soft } = this.app.look;
    const filled = (colour: string) => (draw: CanvasRenderingContext2D): void => {
      draw.fillStyle = colour;
      draw.fillRect(0, 1, 14, 12);
    };
    const keys = shades(this.counts, this.most).map(({ shade, from, to }, at) => {
      const range = from >= to ? count(from) : `${count(from)}\u2013${count(to)}`;
      return { name: at === 0 ? `${range} ${to === 1 ? this.app.noun.one : this.app.noun.many} in a field` : range, paint: filled(heat[shade] ?? "") };
    });
    if (this.firstAfter() >= this.rows) return keys;
    const beyond = (draw: CanvasRenderingContext2D): void => {
      filled(soft)(draw);
      for (const y of [3.5, 8.5]) {
        draw.fillStyle = line;
        draw.fillRect(0, y, 14, 1);
      }
    };
    return [...keys, { name: "after the end", paint: beyond }];
  }

  /** The first row of the last column after the end of the run. */
  private firstAfter(): number {
    const left = this.app.duration - (this.columns - 1) * this.each * this.unit;
    return Math.min(Math.ceil((Math.max(left, 0) / this.unit) * this.rows), this.rows);
  }

  protected next(key: string, from: [number, number] | null): [number, number] | null {
    const [column, row] = (from === null ? null : this.cell(...from)) ?? [0, 0];
    const [right, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key] ?? [0, 0];
    const [x, y] = from === null ? [0, 0] : [column + (right ?? 0), row + (down ?? 0)];
    if (x < 0 || y < 0 || x >= this.columns || y >= this.rows) return from;
    const tall = this.height - this.bottom - 8;
    return [this.left + ((x + 0.5) / this.columns) * this.width, 6 + ((y + 0.5) / this.rows) * tall];
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
    if (column === this.columns - 1 && row >= this.firstAfter()) return "after the end of the run";
    const n = this.counts[column * this.rows + row] ?? 0;
    const step = this.unit / this.rows;
    return `${counted(n, this.app.noun)} \u00b7 from ${moment(column * this.each * this.unit, this.unit)}, offset ${ns(row * step)} to ${ns((row + 1) * step)}`;
  }

  protected click(x: number, y: number): void {
    const cell = this.cell(x, y);
    if (cell === null) return;
    const [column, row] = cell;
    const step = this.unit / this.rows;
    const at = column * this.each * this.unit + row * step;
    this.app.set({ view: around(at, this.each === 1 ? step : this.each * this.unit, this.app.duration) });
    reveal();
  }
}
