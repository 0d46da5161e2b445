// Stored runs that differ from the fixtures in what they say of themselves.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const parsed = (run, file) => JSON.parse(readFileSync(join(run, file), "utf8"));

/** What a run says of itself, but for its head. */
export const details = (run) => parsed(run, "details.json");

/** Gives a run another head, and changes its details. */
export function edit(run, head, change = () => {}) {
  const inside = { ...details(run), ...head };
  change(inside);
  writeFileSync(join(run, "details.json"), JSON.stringify(inside));
  writeFileSync(join(run, "manifest.json"), JSON.stringify({ ...parsed(run, "manifest.json"), ...head }));
}
