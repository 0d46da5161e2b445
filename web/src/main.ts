// Makes a complete static page interactive.

import "uplot/dist/uPlot.min.css";
import "./page.css";
import { App } from "./app.js";
import { beside } from "./beside.js";
import { Percentiles, Scatter } from "./charts.js";
import { load } from "./data.js";
import { button, element } from "./dom.js";
import { Filter } from "./filter.js";
import { Offsets } from "./offsets.js";
import { Panel } from "./panel.js";
import { search } from "./search.js";
import { Culprits, Series } from "./sums.js";
import { Timeline } from "./timeline.js";

const THEME = "jitterscope-theme";

/** The selected theme for this site's pages; a browser may refuse to store it. */
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

function theme(apps: App[]): void {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = (): boolean => (root.dataset["theme"] ?? (dark.matches ? "dark" : "light")) === "dark";
  const kept = remembered();
  if (kept !== null) root.dataset["theme"] = kept;
  const made = button("Dark", "colours of the page", () => {
    root.dataset["theme"] = isDark() ? "light" : "dark";
    remember(root.dataset["theme"]);
    shown();
  });
  const shown = (): void => {
    made.textContent = isDark() ? "Light" : "Dark";
    apps.forEach((app) => app.relook());
  };
  dark.addEventListener("change", shown);
  made.className = "theme";
  document.querySelector("header")?.append(made);
  shown();
}

/** Paper is white: while the page is printed, pixels are drawn for a white background. */
function printing(apps: App[]): void {
  const root = document.documentElement;
  let screen: { theme: string | undefined } | null = null;
  window.addEventListener("beforeprint", () => {
    screen ??= { theme: root.dataset["theme"] };
    root.dataset["theme"] = "light";
    apps.forEach((app) => app.relookNow());
  });
  window.addEventListener("afterprint", () => {
    if (screen === null) return;
    if (screen.theme === undefined) delete root.dataset["theme"];
    else root.dataset["theme"] = screen.theme;
    screen = null;
    apps.forEach((app) => app.relookNow());
  });
}

/** Moves a run's data out of the page: two texts of megabytes need not stay in memory. */
function taken(block: Element): string {
  const text = block.textContent ?? "";
  block.remove();
  return text;
}

/** The page of one run. */
async function one(root: HTMLElement, rows: string, frames: string): Promise<App> {
  const app = new App(await load(rows, frames));
  const { root: searching, field } = search(app);
  const timeline = new Timeline(app, "Timeline", searching);
  const panel = new Panel(app);
  const filter = new Filter(app);
  if (app.run.head.rows > 0) {
    const { doubt } = app.run.head.run;
    // Names in the legend are only as reliable as the run's evidence.
    const doubted = doubt === undefined ? [] : [element("p", { class: "warning" }, doubt)];
    timeline.root.querySelector(".now")?.before(...doubted, filter.root);
    root.replaceChildren(element("div", { class: "split" }, timeline.root, panel.root));
    root.hidden = false;
    keys(timeline, field);
  }
  Culprits.of(app);
  Series.of(app);
  Scatter.of(app);
  Offsets.of(app);
  Percentiles.of(app);
  window.addEventListener("hashchange", () => {
    app.follow(location.hash);
    if (app.state.stall !== null && location.hash.startsWith("#stall=")) root.scrollIntoView();
  });
  app.follow(location.hash);
  if (app.state.stall !== null) root.scrollIntoView();
  return app;
}

/** Keys that work everywhere except in text input. */
function keys(timeline: Timeline, field: HTMLInputElement): void {
  document.addEventListener("keydown", (event) => {
    const on = event.target instanceof Element ? event.target : null;
    // The timeline has handled its own keys.
    const types = on?.closest("input, select, textarea") !== null;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || types) return;
    if (event.key === "n") timeline.step(1);
    else if (event.key === "p") timeline.step(-1);
    else if (event.key === "/") field.focus();
    else return;
    event.preventDefault();
  });
}

async function start(): Promise<void> {
  const rows = [...document.querySelectorAll("script.rows")].map(taken);
  const frames = [...document.querySelectorAll("script.frames")].map(taken);
  const roots = [...document.querySelectorAll<HTMLElement>(".app")];
  const [root] = roots;
  if (root === undefined || rows.length === 0) return;
  try {
    performance.mark("jitterscope-load-begins");
    const apps =
      roots.length === 1
        ? [await one(root, rows[0] ?? "", frames[0] ?? "")]
        : await beside(roots, rows.map((of, at) => ({ rows: of, frames: frames[at] ?? "" })));
    theme(apps);
    printing(apps);
    const draw = (): void => apps.forEach((app) => app.later());
    window.addEventListener("resize", draw);
    draw();
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
