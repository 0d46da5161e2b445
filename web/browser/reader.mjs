// What a reader meets: paper, a filter that leaves nothing of what was in view, the way back.

import assert from "node:assert/strict";
import { join } from "node:path";

/** Chooses the longest stall, so that the panel has something. */
async function chooseWorst(page, settled) {
  await page.locator("#worst tbody a").first().click();
  await settled(page);
}

export async function reader({ browser, check, open, ready, settled, small, large, out }) {
  await check("printed, culprits keep their names in tables and beside the chosen stall", async () => {
    const { page, said } = await open(browser, large);
    await chooseWorst(page, settled);
    const cells = () => page.locator("td[data-culprit]").evaluateAll((all) => all.map((cell) => [cell.textContent, cell.closest("details:not([open])") !== null, cell.innerText.trim()]));
    await page.emulateMedia({ media: "print" });
    const printed = await cells();
    assert.ok(printed.length > 3, `${printed.length} names`);
    for (const [name, folded, shown] of printed) {
      assert.ok(name !== "", "a culprit without a name");
      if (!folded) assert.equal(shown, name.trim());
    }
    for (const [name, shown] of await page.locator(".panel .parts > li").evaluateAll((all) => all.map((part) => [part.querySelector("button").textContent, part.innerText]))) {
      assert.ok(name !== "" && shown.includes(name), `${name} is not in: ${shown}`);
    }
    assert.equal(await page.locator(".copy:visible, .legend button:visible").count(), 0);
    assert.deepEqual(said, []);
    await page.close();
  });

  await check("a filter lets go of what it leaves out, and of a view that has nothing of it", async () => {
    const { page, said } = await open(browser, large);
    await chooseWorst(page, settled);
    const told = () => page.locator(".now").textContent();
    assert.match(await told(), / 1 of 100,000 stalls\./);
    assert.match(await page.locator(".panel").textContent(), /kworker vmstat_update/);
    const other = page.locator("td[data-culprit] button").filter({ hasNotText: "vmstat_update" }).first();
    const name = await other.textContent();
    await other.click();
    await settled(page);
    assert.match(await page.locator(".panel").textContent(), /Choose a stall/);
    const shown = (await told()).match(/in view, ([\d,]+)(?: of ([\d,]+))? stalls? with /);
    assert.ok(shown !== null && shown[1] !== "0", `${await told()} (${name})`);
    assert.deepEqual(said, []);
    await page.close();
  });

  await check("back and forward go through what was chosen", async () => {
    const { page, said } = await open(browser, large);
    await page.locator("td[data-culprit] button", { hasText: "vmstat_update" }).click();
    await page.waitForFunction(() => location.hash.includes("culprit="));
    await page.waitForTimeout(500);
    await page.locator("#timeline .canvas canvas").focus();
    await page.keyboard.press("n");
    await page.waitForFunction(() => location.hash.includes("stall="));
    await page.goBack();
    await settled(page);
    assert.match(await page.locator(".panel").textContent(), /Choose a stall/);
    assert.match(await page.locator(".now").textContent(), / with kworker vmstat_update\./);
    await page.goBack();
    await settled(page);
    assert.match(await page.locator(".now").textContent(), /100,000 stalls\./);
    await page.goForward();
    await settled(page);
    assert.match(await page.locator(".now").textContent(), / with kworker vmstat_update\./);
    assert.deepEqual(said, []);
    await page.close();
  });

  await check("what is cut shows that there is more, and the keyboard reaches it", async () => {
    const { page, said } = await open(browser, large);
    await chooseWorst(page, settled);
    assert.equal(await page.locator(".panel").getAttribute("tabindex"), "0");
    assert.match(await page.locator(".panel").evaluate((panel) => getComputedStyle(panel).backgroundImage), /gradient/);
    await page.setViewportSize({ width: 400, height: 900 });
    await settled(page);
    assert.equal(await page.locator(".legend").getAttribute("tabindex"), "0");
    assert.match(await page.locator(".legend").evaluate((legend) => getComputedStyle(legend).backgroundImage), /gradient/);
    await page.screenshot({ path: join(out, "cut-400.png") });
    assert.deepEqual(said, []);
    await page.close();
  });

  await check("the theme can be chosen, and a page prints on white", async () => {
    const { page } = await open(browser, small, { colorScheme: "light" });
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const canvases = ["#timeline .canvas canvas", ...["series", "outliers"].map((chart) => `[data-chart="${chart}"] .plot > canvas`)];
    const pixels = () => page.evaluate((all) => all.map((of) => document.querySelector(of).toDataURL()), canvases);
    await settled(page);
    const [light, onLight] = [await paper(), await pixels()];
    await page.locator("button.theme").click();
    await settled(page);
    const [dark, onDark] = [await paper(), await pixels()];
    assert.notEqual(dark, light);
    // Pixels follow no style sheet: they are drawn for paper before it is printed, and for the screen after.
    const event = (name) => page.evaluate((name) => void window.dispatchEvent(new Event(name)), name);
    await event("beforeprint");
    const printed = await pixels();
    await event("afterprint");
    const after = await pixels();
    assert.equal(await paper(), dark);
    canvases.forEach((of, at) => {
      assert.ok(onDark[at] !== onLight[at], `${of} follows the theme`);
      assert.ok(printed[at] === onLight[at], `${of} is printed as it is on white`);
      assert.ok(after[at] === onDark[at], `${of} is dark again`);
    });
    await page.reload();
    await ready(page);
    // Until it is drawn a canvas has no pixels.
    await settled(page);
    assert.equal(await paper(), dark, "a reload keeps the theme");
    await page.emulateMedia({ media: "print" });
    assert.equal(await paper(), "rgb(255, 255, 255)");
    // A screenshot does not print, so this check sends the event that precedes printing.
    await event("beforeprint");
    const lightness = await page.evaluate((of) => document.querySelector(of).getContext("2d").getImageData(300, 10, 1, 1).data[0], canvases[0]);
    assert.ok(lightness > 200, `the artefact has a timeline of lightness ${lightness}`);
    // It resizes the window, after which a canvas is empty until the next frame.
    await page.screenshot({ path: join(out, "print.png"), fullPage: true });
    await page.close();
  });
}
