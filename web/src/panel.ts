// Details of the selected stall: time and place, culprits, senders, and its frames.

import type { App, Part } from "./app.js";
import { ask, type ServedStall } from "./data.js";
import { button, copier, element } from "./dom.js";
import { capital, count, exact, moment, ns, percent, utc } from "./format.js";
import { owned } from "./frames.js";
import { type Piece, summed, sumOf } from "./parts.js";
import { written } from "./state.js";

/** Why there are no frames: below culprits with the sums of their turns. */
const LOST = "its trace was not kept: the order of the turns above is lost.";

export class Panel implements Part {
  readonly root: HTMLElement;
  private shown: number | null | undefined = undefined;
  private asked: number | null = null;
  /** The server's stalls; a failure is a text. */
  private readonly served = new Map<number, ServedStall | string>();

  /** `of`: the run's name, where there are panels of several. */
  constructor(
    private readonly app: App,
    of = "",
  ) {
    this.root = element("aside", { class: "panel", tabindex: "0", "aria-label": `The chosen ${app.noun.one}${of === "" ? "" : ` of ${of}`}`, "aria-live": "polite" });
    app.add(this);
  }

  /** A stall by its number. */
  private name(stall: number): string {
    return `${capital(this.app.noun.one)} ${stall}`;
  }

  draw(): void {
    const { app } = this;
    if (app.state.stall === this.shown) return;
    this.shown = app.state.stall;
    if (app.state.stall === null) {
      this.root.replaceChildren(
        element("p", { class: "note" }, `Choose a ${app.noun.one} in the timeline${app.addressed ? ", in the scatter or among the worst" : ""} to see whose time it became.`),
      );
      return;
    }
    const row = app.row;
    if (row < 0) {
      this.root.replaceChildren(...this.absent(app.state.stall));
      return;
    }
    this.root.replaceChildren(...this.stall(row, app.state.stall));
  }

  /** In a served page, the run's data of a stall; requested once. `undefined` while the request is pending. */
  private more(stall: number): ServedStall | string | undefined {
    if (!this.served.has(stall) && this.asked !== stall) {
      this.asked = stall;
      ask(stall)
        .catch((error: unknown) => (error instanceof Error ? error.message : String(error)))
        .then((served) => {
          this.served.set(stall, served);
          if (this.asked === stall) this.asked = null;
          if (typeof served !== "string" && served.frames.length > 0) this.app.run.frames.set(stall, owned(served.frames, this.app.run.head.culprits));
          if (this.app.state.stall === stall) this.shown = undefined;
          this.app.later();
        });
    }
    return this.served.get(stall);
  }

  /** A stall that is not in the page's rows. */
  private absent(stall: number): Node[] {
    const head = element("p", {}, `${this.name(stall)} is not in this page.`);
    if (!this.app.run.head.served) return [head, this.elsewhere(stall)];
    const served = this.more(stall);
    if (served === undefined) return [head, element("p", { class: "note" }, "Asking for it\u2026")];
    if (typeof served === "string") return [element("p", {}, `${this.name(stall)} is not available: ${served}`)];
    const list = element("ul", { class: "parts" });
    const pieces = served.parts.map((part): Piece & { about: string } => ({ culprit: part.name, about: part.about, text: part.text, net: part.net_ns, around: part.around_ns, turns: part.turns }));
    for (const { culprit, net, turns, pieces: of } of summed(pieces)) {
      const about = of[0]?.about ?? "";
      list.append(
        element(
          "li",
          {},
          `${culprit} ${percent(net / Math.max(served.length_ns, 1))}, ${exact(net)}${served.order_lost ? sumOf(turns) : ""}`,
          element("span", { class: "note" }, of.length === 1 ? `${about}; ${of[0]?.text ?? ""}` : `${about}; in ${count(of.length)} parts:`),
          ...singly(of),
        ),
      );
    }
    return [
      element("h3", {}, `${this.name(stall)}: ${ns(served.length_ns)}`),
      element("p", { class: "note" }, `${served.victim}, CPU ${served.cpu}, ${moment(served.start_ns, 1)} since the start. It is not drawn in the timeline, which has a sample.`),
      ...this.whose(list),
      element("h4", {}, "Frame by frame"),
      this.frames(stall),
    ];
  }

  /** The culprits of a stall, and above them, if they are unreliable, the reason. */
  private whose(parts: HTMLElement): Node[] {
    const { doubt } = this.app.run.head.run;
    const head = element("h4", {}, "Whose time it became");
    return doubt === undefined ? [head, parts] : [head, element("p", { class: "warning" }, doubt), parts];
  }

  private elsewhere(stall: number): HTMLElement {
    const command = `jitterscope report ${this.app.run.head.run.id} --stall ${stall}`;
    return element(
      "p",
      { class: "note" },
      "Where the run is, this shows it: ",
      element("code", {}, command),
      " ",
      copier("command", "to the clipboard", () => command),
    );
  }

  private stall(row: number, id: number): Node[] {
    const { app } = this;
    const { run } = app;
    const [start, length] = [run.start[row] ?? 0, run.length[row] ?? 0];
    const epoch = run.beganNs + BigInt(Math.round(start));
    const link = (): string => `${location.href.split("#")[0] ?? ""}${written({ ...app.state, view: null })}`;
    return [
      element("h3", {}, `${this.name(id)}: ${ns(length)}`),
      element(
        "dl",
        {},
        element("dt", {}, "where"),
        element("dd", {}, place(run.head.lanes[run.lane[row] ?? -1] ?? "", run.cpu[row] ?? 0)),
        element("dt", {}, "length"),
        element("dd", {}, exact(length)),
        element("dt", {}, "since the start"),
        element("dd", {}, moment(start, 1)),
        element("dt", {}, "time of day"),
        element("dd", {}, utc(epoch), " ", copier("time", "to the clipboard", () => utc(epoch))),
      ),
      element(
        "p",
        { class: "tools" },
        button("Zoom to it", `zoom the timeline to this ${app.noun.one}`, () => app.choose(row, true)),
        button("Let go", `choose no ${app.noun.one}`, () => app.set({ stall: null })),
        ...(app.addressed ? [copier("link", `to this ${app.noun.one}`, link)] : []),
      ),
      ...this.whose(this.parts(row, length, this.isOrderLost(id))),
      element("h4", {}, "Frame by frame"),
      this.frames(id),
    ];
  }

  /** Whether only the sums of a stall's turns are left, as far as the page can know. */
  private isOrderLost(stall: number): boolean {
    const { frames, head } = this.app.run;
    if (frames.has(stall)) return false;
    if (!head.served) return !head.trace_complete;
    const served = this.more(stall);
    return typeof served === "object" && served.order_lost;
  }

  private parts(row: number, length: number, orderLost: boolean): HTMLElement {
    const { app } = this;
    const { run } = app;
    const parts: number[] = [];
    for (let part = run.firstPart[row] ?? 0; part < (run.firstPart[row + 1] ?? 0); part++) parts.push(part);
    if (parts.length === 0) return element("p", { class: "note" }, "It was only counted: nothing recorded what ran.");
    const list = element("ul", { class: "parts" });
    const pieces = parts.map((part): Piece & { culprit: number } => {
      const sort = run.sorts[run.sort[part] ?? -1];
      return { culprit: sort?.culprit ?? -1, text: sort?.text ?? "", net: run.net[part] ?? 0, around: run.around[part] ?? 0, turns: run.turns[part] ?? 1 };
    });
    for (const { culprit: at, net, around, turns, pieces: of } of summed(pieces)) {
      const culprit = run.head.culprits[at];
      if (culprit === undefined) continue;
      const bar = element("span", { class: culprit.explained ? "bar" : "bar open" });
      bar.style.width = `${Math.max((net / Math.max(length, 1)) * 100, 0.5)}%`;
      bar.style.backgroundColor = culprit.explained ? (app.look.series[app.series[at] ?? 0] ?? "") : "";
      const nested = around > 0 ? `, ${ns(net + around)} with what ran on top of it` : "";
      list.append(
        element(
          "li",
          {},
          element("span", { class: "track" }, bar),
          button(culprit.name, `show only ${app.noun.many} with ${culprit.name}`, () => app.set({ culprit: at })),
          ` ${percent(net / Math.max(length, 1))}, ${exact(net)}${nested}${orderLost ? sumOf(turns) : ""}`,
          element("span", { class: "note" }, of.length === 1 ? `${culprit.about}; ${of[0]?.text ?? ""}` : `${culprit.about}; in ${count(of.length)} parts:`),
          ...singly(of),
        ),
      );
    }
    return list;
  }

  private frames(id: number): HTMLElement {
    const frames = this.app.run.frames.get(id);
    if (frames === undefined && this.app.run.head.served) {
      const served = this.more(id);
      if (served === undefined) return element("p", { class: "note" }, "Asking for its frames\u2026");
      const why = typeof served === "string" ? `They are not available: ${served}` : served.order_lost ? capital(LOST) : "Nothing was recorded inside it.";
      return element("p", { class: "note" }, why);
    }
    if (frames === undefined) {
      return element(
        "div",
        {},
        element("p", { class: "note" }, `Its frames are not in this page, which has those of the longest ${this.app.noun.many} and of some of each culprit: they lie in the run only.${this.app.run.head.trace_complete ? "" : ` Or ${LOST}`}`),
        this.elsewhere(id),
      );
    }
    const body = element("tbody");
    let cpu = -1;
    for (const frame of frames) {
      if (frame.cpu !== undefined && frame.cpu !== cpu) {
        cpu = frame.cpu;
        body.append(element("tr", {}, element("th", { colspan: "3", scope: "rowgroup" }, `CPU ${cpu}`)));
      }
      const what = element("td", {}, frame.name);
      what.style.paddingLeft = `${frame.depth * 14}px`;
      if (frame.note !== undefined) what.append(element("span", { class: "note" }, frame.note));
      const length = frame.end_ns === null ? "" : exact(frame.end_ns - frame.start_ns);
      body.append(
        element("tr", {}, element("td", { class: "n" }, exact(frame.start_ns)), element("td", { class: "n" }, length), what),
      );
    }
    const head = element("tr");
    for (const [text, kind] of [["from", "n"], ["length", "n"], ["what", ""]] as const) {
      head.append(element("th", { scope: "col", class: kind }, text));
    }
    return element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Frames" }, element("table", { class: "frames" }, element("thead", {}, head), body));
  }
}

function place(lane: string, cpu: number): string {
  return lane === `CPU ${cpu}` ? lane : `${lane}, on CPU ${cpu}`;
}

/** Parts of one culprit, the largest first; nothing if there is only one. */
function singly(pieces: Piece[]): HTMLElement[] {
  if (pieces.length < 2) return [];
  const list = element("ul", { class: "pieces" });
  for (const piece of pieces) list.append(element("li", {}, `${exact(piece.net)}: ${piece.text}`));
  return [list];
}
