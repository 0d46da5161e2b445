// A search for culprits by name, and for stalls by number.

import type { App } from "./app.js";
import { element } from "./dom.js";
import { count } from "./format.js";

/** A search result. */
export interface Found {
  culprit: number | null;
  stall: number | null;
  /** In words. */
  told: string;
}

/** The culprit whose name contains all words of a text, the one with most time if there are several; or the stall
 * with this number. */
export function find(app: App, text: string): Found {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const { culprits } = app.run.head;
  if (words.length === 0) return { culprit: null, stall: app.state.stall, told: "" };
  if (/^\d{1,16}$/.test(text.trim())) return { culprit: null, stall: Number(text.trim()), told: "" };
  const fits = [...culprits.keys()].filter((at) => {
    const { name, total_ns } = culprits[at] ?? { name: "", total_ns: 0 };
    return total_ns > 0 && words.every((word) => name.toLowerCase().includes(word));
  });
  const [first] = fits;
  if (first === undefined) return { culprit: app.state.culprit, stall: app.state.stall, told: `No culprit has "${text.trim()}" in its name.` };
  const more = fits.length - 1;
  return { culprit: first, stall: app.state.stall, told: more === 0 ? "" : `${count(more)} more ${more === 1 ? "has" : "have"} that in the name, with less time.` };
}

/** The field and its message. */
export function search(app: App): { root: HTMLElement[]; field: HTMLInputElement } {
  const { one } = app.noun;
  const hint = `Search: a culprit, or a ${one}'s number`;
  const field = element("input", { type: "search", list: "culprits-known", placeholder: hint, "aria-label": hint, autocomplete: "off" });
  const known = element("datalist", { id: "culprits-known" });
  for (const { name, total_ns } of app.run.head.culprits) if (total_ns > 0) known.append(element("option", { value: name }));
  const told = element("span", { class: "note", role: "status" });
  const act = (): void => {
    const found = find(app, field.value);
    told.textContent = found.told;
    // A stall found by its number is brought into view.
    const row = found.stall === null || found.stall === app.state.stall ? undefined : app.run.byId.get(found.stall);
    if (row === undefined) app.set({ culprit: found.culprit, stall: found.stall });
    else app.choose(row, false, found.culprit);
  };
  field.addEventListener("change", act);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") field.blur();
    if (event.key === "Enter") act();
  });
  // Cleared with its own button.
  field.addEventListener("search", act);
  return { root: [field, known, told], field };
}
