// A run of many CPUs: every lane of its timeline can be reached, by mouse and by keys.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";

const LANES = 200;
const SHOWN = 32;

export async function lanes({ browser, check, open, settled, generator, page_of, runs, out }) {
  await check("every one of 200 lanes can be reached by mouse and by keys, and the address keeps it", async () => {
    const folder = execFileSync(generator, [runs, "4000", String(LANES)], { encoding: "utf8" }).trim();
    const { page, said } = await open(browser, page_of(folder, "lanes"));
    const canvas = page.locator("#timeline .canvas canvas");
    const group = page.locator(".lanes");
    const told = async () => {
      await settled(page);
      return group.locator(".note").textContent();
    };
    assert.equal(await told(), `1 to ${SHOWN} of ${LANES} lanes`);
    const first = await canvas.evaluate((canvas) => canvas.toDataURL());
    await group.locator("button", { hasText: "lanes \u25bc" }).click();
    assert.equal(await told(), `${SHOWN + 1} to ${2 * SHOWN} of ${LANES} lanes`);
    assert.notEqual(await canvas.evaluate((canvas) => canvas.toDataURL()), first);
    await canvas.focus();
    const seen = new Set();
    for (let n = 0; n < 12; n++) {
      const [, from, to] = (await told()).match(/^(\d+) to (\d+)/).map(Number);
      for (let lane = from; lane <= to; lane++) seen.add(lane);
      await page.keyboard.press(n < 3 ? "PageUp" : "PageDown");
    }
    assert.equal(seen.size, LANES);
    assert.equal(await told(), `${LANES - SHOWN + 1} to ${LANES} of ${LANES} lanes`);
    await page.keyboard.press("ArrowUp");
    assert.equal(await told(), `${LANES - SHOWN} to ${LANES - 1} of ${LANES} lanes`);
    // Over their names the wheel goes through them.
    await canvas.evaluate((canvas) => canvas.scrollIntoView({ block: "start" }));
    const box = await canvas.boundingBox();
    await page.mouse.move(box.x + 20, box.y + 200);
    await page.mouse.wheel(0, -300);
    assert.equal(await told(), `${LANES - SHOWN - 3} to ${LANES - 4} of ${LANES} lanes`);
    await group.locator("select").selectOption({ label: "CPU 100" });
    assert.equal(await told(), `100 to ${100 + SHOWN - 1} of ${LANES} lanes`);
    await page.waitForFunction(() => location.hash.includes("lane=99"));
    await page.reload();
    await page.waitForFunction(() => document.documentElement.dataset.ready === "yes");
    assert.equal(await told(), `100 to ${100 + SHOWN - 1} of ${LANES} lanes`);
    await page.locator("#timeline").screenshot({ path: join(out, "lanes.png") });
    // A stall that is chosen is in view, whichever lane it is of.
    for (const link of await page.locator("#worst tbody a").all()) {
      if (!(await link.isVisible())) continue;
      await link.click();
      await settled(page);
      const [, cpu] = (await page.locator(".panel").textContent()).match(/whereCPU (\d+)/).map(Number);
      const [, from, to] = (await told()).match(/^(\d+) to (\d+)/).map(Number);
      assert.ok(from <= cpu && cpu <= to, `CPU ${cpu}, and lanes ${from} to ${to}`);
    }
    assert.deepEqual(said, []);
    await page.close();
  });
}
