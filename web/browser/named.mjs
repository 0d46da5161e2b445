// What a run has is called by its name: a pipeline's slow messages are no stalls.

import assert from "node:assert/strict";
import { join } from "node:path";

export async function named({ browser, check, open, settled, out }) {
  for (const [kind, one, many] of [
    ["spin", "stall", "stalls"],
    ["wakeup", "late wake-up", "late wake-ups"],
    ["pipeline", "slow message", "slow messages"],
    ["attach", "wait", "waits"],
    ["passive", "stolen stretch", "stolen stretches"],
  ]) {
    await check(`${kind}: its ${many} are called so in charts, controls and what is read out`, async () => {
      const { page, said } = await open(browser, `file://${join(out, `fixture-${kind}.html`)}`);
      await settled(page);
      const labels = await page.locator("[aria-label]").evaluateAll((all) => all.filter((of) => of.closest("svg") === null).map((of) => of.getAttribute("aria-label")));
      const shown = await page.locator("#app").innerText();
      const keys = await page.locator(".keys, .axes").allInnerTexts();
      const all = [...labels, shown, ...keys].join("\n");
      assert.match(all, new RegExp(`n chooses the worst ${one} and then the next, p the one before`));
      assert.match(shown, new RegExp(`[\\d,]+ (${one}|${many})\\.`));
      assert.doesNotMatch(all, /\b1 (stalls|late wake-ups|slow messages|waits|stolen stretches)\b/);
      if (one !== "stall") assert.doesNotMatch(all, /\bstalls?\b/i);
      // A chart in which one moves says what its axes are, as its image does.
      for (const chart of ["series", "outliers"]) {
        assert.match(await page.locator(`[data-chart="${chart}"] .axes`).innerText(), new RegExp(`${one}.*: time since the start across, length up`), chart);
      }
      // Of a run with few of them all have their frames here: nothing lies in the run only.
      const now = await page.locator(".now").textContent();
      const [count, framed] = [now.match(/in view, ([\d,]+) /)?.[1], now.match(/Of ([\d,]+) .* the frames are in this page/)?.[1]];
      assert.notEqual(count, framed, now);
      assert.deepEqual(said, []);
      await page.close();
    });
  }
}
