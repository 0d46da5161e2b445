// The filter by culprit: a legend below the timeline, and the names in the tables.

import type { App, Part } from "./app.js";
import { button, element } from "./dom.js";
import { count, percent } from "./format.js";
import { mark, SERIES } from "./look.js";

/** Number of culprits in the legend; the table has all. */
const SHOWN = 10;

export class Filter implements Part {
  readonly root: HTMLElement;
  private readonly buttons = new Map<number, HTMLButtonElement>();
  private readonly all: HTMLButtonElement;
  private readonly worst = element("p", { class: "note", hidden: "" });
  private theme = "";

  constructor(private readonly app: App) {
    const { many } = app.noun;
    this.root = element("div", { class: "legend", role: "region", tabindex: "0", "aria-label": `Show only ${many} with a culprit` });
    this.all = button("All", `show all ${many}`, () => app.set({ culprit: null }));
    this.root.append(this.all);
    const total = app.run.head.culprits.reduce((sum, culprit) => sum + culprit.total_ns, 0);
    // They are sorted by their time.
    for (const [culprit, of] of app.run.head.culprits.slice(0, SHOWN).entries()) {
      if (of.total_ns === 0) continue;
      const made = this.maker(culprit, of.name);
      made.replaceChildren(
        element("canvas", { class: "key", width: "28", height: "28", "aria-hidden": "true" }),
        `${of.name} `,
        element("span", { class: "note" }, percent(of.total_ns / Math.max(total, 1))),
      );
      this.root.append(made);
      this.buttons.set(culprit, made);
    }
    for (const cell of document.querySelectorAll<HTMLElement>("td[data-culprit]")) {
      const culprit = Number(cell.dataset["culprit"]);
      cell.replaceChildren(this.maker(culprit, cell.textContent ?? ""));
    }
    for (const cell of document.querySelectorAll<HTMLElement>("td[data-stall]")) {
      cell.replaceChildren(element("a", { href: `#stall=${cell.dataset["stall"] ?? ""}` }, cell.textContent ?? ""));
    }
    document.querySelector("#worst h2")?.after(this.worst);
    app.add(this);
  }

  private maker(culprit: number, name: string): HTMLButtonElement {
    const made = button(name, `show only ${this.app.noun.many} with ${name}`, () =>
      this.app.set({ culprit: this.app.state.culprit === culprit ? null : culprit }),
    );
    made.dataset["filter"] = String(culprit);
    return made;
  }

  draw(): void {
    const { culprit } = this.app.state;
    this.all.setAttribute("aria-pressed", String(culprit === null));
    for (const made of document.querySelectorAll<HTMLButtonElement>("button[data-filter]")) {
      made.setAttribute("aria-pressed", String(Number(made.dataset["filter"]) === culprit));
    }
    this.keys();
    let [all, shown] = [0, 0];
    for (const link of document.querySelectorAll<HTMLAnchorElement>('#worst a[href^="#stall="]')) {
      const row = this.app.run.byId.get(Number(link.hash.slice("#stall=".length)));
      const line = link.closest("tr");
      if (line === null) continue;
      line.hidden = row !== undefined && this.app.mask[row] !== 1;
      [all, shown] = [all + 1, shown + (line.hidden ? 0 : 1)];
    }
    this.worst.hidden = culprit === null;
    const name = culprit === null ? "" : (this.app.run.head.culprits[culprit]?.name ?? "");
    this.worst.textContent = `Of the ${count(all)} longest ${this.app.noun.many} ${count(shown)} have a part of ${name}.`;
    for (const cell of document.querySelectorAll<HTMLElement>("#periods td[data-culprit]")) {
      const line = cell.closest("tr");
      if (line !== null) line.hidden = culprit !== null && Number(cell.dataset["culprit"]) !== culprit;
    }
  }

  private keys(): void {
    if (this.theme === this.app.look.ink) return;
    this.theme = this.app.look.ink;
    for (const [culprit, made] of this.buttons) {
      const draw = made.querySelector("canvas")?.getContext("2d");
      if (draw === null || draw === undefined) continue;
      const series = this.app.series[culprit] ?? SERIES - 1;
      draw.setTransform(2, 0, 0, 2, 0, 0);
      draw.clearRect(0, 0, 14, 14);
      draw.fillStyle = this.app.look.fills[series] ?? "";
      draw.fillRect(0, 9, 14, 5);
      draw.strokeStyle = this.app.look.series[series] ?? "";
      draw.lineWidth = 1.3;
      draw.beginPath();
      mark(draw, series, 7, 4, 3);
      draw.stroke();
    }
  }
}
