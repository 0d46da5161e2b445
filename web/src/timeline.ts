// The timeline: an overview of the whole run, a lane per CPU or thread, and the frames of the selected stall, all on
// one axis from the whole run down to nanoseconds.

import type { App, Part } from "./app.js";
import { button, cut, element, fit, fitted } from "./dom.js";
import { count, counted, exact, moment, ns, utc, wall } from "./format.js";
import { SERIES } from "./look.js";
import { merged } from "./frames.js";
import { Scroll } from "./lanes.js";
import { at as stallAt, bars, leftOut, next, worst } from "./pick.js";
import { LANES_SHOWN, laneHeight, marks, moved, type View, zoomed } from "./scale.js";

const OVERVIEW = 46;
const AXIS = 24;
const FRAME = 17;
const LEFT = 118;
export class Timeline implements Part {
  readonly root: HTMLElement;
  private readonly canvas = element("canvas", { tabindex: "0", role: "application" });
  private readonly scroll: Scroll;
  private readonly tip = element("div", { class: "tip", hidden: "" });
  private readonly told = element("p", { class: "note now", "aria-live": "polite" });
  private readonly clock: HTMLButtonElement;
  private drag: { x: number; view: View; zoom: boolean; moved: boolean; overview: boolean } | null = null;
  private selecting: [number, number] | null = null;
  /** The width of the longest lane name in 12 px letters. */
  private readonly named: number;
  /** Height of a lane. */
  private readonly lane: number;
  /** Frames too close together to be drawn separately. */
  private crowded = 0;
  /** `search`: the element next to the heading. */
  constructor(
    private readonly app: App,
    heading: string,
    search: HTMLElement[] = [],
  ) {
    const { one } = app.noun;
    this.canvas.setAttribute(
      "aria-label",
      `Timeline. Arrow keys move, plus and minus zoom, n chooses the worst ${one} and then the next, p the one before, Enter zooms to it, Home shows the whole run, Escape lets go; where there are more lanes than are drawn, up and down move through them one by one, page up and page down by screens`,
    );
    this.lane = laneHeight(app.run.head.lanes.length);
    this.scroll = new Scroll(app);
    this.named = 16 + 7 * Math.max(0, ...app.run.head.lanes.map((name) => name.length));
    const zoom = (factor: number) => (): void => {
      const { from, to } = app.view;
      app.set({ view: zoomed(app.view, (from + to) / 2, factor, app.duration) });
    };
    this.clock = button("Since the start", "times since the start, or of the day", () => app.set({ wall: !app.state.wall }));
    this.root = element(
      "section",
      { class: "timeline", ...(app.addressed && { id: "timeline" }) },
      element("div", { class: "tools" }, element("h2", {}, heading), ...search),
      element(
        "div",
        { class: "tools", role: "toolbar", "aria-label": heading },
        button("Whole run", "Home", () => app.set({ view: null })),
        button("+", "zoom in", zoom(0.5)),
        button("\u2212", "zoom out", zoom(2)),
        button("\u25c0", "earlier", () => app.set({ view: moved(app.view, -0.4, app.duration) })),
        button("\u25b6", "later", () => app.set({ view: moved(app.view, 0.4, app.duration) })),
        button(`Worst ${one}`, "the longest in view", () => this.worst()),
        button(`\u25c0 ${one}`, "the one before (p)", () => this.step(-1)),
        button(`${one} \u25b6`, "the next one (n)", () => this.step(1)),
        button(`Zoom to ${one}`, "Enter", () => app.choose(app.row, true)),
        this.clock,
      ),
      this.scroll.root,
      element("div", { class: "canvas" }, this.canvas, this.tip),
      this.told,
      hints(app),
    );
    this.listen();
    app.add(this);
  }

  private worst(): void {
    const { app } = this;
    const row = worst(app.run, app.mask, app.view);
    if (row >= 0) app.choose(row, false);
  }

  /** Selects the next or previous stall in time; without a selection, the worst one. */
  step(by: 1 | -1): void {
    const { app } = this;
    if (app.row < 0) return this.worst();
    app.choose(next(app.mask, app.row, by), false);
  }

  private get width(): number {
    return Math.max(this.canvas.clientWidth - this.left, 50);
  }

  private get left(): number {
    const [least, most] = this.canvas.clientWidth < 600 ? [64, 112] : [LEFT, 200];
    return Math.min(Math.max(this.named, least), most);
  }

  private get laneCount(): number {
    return Math.min(this.app.run.head.lanes.length, LANES_SHOWN);
  }

  /** The lanes that are drawn. */
  private get lanes(): number[] {
    return Array.from({ length: this.laneCount }, (_, at) => this.app.state.lane + at);
  }

  private frameRows(): number {
    const { app } = this;
    const frames = app.state.stall === null ? undefined : app.run.frames.get(app.state.stall);
    if (frames === undefined) return 0;
    return Math.min(frames.reduce((deepest, frame) => Math.max(deepest, frame.depth), 0) + 1, 12);
  }

  draw(): void {
    const { app, canvas } = this;
    const rows = this.frameRows();
    const height = OVERVIEW + AXIS + this.lane * this.laneCount + (rows > 0 ? FRAME * rows + 26 : 0) + 4;
    const draw = fitted(canvas, height);
    if (draw === null) return;
    this.clock.textContent = app.state.wall ? "Time of day (UTC)" : "Since the start";
    draw.font = "12px system-ui, sans-serif";
    draw.textBaseline = "middle";
    this.drawOverview(draw);
    this.drawAxis(draw, height);
    for (const lane of this.lanes) this.drawLane(draw, lane);
    this.scroll.draw();
    this.crowded = 0;
    if (rows > 0) this.drawFrames(draw, OVERVIEW + AXIS + this.lane * this.laneCount, rows);
    if (this.selecting !== null) {
      const [a, b] = this.selecting;
      draw.fillStyle = app.look.accent;
      draw.globalAlpha = 0.2;
      draw.fillRect(Math.min(a, b), OVERVIEW, Math.abs(b - a), height - OVERVIEW);
      draw.globalAlpha = 1;
    }
    this.tellView();
  }

  private tellView(): void {
    const { app } = this;
    const { from, to } = app.view;
    let [shown, all] = [0, 0];
    for (let row = 0; row < app.run.head.rows; row++) {
      const start = app.run.start[row] ?? 0;
      if (app.mask[row] !== 1) continue;
      all++;
      if (start <= to && start + (app.run.length[row] ?? 0) >= from) shown++;
    }
    const left = leftOut(app.run, app.mask, app.state.culprit, false);
    const rest = left === "" ? "" : ` ${left}`;
    const framed = app.run.frames.size;
    const framesOfAll = framed >= app.run.head.run.stalls;
    const frames = framed === 0 || framesOfAll || app.run.head.served ? "" : ` Of ${counted(framed, app.noun)} the frames are in this page (the longest, and some of each culprit); those of the others lie in the run only.`;
    const filter = app.state.culprit === null ? "" : ` with ${app.run.head.culprits[app.state.culprit]?.name ?? ""}`;
    const some = shown < all ? `${count(shown)} of ` : "";
    const { slow } = app.run.head.run;
    const recorded = slow === undefined ? "" : ` ${count(app.run.head.run.stalls)} of ${count(slow)} slow messages were recorded one by one (the rest were only counted).`;
    const text = `${ns(to - from)} in view, ${some}${counted(all, app.noun)}${filter}.${recorded}${rest}${frames}${this.crowded > 0 ? ` Zoom in to tell ${count(this.crowded)} frames of the chosen ${app.noun.one} apart.` : ""}`;
    if (this.told.textContent !== text) this.told.textContent = text;
  }

  /** Height of a bar by its length, on a log scale. */
  private tall(length: number): number {
    const [lowest, highest] = this.app.lengths;
    const range = Math.log(highest / lowest) || 1;
    return 0.15 + 0.85 * Math.min(Math.max(Math.log(Math.max(length, 1) / lowest) / range, 0), 1);
  }

  private drawOverview(draw: CanvasRenderingContext2D): void {
    const { app, left, width } = this;
    const whole = { from: 0, to: Math.max(app.duration, 10) };
    draw.fillStyle = app.look.soft;
    draw.fillRect(left, 0, width, OVERVIEW - 6);
    draw.fillStyle = app.look.muted;
    draw.fillText("run", 4, (OVERVIEW - 6) / 2);
    const tallest = new Float64Array(Math.ceil(width) + 1);
    for (let lane = 0; lane < app.run.head.lanes.length; lane++) {
      bars(app.run, app.lanes, lane, app.mask, whole, width, (row, x) => {
        const at = Math.floor(x);
        tallest[at] = Math.max(tallest[at] ?? 0, app.run.length[row] ?? 0);
      });
    }
    draw.fillStyle = app.look.muted;
    tallest.forEach((length, x) => {
      if (length === 0) return;
      const h = this.tall(length) * (OVERVIEW - 10);
      draw.fillRect(left + x, OVERVIEW - 6 - h, 1, h);
    });
    const { from, to } = app.view;
    const [a, b] = [left + (from / whole.to) * width, left + (to / whole.to) * width];
    draw.strokeStyle = app.look.accent;
    draw.lineWidth = 2;
    draw.strokeRect(a, 1, Math.max(b - a, 2), OVERVIEW - 8);
  }

  private x(at: number): number {
    const { from, to } = this.app.view;
    return this.left + ((at - from) / (to - from)) * this.width;
  }

  private time(x: number): number {
    const { from, to } = this.app.view;
    return from + ((x - this.left) / this.width) * (to - from);
  }

  private drawAxis(draw: CanvasRenderingContext2D, height: number): void {
    const { app } = this;
    const { step, at } = marks(app.view, this.width / 130);
    draw.lineWidth = 1;
    draw.textAlign = "center";
    for (const mark of at) {
      const x = Math.round(this.x(mark)) + 0.5;
      draw.strokeStyle = app.look.line;
      draw.beginPath();
      draw.moveTo(x, OVERVIEW + AXIS - 5);
      draw.lineTo(x, height);
      draw.stroke();
      draw.fillStyle = app.look.muted;
      const text = app.state.wall
        ? wall(app.run.beganNs + BigInt(Math.round(mark)), step)
        : moment(mark, step);
      const half = draw.measureText(text).width / 2;
      draw.fillText(text, Math.min(Math.max(x, this.left + half), this.left + this.width - half), OVERVIEW + AXIS / 2 - 2);
    }
    draw.textAlign = "left";
  }

  private drawLane(draw: CanvasRenderingContext2D, lane: number): void {
    const { app, left, width } = this;
    const top = OVERVIEW + AXIS + (lane - app.state.lane) * this.lane;
    const bottom = top + this.lane - 4;
    draw.fillStyle = app.look.ink;
    draw.save();
    draw.beginPath();
    draw.rect(0, top, left - 6, this.lane);
    draw.clip();
    draw.fillText(fit(draw, app.run.head.lanes[lane] ?? "", left - 12), 4, top + this.lane / 2);
    draw.restore();
    draw.fillStyle = app.look.line;
    draw.fillRect(left, bottom, width, 1);
    draw.save();
    draw.beginPath();
    draw.rect(left, top, width, this.lane);
    draw.clip();
    const chosen = app.row;
    // A label ends at the next bar: messages that waited together overlap.
    let labelled: { row: number; x: number; y: number; w: number; h: number } | null = null;
    const put = (until: number): void => {
      if (labelled !== null) {
        const { row, x, y, w, h } = labelled;
        this.label(draw, x, y, Math.min(w, until - x), h, row);
      }
      labelled = null;
    };
    bars(app.run, app.lanes, lane, app.mask, app.view, width, (row, x, w) => {
      put(left + x);
      const h = this.tall(app.run.length[row] ?? 1) * (this.lane - 8);
      const leader = app.run.leader[row] ?? -1;
      const series = leader < 0 ? 0 : (app.series[leader] ?? 0);
      draw.fillStyle = w >= 4 ? (app.look.fills[series] ?? "") : (app.look.series[series] ?? "");
      draw.fillRect(left + x, bottom - h, Math.max(w, 1), h);
      if (row === chosen) {
        draw.strokeStyle = app.look.ink;
        draw.lineWidth = 2;
        draw.strokeRect(left + x - 1, bottom - h - 1, Math.max(w, 1) + 2, h + 2);
      }
      if (w > 60) labelled = { row, x: left + x, y: bottom - h, w, h };
    });
    put(left + width);
    draw.restore();
  }

  /** A bar's culprit and length inside the bar, if they fit. */
  private label(draw: CanvasRenderingContext2D, x: number, y: number, w: number, h: number, row: number): void {
    const { app, left, width } = this;
    const leader = app.run.leader[row] ?? -1;
    const name = leader < 0 ? "" : `${app.run.head.culprits[leader]?.name ?? ""}, `;
    const from = Math.max(x, left) + 4;
    const room = Math.min(x + w, left + width) - from - 4;
    this.inside(draw, `${name}${ns(app.run.length[row] ?? 0)}`, from, y + h / 2, room);
  }

  private inside(draw: CanvasRenderingContext2D, text: string, x: number, y: number, room: number): void {
    const { app } = this;
    const shown = cut(draw, text, room);
    if (shown === "") return;
    const wide = draw.measureText(shown).width;
    draw.fillStyle = app.look.paper;
    draw.globalAlpha = 0.85;
    draw.fillRect(x - 2, y - 8, wide + 4, 16);
    draw.globalAlpha = 1;
    draw.fillStyle = app.look.ink;
    draw.fillText(shown, x, y + 1);
  }

  private drawFrames(draw: CanvasRenderingContext2D, top: number, rows: number): void {
    const { app, left, width } = this;
    const frames = app.run.frames.get(app.state.stall ?? -1) ?? [];
    const start = app.run.start[app.row] ?? 0;
    const end = start + (app.run.length[app.row] ?? 0);
    draw.fillStyle = app.look.muted;
    draw.fillText("frames", 4, top + 22);
    draw.save();
    draw.beginPath();
    draw.rect(left, top, width, FRAME * rows + 26);
    draw.clip();
    draw.fillStyle = app.look.soft;
    draw.fillRect(this.x(start), top, Math.max(this.x(end) - this.x(start), 1), FRAME * rows + 22);
    let hidden = 0;
    for (const { frame, of, from: begin, to: close } of merged(frames.filter((frame) => frame.depth < rows), (app.view.to - app.view.from) / width)) {
      const y = top + 12 + frame.depth * FRAME;
      const x = this.x(start + begin);
      if (of > 1) {
        // One place for frames too small to distinguish, without a culprit's colour.
        if (this.x(start + close) >= left && x <= left + width) hidden += of;
        draw.fillStyle = app.look.muted;
        draw.fillRect(x, y + 3, Math.max(this.x(start + close) - x, 2), FRAME - 8);
        continue;
      }
      if (frame.end_ns === null) {
        draw.fillStyle = app.look.ink;
        draw.fillRect(x, y - 2, 1.5, FRAME);
        continue;
      }
      const w = Math.max(this.x(start + frame.end_ns) - x, 1);
      const series = app.series[frame.culprit ?? -1] ?? SERIES - 1;
      draw.fillStyle = (w >= 4 ? app.look.fills : app.look.series)[series] ?? "";
      draw.fillRect(x, y, w, FRAME - 2);
      const from = Math.max(x, left) + 4;
      const room = Math.min(x + w, left + width) - from - 4;
      if (room > 30) this.inside(draw, `${frame.name} ${ns(frame.end_ns - frame.start_ns)}`, from, y + FRAME / 2 - 1, room);
    }
    if (hidden > 0) {
      const said = `zoom in to tell ${count(hidden)} frames apart`;
      const middle = Math.max(this.x(start), left) + 8;
      const fits = middle + draw.measureText(said).width + 8 < left + width;
      this.inside(draw, said, fits ? middle : left + 8, top + FRAME * rows + 17, width - 16);
    }
    this.crowded = hidden;
    draw.restore();
  }

  private laneAt(y: number): number {
    const at = Math.floor((y - OVERVIEW - AXIS) / this.lane);
    return at >= 0 && at < this.laneCount ? this.app.state.lane + at : -1;
  }

  private stallAt(x: number, y: number): number {
    const lane = this.laneAt(y);
    const { from, to } = this.app.view;
    if (lane < 0 || x < this.left) return -1;
    const reach = ((to - from) / this.width) * 5;
    return stallAt(this.app.run, this.app.lanes, lane, this.app.mask, this.time(x), reach);
  }

  private listen(): void {
    const { app, canvas } = this;
    const place = (event: MouseEvent): [number, number] => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (event) => {
      const [x, y] = place(event);
      const overview = y < OVERVIEW;
      // Dragging with a finger moves the view, as everywhere; with a mouse, Shift does that.
      const zoom = !overview && !event.shiftKey && event.pointerType !== "touch";
      this.drag = { x, view: app.view, zoom, moved: false, overview };
      canvas.setPointerCapture(event.pointerId);
      if (overview) this.moveTo(x);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      const { drag } = this;
      if (drag === null) return this.hover(x, y);
      if (Math.abs(x - drag.x) > 3) drag.moved = true;
      if (!drag.moved) return;
      this.tip.hidden = true;
      if (drag.overview) return this.moveTo(x);
      if (drag.zoom) {
        this.selecting = [drag.x, x];
        return app.later();
      }
      app.set({ view: moved(drag.view, (drag.x - x) / this.width, app.duration) });
    });
    canvas.addEventListener("pointerup", (event) => {
      const [x, y] = place(event);
      const { drag } = this;
      this.drag = null;
      if (drag === null) return;
      if (this.selecting !== null) {
        const [a, b] = this.selecting.map((at) => this.time(at)).sort((one, two) => one - two);
        this.selecting = null;
        return app.set({ view: { from: a ?? 0, to: b ?? 0 } });
      }
      if (drag.moved || drag.overview) return;
      const row = this.stallAt(x, y);
      if (row >= 0) app.choose(row, false);
    });
    canvas.addEventListener("dblclick", (event) => {
      const row = this.stallAt(...place(event));
      if (row >= 0) app.choose(row, true);
    });
    canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    canvas.addEventListener(
      "wheel",
      (event) => {
        // Over the lane names, the wheel scrolls through them while there are more in that direction.
        if (place(event)[0] < this.left && !event.ctrlKey && this.scroll.by(Math.sign(event.deltaY) * 3)) return event.preventDefault();
        // The page scrolls unless the timeline has the keyboard focus or a zoom is requested.
        if (!(event.ctrlKey || event.metaKey || document.activeElement === canvas)) return;
        event.preventDefault();
        const [x] = place(event);
        if (event.shiftKey) return app.set({ view: moved(app.view, Math.sign(event.deltaY + event.deltaX) * 0.1, app.duration) });
        app.set({ view: zoomed(app.view, this.time(Math.max(x, this.left)), 1.0018 ** event.deltaY, app.duration) });
      },
      { passive: false },
    );
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !this.key(event.key, event.shiftKey)) return;
      event.preventDefault();
    });
  }

  private key(key: string, fast: boolean): boolean {
    const { app } = this;
    const { from, to } = app.view;
    const chosen = app.row >= 0 ? (app.run.start[app.row] ?? 0) + (app.run.length[app.row] ?? 0) / 2 : -1;
    const middle = chosen >= from && chosen <= to ? chosen : (from + to) / 2;
    switch (key) {
      case "ArrowLeft":
        app.set({ view: moved(app.view, fast ? -0.8 : -0.15, app.duration) });
        return true;
      case "ArrowRight":
        app.set({ view: moved(app.view, fast ? 0.8 : 0.15, app.duration) });
        return true;
      case "+":
      case "=":
        app.set({ view: zoomed(app.view, middle, 0.5, app.duration) });
        return true;
      case "-":
        app.set({ view: zoomed(app.view, middle, 2, app.duration) });
        return true;
      case "Home":
        app.set({ view: null });
        return true;
      case "ArrowDown":
        return this.scroll.by(1);
      case "ArrowUp":
        return this.scroll.by(-1);
      case "PageDown":
        return this.scroll.by(LANES_SHOWN);
      case "PageUp":
        return this.scroll.by(-LANES_SHOWN);
      case "n":
        this.step(1);
        return true;
      case "p":
        this.step(-1);
        return true;
      case "Enter":
        if (app.row >= 0) app.choose(app.row, true);
        return true;
      case "Escape":
        app.set({ stall: null });
        return true;
      default:
        return false;
    }
  }

  private moveTo(x: number): void {
    const { app } = this;
    const half = (app.view.to - app.view.from) / 2;
    const at = ((x - this.left) / this.width) * app.duration;
    app.set({ view: { from: at - half, to: at + half } });
  }

  private hover(x: number, y: number): void {
    const { app, tip } = this;
    const row = this.stallAt(x, y);
    if (row < 0) {
      tip.hidden = true;
      return;
    }
    const leader = app.run.leader[row] ?? -1;
    const start = app.run.start[row] ?? 0;
    tip.textContent = [
      exact(app.run.length[row] ?? 0),
      leader < 0 ? "" : (app.run.head.culprits[leader]?.name ?? ""),
      app.state.wall ? utc(app.run.beganNs + BigInt(Math.round(start))) : moment(start, 1000),
    ]
      .filter((text) => text !== "")
      .join(" \u00b7 ");
    tip.hidden = false;
    tip.style.left = `${Math.max(Math.min(x + 12, this.canvas.clientWidth - tip.offsetWidth - 4), 0)}px`;
    tip.style.top = `${y + 14}px`;
  }
}

/** Help about mouse and keys. */
function hints({ noun }: App): HTMLElement {
  const key = (name: string): HTMLElement => element("kbd", {}, name);
  const mouse = element("span", { class: "mouse" }, `Drag to zoom in; with Shift, to move. Click a ${noun.one} to see its parts, twice to zoom to it. Ctrl and wheel zoom. `);
  const touch = element("span", { class: "touch" }, `Drag to move, tap a ${noun.one} to see its parts.`);
  const keys = element(
    "span",
    { class: "mouse" },
    "Keys: ",
    key("n"),
    " the worst, then the next; ",
    key("p"),
    " the one before; in the timeline ",
    key("+"),
    " ",
    key("\u2212"),
    " ",
    key("\u2190"),
    " ",
    key("\u2192"),
    " ",
    key("Enter"),
    " ",
    key("Home"),
    " ",
    key("Esc"),
    "; ",
    key("/"),
    " search.",
  );
  return element("p", { class: "note hints" }, mouse, touch, keys);
}
