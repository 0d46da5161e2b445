// Selects the drawn lanes of the timeline if not all fit: by buttons, a list of all, the wheel over their names, and
// keys.

import type { App } from "./app.js";
import { button, element } from "./dom.js";
import { firstLane, LANES_SHOWN } from "./scale.js";

export class Scroll {
  readonly root = element("div", { class: "tools lanes", role: "group", "aria-label": "Lanes of the timeline" });
  private readonly list = element("select", { "aria-label": "Lanes from this one on" });
  private readonly told = element("span", { class: "note", "aria-live": "polite" });

  constructor(private readonly app: App) {
    const { lanes } = app.run.head;
    this.root.hidden = lanes.length <= LANES_SHOWN;
    if (this.root.hidden) return;
    lanes.forEach((name, at) => this.list.append(element("option", { value: String(at) }, name)));
    this.list.addEventListener("change", () => app.set({ lane: Number(this.list.value) }));
    this.root.append(
      button("\u25b2 lanes", "lanes further up (page up)", () => this.by(-LANES_SHOWN)),
      button("lanes \u25bc", "lanes further down (page down)", () => this.by(LANES_SHOWN)),
      element("label", {}, "from ", this.list),
      this.told,
    );
  }

  /** Scrolls down by this many lanes; returns whether that was possible. */
  by(lanes: number): boolean {
    const { app } = this;
    const to = firstLane(app.state.lane + lanes, app.run.head.lanes.length);
    if (to === app.state.lane) return false;
    app.set({ lane: to });
    return true;
  }

  draw(): void {
    if (this.root.hidden) return;
    const { lane } = this.app.state;
    const all = this.app.run.head.lanes.length;
    this.list.value = String(lane);
    this.told.textContent = `${lane + 1} to ${Math.min(lane + LANES_SHOWN, all)} of ${all} lanes`;
  }
}
