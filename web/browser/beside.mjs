// Two runs beside one another: charts and their tables stand side by side where there is room, and can be read there.

import assert from "node:assert/strict";
import { join } from "node:path";

export async function beside({ browser, check, settled, jitterscope, out }) {
  await check("in a comparison A stands beside B where the window is wide, and above it where it is not", async () => {
    const file = join(out, "beside.html");
    jitterscope("diff", "fixture-pipeline", "other-pipeline", "--html", file);
    const page = await browser.newPage();
    await page.goto(`file://${file}`);
    for (const [width, apart] of [[1280, true], [1100, true], [1000, false], [400, false]]) {
      await page.setViewportSize({ width, height: 900 });
      await settled(page);
      for (const section of ["culprits", "series", "outliers", "messages"]) {
        const [a, b] = await page.locator(`#${section} .beside > div`).evaluateAll((all) => all.map((of) => of.getBoundingClientRect().toJSON()));
        assert.equal(a.top === b.top && b.left >= a.right, apart, `${section} at ${width}`);
        assert.ok(apart || b.top >= a.bottom, `${section} at ${width}`);
      }
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(wider <= 0, `${wider} px wider than ${width}`);
      // Letters of a chart are no smaller than the footer's, and none goes beyond its image.
      if (width < 1000) continue;
      const letters = await page.locator(".beside svg.chart").evaluateAll((all) => all.map((svg) => [11 * (svg.getBoundingClientRect().width / svg.viewBox.baseVal.width), Math.max(...[...svg.querySelectorAll("text")].map((text) => text.getBoundingClientRect().right)) - svg.getBoundingClientRect().right]));
      for (const [size, beyond] of letters) assert.ok(size >= 9 && beyond <= 0, `letters of ${size} px, ${beyond} px beyond the image, at ${width}`);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.screenshot({ path: join(out, "beside-1280.png"), fullPage: true });
    await page.close();
  });
}
