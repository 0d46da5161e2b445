// Compared runs: a timeline of each, on one axis and with one colour per culprit.

import { App, shared } from "./app.js";
import { load } from "./data.js";
import { element } from "./dom.js";
import { Panel } from "./panel.js";
import { Timeline } from "./timeline.js";

/** Creates the timelines of a comparison, one in each of the page's places. */
export async function beside(places: HTMLElement[], blocks: { rows: string; frames: string }[]): Promise<App[]> {
  const runs = await Promise.all(blocks.map(({ rows, frames }) => load(rows, frames)));
  const alike = shared(runs);
  return runs.map((run, at) => {
    const app = new App(run, alike, at, false);
    const place = places[at];
    if (place !== undefined && run.head.rows > 0) {
      const name = place.dataset["name"] ?? "";
      const timeline = new Timeline(app, name);
      const { doubt } = run.head.run;
      if (doubt !== undefined) timeline.root.append(element("p", { class: "warning" }, doubt));
      place.replaceChildren(element("div", { class: "split" }, timeline.root, new Panel(app, name).root));
      place.hidden = false;
    }
    return app;
  });
}
