// The rules of axe-core for whoever reads a page with a screen reader, a keyboard, a voice or little contrast.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const SOURCE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/** Rules that are off by default. */
const RULES = { "label-content-name-mismatch": { enabled: true }, "td-has-header": { enabled: true }, "focus-order-semantics": { enabled: true } };

/** Fails with what axe finds. */
export async function axe(page, where) {
  // The page's policy keeps out scripts of others: this one comes from the debugger, as all that a test evaluates.
  await page.evaluate(`${SOURCE};0`);
  const found = await page.evaluate(async (rules) => (await window.axe.run(document, { rules, resultTypes: ["violations"] })).violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html.slice(0, 200))]), RULES);
  assert.deepEqual(found, [], where);
}

export async function accessible({ browser, check, open, settled, jitterscope, out }) {
  await check("axe finds nothing in a page of any kind, in either theme", async () => {
    jitterscope("diff", "fixture-pipeline", "other-pipeline", "--html", join(out, "axe-diff.html"));
    for (const name of ["fixture-spin", "fixture-wakeup", "fixture-attach", "fixture-pipeline", "fixture-passive", "axe-diff"]) {
      const { page, said } = await open(browser, `file://${join(out, `${name}.html`)}`);
      // The panel of a chosen stall is part of the page.
      await page.locator(".timeline .canvas canvas").first().press("n");
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        await settled(page);
        await axe(page, `${name}, ${colorScheme}`);
      }
      assert.deepEqual(said, []);
      await page.close();
    }
  });
}
