// The choice of two runs in the served list: a search keeps it, and the comparison has the timelines of both.

import assert from "node:assert/strict";
import { axe } from "./axe.mjs";
import { spoken } from "./gestures.mjs";

/** `address`: of the served list. */
export async function chosen({ browser, check, settled, address }) {
  const chosenIn = (page, side) => page.locator(`input[name=${side}]:checked`);
  const labels = (page) => page.locator("tbody a").allTextContents();

  await check("serve: a search keeps the A and the B that are chosen, also those that it does not find", async () => {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    await page.goto(address);
    await spoken(page, "the list");
    await axe(page, "the list");
    await page.getByLabel("generated-10 as a", { exact: true }).check();
    const a = await chosenIn(page, "a").getAttribute("value");
    const search = async (text, act) => {
      await page.locator("input[name=q]").fill(text);
      await act();
      await page.waitForURL((url) => url.searchParams.get("q") === text);
      assert.equal(await page.locator("input[name=q]").inputValue(), text);
      assert.equal(await page.locator("h1").textContent(), "Runs");
      assert.equal(await chosenIn(page, "a").getAttribute("value"), a, `A after a search for "${text}"`);
    };
    await search("pipeline", () => page.getByRole("button", { name: "Search", exact: true }).click());
    // A stands above what is found.
    const found = await labels(page);
    assert.equal(found[0], "generated-10");
    assert.ok(found.length > 1 && found.slice(1).every((label) => !label.startsWith("generated")), found.join());
    // Enter in the field searches, too: it does not compare.
    await search("generated-100000", () => page.locator("input[name=q]").press("Enter"));
    await page.getByLabel("generated-100000 as b", { exact: true }).check();
    const b = await chosenIn(page, "b").getAttribute("value");
    assert.notEqual(b, a);
    await search("no run has these words", () => page.locator("input[name=q]").press("Enter"));
    assert.match(await page.locator("main").textContent(), /No run has all these words\./);
    assert.deepEqual((await labels(page)).sort(), ["generated-10", "generated-100000"]);
    assert.equal(await chosenIn(page, "b").getAttribute("value"), b);
    await page.locator("button", { hasText: "Compare" }).click();
    await page.waitForURL(/\/compare\?/);
    const { searchParams } = new URL(page.url());
    assert.deepEqual([searchParams.get("a"), searchParams.get("b")], [a, b]);
    assert.equal(await page.locator("h1").textContent(), "generated-10 beside generated-100000");
    await page.close();
  });

  await check("serve: a comparison has a timeline of each run, in which a hand zooms and chooses", async () => {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    const said = [];
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) said.push(message.text());
    });
    page.on("pageerror", (error) => said.push(error.message));
    await page.goto(address);
    for (const [label, side] of [["generated-10", "a"], ["generated-100000", "b"]]) await page.getByLabel(`${label} as ${side}`, { exact: true }).check();
    await page.locator("button", { hasText: "Compare" }).click();
    await page.waitForURL(/\/compare\?/);
    await page.waitForFunction(() => document.documentElement?.dataset.ready === "yes");
    await settled(page);
    assert.deepEqual(await page.locator(".timeline h2").allTextContents(), ["A: generated-10", "B: generated-100000"]);
    for (const at of [0, 1]) {
      const place = page.locator(".app").nth(at);
      const canvas = place.locator(".timeline .canvas canvas");
      const now = () => place.locator(".now").textContent();
      const [, whole, all] = (await now()).match(/^([\d.]+) s in view, ([\d,]+) stalls\./);
      await canvas.scrollIntoViewIfNeeded();
      const { x, y } = await canvas.boundingBox();
      await page.mouse.move(x + 400, y + 90);
      await page.mouse.down();
      for (const to of [450, 600]) await page.mouse.move(x + to, y + 90);
      await page.mouse.up();
      await settled(page);
      const [, zoomed, of] = (await now()).match(/^([\d.]+) s in view, [\d,]+ of ([\d,]+) stalls\./);
      assert.ok(Number(zoomed) < Number(whole) / 3 && of === all, await now());
      await canvas.press("Home");
      await canvas.press("n");
      await settled(page);
      assert.match(await place.locator(".panel").textContent(), /30,000,000 ns/);
    }
    // Each panel says of which run it is.
    const panels = await page.locator(".panel").evaluateAll((all) => all.map((of) => of.getAttribute("aria-label")));
    assert.deepEqual(panels, ["The chosen stall of A: generated-10", "The chosen stall of B: generated-100000"]);
    await spoken(page, "the comparison");
    await axe(page, "the comparison");
    assert.deepEqual(said, []);
    await page.close();
  });
}
