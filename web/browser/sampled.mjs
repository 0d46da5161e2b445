// A run with more stalls than a page holds: the page says which figures are of all stalls and which of a sample.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";

const STALLS = 103_000;

export async function sampled({ browser, check, open, settled, generator, page_of, runs }) {
  await check("of a run with more stalls than the page has, each chart says of what it is", async () => {
    const folder = execFileSync(generator, [runs, String(STALLS)], { encoding: "utf8" }).trim();
    const { page, said } = await open(browser, page_of(folder, "sampled"));
    const note = (chart) => page.locator(`[data-chart="${chart}"] .sample`);
    const now = () => page.locator(".now").textContent();
    // Unfiltered, sums, percentiles and offsets are of all stalls; the others are drawn of those in the page.
    for (const chart of ["culprits", "percentiles", "offsets"]) assert.equal(await note(chart).isVisible(), false, chart);
    for (const chart of ["series", "outliers"]) assert.match(await note(chart).textContent(), /^Of 103,000 stalls \d\d,\d{3} are in this page/, chart);
    assert.match(await now(), /Of 103,000 stalls/);
    // The map of offsets has them all.
    const fullest = await page.locator('[data-chart="offsets"] .plot > canvas').evaluate((canvas) => canvas.getAttribute("aria-label"));
    assert.match(fullest, /103,000 stalls/);
    await page.locator("td[data-culprit] button", { hasText: /^softirq TIMER$/ }).first().click();
    await settled(page);
    for (const chart of ["culprits", "percentiles", "offsets", "series", "outliers"]) {
      assert.match(await note(chart).textContent(), /stalls in this page, which are a sample of 103,000: \d\d,\d{3} of the 102,999 with softirq TIMER\./, chart);
    }
    assert.match(await now(), /a sample of 103,000/);
    assert.deepEqual(said, []);
    await page.close();
  });
}
