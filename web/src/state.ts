// The reader's view, as stored in the address after the #: a link leads to the same view.

import type { View } from "./scale.js";

export interface State {
  /** A stall's number within its run. */
  stall: number | null;
  /** The visible range; `null` for the whole run. */
  view: View | null;
  /** The culprit whose stalls alone are shown. */
  culprit: number | null;
  /** Whether times are times of day, not since the start. */
  wall: boolean;
  /** The first drawn lane, if not all fit. */
  lane: number;
}

export const NOTHING: State = { stall: null, view: null, culprit: null, wall: false, lane: 0 };

/** Parses an address; `null` if it is an anchor in the page. */
export function read(hash: string): State | null {
  const text = hash.replace(/^#/, "");
  if (!text.includes("=")) return text === "" ? NOTHING : null;
  const fields = new URLSearchParams(text);
  const number = (name: string): number | null => {
    const value = fields.get(name);
    return value !== null && /^\d{1,16}$/.test(value) ? Number(value) : null;
  };
  const [from, to] = [number("from"), number("to")];
  return {
    stall: number("stall"),
    view: from !== null && to !== null && to > from ? { from, to } : null,
    culprit: number("culprit"),
    wall: fields.get("clock") === "wall",
    lane: number("lane") ?? 0,
  };
}

/** The address of a state; empty for the default. */
export function written(state: State): string {
  const fields: string[] = [];
  if (state.stall !== null) fields.push(`stall=${state.stall}`);
  if (state.view !== null) {
    // Whole nanoseconds, and at least one.
    const from = Math.floor(state.view.from);
    fields.push(`from=${from}`, `to=${Math.max(Math.ceil(state.view.to), from + 1)}`);
  }
  if (state.culprit !== null) fields.push(`culprit=${state.culprit}`);
  if (state.wall) fields.push("clock=wall");
  if (state.lane > 0) fields.push(`lane=${state.lane}`);
  return fields.length === 0 ? "" : `#${fields.join("&")}`;
}
