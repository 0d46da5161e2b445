// Makes a page that is complete as it stands something to move in.

import "uplot/dist/uPlot.min.css";
import "./page.css";
import { App } from "./app.js";
import { Percentiles, Scatter } from "./charts.js";
import { load } from "./data.js";
import { button, element } from "./dom.js";
import { Filter } from "./filter.js";
import { Offsets } from "./offsets.js";
import { Panel } from "./panel.js";
import { Culprits, Series } from "./sums.js";
import { Timeline } from "./timeline.js";

const THEME = "jitterscope-theme";

/** The theme that was chosen for pages from here; a browser may refuse to keep anything. */
function remembered(): string | null {
  try {
    const kept = sessionStorage.getItem(THEME);
    return kept === "light" || kept === "dark" ? kept : null;
  } catch {
    return null;
  }
}

function remember(theme: string): void {
  try {
    sessionStorage.setItem(THEME, theme);
  } catch {
    // It holds until the page is left.
  }
}

function theme(app: App): void {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = (): boolean => (root.dataset["theme"] ?? (dark.matches ? "dark" : "light")) === "dark";
  const kept = remembered();
  if (kept !== null) root.dataset["theme"] = kept;
  const made = button("", "light or dark", () => {
    root.dataset["theme"] = isDark() ? "light" : "dark";
    remember(root.dataset["theme"]);
    shown();
  });
  const shown = (): void => {
    made.textContent = isDark() ? "Light" : "Dark";
    app.relook();
  };
  dark.addEventListener("change", shown);
  made.className = "theme";
  document.querySelector("header")?.append(made);
  shown();
}

/** Paper is white: what is drawn in pixels is drawn for it as long as the page is printed. */
function printing(app: App): void {
  const root = document.documentElement;
  let screen: { theme: string | undefined } | null = null;
  window.addEventListener("beforeprint", () => {
    screen ??= { theme: root.dataset["theme"] };
    root.dataset["theme"] = "light";
    app.relookNow();
  });
  window.addEventListener("afterprint", () => {
    if (screen === null) return;
    if (screen.theme === undefined) delete root.dataset["theme"];
    else root.dataset["theme"] = screen.theme;
    screen = null;
    app.relookNow();
  });
}

async function start(): Promise<void> {
  const [data, frames] = ["data", "frames"].map((id) => document.getElementById(id));
  const root = document.getElementById("app");
  if (!data || !frames || root === null) return;
  try {
    performance.mark("jitterscope-load-begins");
    const run = await load(data.textContent ?? "", frames.textContent ?? "");
    data.remove();
    frames.remove();
    const app = new App(run);
    const timeline = new Timeline(app);
    const panel = new Panel(app);
    const filter = new Filter(app);
    if (run.head.rows > 0) {
      const { doubt } = run.head.run;
      // Names in the legend are no better than the evidence of the run.
      const doubted = doubt === undefined ? [] : [element("p", { class: "warning" }, doubt)];
      timeline.root.querySelector(".tools")?.before(...doubted, filter.root);
      root.replaceChildren(element("div", { class: "split" }, timeline.root, panel.root));
      root.hidden = false;
    }
    Culprits.of(app);
    Series.of(app);
    Scatter.of(app);
    Offsets.of(app);
    Percentiles.of(app);
    theme(app);
    printing(app);
    window.addEventListener("hashchange", () => {
      app.follow(location.hash);
      if (app.state.stall !== null && location.hash.startsWith("#stall=")) root.scrollIntoView();
    });
    window.addEventListener("resize", () => app.later());
    app.follow(location.hash);
    if (app.state.stall !== null) root.scrollIntoView();
    app.later();
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        performance.measure("jitterscope-load", "jitterscope-load-begins");
        document.documentElement.dataset["ready"] = "yes";
      }),
    );
  } catch (error) {
    root.hidden = false;
    root.replaceChildren(
      element("p", { class: "warning" }, `The interactive part cannot be shown (${error instanceof Error ? error.message : String(error)}); everything below is complete.`),
    );
    document.documentElement.dataset["ready"] = "failed";
  }
}

void start();
