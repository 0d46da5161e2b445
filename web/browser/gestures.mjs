// The hand on the timeline, the search and the keys: each does what the page's hints say.

import assert from "node:assert/strict";
import { join } from "node:path";

const near = (a, b, within, what) => assert.ok(Math.abs(a - b) <= within, `${what}: ${a}, and not ${b}`);

/** What the address says. */
const address = (page) => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.slice(1))));

/** Waits until the page has written a delayed change of its address. Both timers are the page's own, so the order holds on
 * a busy machine. */
const written = (page) => page.evaluate(() => new Promise((done) => setTimeout(done, 300)));

/** What the address says after an act that changes it. */
async function after(page, act) {
  await written(page);
  const before = await page.evaluate(() => location.href);
  await act();
  await page.waitForFunction((before) => location.href !== before, before, { timeout: 10_000 });
  await written(page);
  const told = await address(page);
  return { ...told, from: Number(told.from), to: Number(told.to) };
}

/** Drags on a canvas, from one place to another in its own pixels. */
async function drag(page, canvas, [x1, x2], y, on = async () => {}) {
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + x1, box.y + y);
  await page.mouse.down();
  for (const share of [0.3, 0.7, 1]) await page.mouse.move(box.x + x1 + (x2 - x1) * share, box.y + y);
  await on();
  await page.mouse.up();
}

const pixels = (canvas) => canvas.evaluate((canvas) => canvas.toDataURL());

export async function gestures({ browser, check, open, settled, jitterscope, large, out }) {
  await check("a plain drag zooms the timeline to what it crosses, and with Shift it moves the view", async () => {
    const { page, said } = await open(browser, large);
    const canvas = page.locator("#timeline .canvas canvas");
    const { width } = await canvas.boundingBox();
    const [x1, x2, y] = [400, 600, 90];
    const seconds = Number((await page.locator(".now").textContent()).match(/^([\d.]+) s in view/)[1]);
    const [whole, during] = [await pixels(canvas), []];
    const view = await after(page, () =>
      drag(page, canvas, [x1, x2], y, async () => {
        await settled(page);
        during.push(await pixels(canvas));
      }),
    );
    assert.ok(during[0] !== whole, "the drag shows what it crosses");
    // The view is what the drag crossed: then the run is as long as the page says, right of the names of its lanes.
    const pixel = (view.to - view.from) / (x2 - x1);
    const left = x1 - view.from / pixel;
    assert.ok(left > 50 && left < width / 4, `names of ${left} px (${JSON.stringify(view)})`);
    near((pixel * (width - left)) / 1e9, seconds, 0.06, "the length of the run");
    // From right to left it is the same.
    await after(page, () => canvas.press("Home"));
    const back = await after(page, () => drag(page, canvas, [x2, x1], y));
    assert.deepEqual([back.from, back.to], [view.from, view.to]);
    // What is dragged to the left shows what is later.
    await page.keyboard.down("Shift");
    const later = await after(page, () => drag(page, canvas, [600, 500], y));
    await page.keyboard.up("Shift");
    near(later.to - later.from, view.to - view.from, 2, "the length of the view");
    near(later.from - view.from, (100 / (width - left)) * (view.to - view.from), 2, "the way of the view");
    // In the overview a drag takes the view along.
    const first = await after(page, () => drag(page, canvas, [width - 100, left + 100], 20));
    near(first.to - first.from, view.to - view.from, 2, "the length of the view");
    near((first.from + first.to) / 2, 100 * pixel, pixel, "the middle of the view");
    assert.deepEqual(said, []);
    await page.close();
  });

  await check("a click chooses the stall that it meets, a second one zooms to it, and a click beside it does nothing", async () => {
    const { page, said } = await open(browser, large);
    const canvas = page.locator("#timeline .canvas canvas");
    const panel = page.locator(".panel");
    await canvas.focus();
    for (const key of ["n", "Enter"]) await page.keyboard.press(key);
    await written(page);
    const worst = await address(page);
    const [, lane] = (await panel.textContent()).match(/whereCPU (\d+)/).map(Number);
    await page.keyboard.press("Escape");
    await settled(page);
    assert.match(await panel.textContent(), /Choose a stall/);
    const { width } = await canvas.boundingBox();
    // The overview and the axis are 70 px high, each lane 40.
    const at = { x: (118 + width) / 2, y: 70 + 40 * (lane - 1) + 30 };
    // The other lane has nothing there.
    await canvas.click({ position: { x: at.x, y: 70 + 40 * (2 - lane) + 30 } });
    await settled(page);
    assert.match(await panel.textContent(), /Choose a stall/);
    await canvas.click({ position: at });
    await settled(page);
    assert.match(await panel.textContent(), /30,000,000 ns/);
    const wide = await after(page, () => page.getByRole("button", { name: "zoom out", exact: true }).click());
    const zoomed = await after(page, () => canvas.dblclick({ position: at }));
    assert.ok(zoomed.to - zoomed.from < wide.to - wide.from, JSON.stringify([wide, zoomed]));
    assert.equal(zoomed.stall, worst.stall);
    assert.deepEqual(said, []);
    await page.close();
  });

  await check("n chooses the worst stall first and then the next in time, p the one before, wherever the focus is", async () => {
    for (const name of ["generated-100000", "fixture-spin", "fixture-pipeline"]) {
      const { page, said } = await open(browser, `file://${join(out, `${name}.html`)}`);
      const panel = page.locator(".panel");
      const length = async () => Number((await panel.textContent()).match(/length([\d,]+) ns/)[1].replaceAll(",", ""));
      const start = async () => Number((await panel.textContent()).match(/since the start([\d.\u2009]+) s/)[1].replaceAll("\u2009", ""));
      // The table of the worst has the longest first.
      const first = await page.locator("#worst tbody a").first().getAttribute("href");
      assert.equal(await page.evaluate(() => document.activeElement === document.body), true);
      const worst = await after(page, () => page.keyboard.press("n"));
      assert.equal(`#stall=${worst.stall}`, first, name);
      const [longest, at] = [await length(), await start()];
      // The test sees the difference: the worst is not the first.
      const before = await after(page, () => page.keyboard.press("p"));
      assert.notEqual(before.stall, worst.stall, name);
      assert.ok((await start()) <= at && (await length()) <= longest, name);
      const again = await after(page, () => page.keyboard.press("n"));
      assert.equal(again.stall, worst.stall, name);
      assert.deepEqual(said, []);
      await page.close();
    }
  });

  await check("the search finds a culprit by words of its name, and shows only what it has part in", async () => {
    const { page, said } = await open(browser, large);
    const field = page.locator("#timeline input[type=search]");
    const [now, told] = [page.locator(".now"), page.locator("#timeline [role=status]")];
    const pressed = () => page.locator('td.culprit button[aria-pressed="true"]').first().textContent();
    await page.keyboard.press("/");
    assert.equal(await field.evaluate((field) => document.activeElement === field), true, "/ leads into the field");
    await page.keyboard.type("Update kworker");
    await page.keyboard.press("Enter");
    await settled(page);
    assert.match(await now.textContent(), / 1 stall with kworker vmstat_update\./);
    assert.equal(await pressed(), "kworker vmstat_update");
    assert.equal(await told.textContent(), "");
    assert.equal(await page.locator("#worst tbody tr:visible").count(), 1);
    await written(page);
    assert.ok((await address(page)).culprit !== undefined);
    // Of several it is the one with most time.
    const names = (await page.locator("#culprits td.culprit").allTextContents()).filter((name) => name.includes("worker-"));
    assert.ok(names.length > 2, names.join());
    await field.fill("worker-");
    await field.press("Enter");
    await settled(page);
    assert.equal(await pressed(), names[0]);
    assert.match(await told.textContent(), /^\d+ more have that in the name, with less time\.$/);
    assert.ok((await now.textContent()).includes(` with ${names[0]}.`), await now.textContent());
    // What nobody is called changes nothing.
    await field.fill("worker- nobody");
    await field.press("Enter");
    await settled(page);
    assert.equal(await told.textContent(), 'No culprit has "worker- nobody" in its name.');
    assert.equal(await pressed(), names[0]);
    // Without a word all are shown.
    await field.fill("");
    await field.press("Enter");
    await settled(page);
    assert.match(await now.textContent(), /100,000 stalls\./);
    assert.deepEqual(said, []);
    await page.close();
  });

  await check("the search finds a stall by its number, chooses it and brings it into view", async () => {
    const { page, said } = await open(browser, large);
    const field = page.locator("#timeline input[type=search]");
    const panel = page.locator(".panel");
    await page.locator("#worst tbody a").first().click();
    await settled(page);
    await field.fill("5");
    const { stall, from, to } = await after(page, () => field.press("Enter"));
    assert.equal(stall, "5");
    assert.match(await panel.locator("h3").textContent(), /^Stall 5: /);
    const [, since] = (await panel.textContent()).match(/since the start([\d.\u2009]+) s/);
    const at = Number(since.replaceAll("\u2009", "")) * 1e9;
    assert.ok(from <= at && at <= to, `stall 5 at ${at}, and the view from ${from} to ${to}`);
    await field.fill("99999999");
    await field.press("Enter");
    await settled(page);
    assert.match(await panel.textContent(), /Stall 99999999 is not in this page/);
    assert.deepEqual(said, []);
    await page.close();
  });

  await check("the timeline begins in the upper half of a window of 1366 by 768", async () => {
    for (const name of ["fixture-spin", "fixture-wakeup", "fixture-attach", "fixture-pipeline", "fixture-passive", "generated-100000"]) {
      const { page } = await open(browser, `file://${join(out, `${name}.html`)}`, { viewport: { width: 1366, height: 768 } });
      await settled(page);
      const { y, height } = await page.locator("#timeline .canvas canvas").boundingBox();
      assert.ok(y < 384, `${name}: the timeline begins at ${y}`);
      assert.ok(y + height <= 768, `${name}: the timeline ends at ${y + height}`);
      await page.close();
    }
  });

  await check("whoever speaks to a control says what is written on it", async () => {
    const compared = join(out, "spoken-diff.html");
    jitterscope("diff", "fixture-pipeline", "other-pipeline", "--html", compared);
    let named = 0;
    for (const name of ["fixture-spin", "fixture-wakeup", "fixture-attach", "fixture-pipeline", "fixture-passive", "lanes", "spoken-diff"]) {
      const { page, said } = await open(browser, `file://${join(out, `${name}.html`)}`);
      // The panel of a chosen stall has controls of its own.
      await page.locator(".timeline .canvas canvas").first().press("n");
      await page.locator(".panel button").first().waitFor();
      named += await spoken(page, name);
      assert.deepEqual(said, []);
      await page.close();
    }
    assert.ok(named >= 7 * 4, `${named} controls with a name of their own`);
  });
}

/** Each control's name has the words that are seen on it, and one whose text is a sign has words. Returns how many
 * controls have a name of their own. */
export async function spoken(page, where) {
  const controls = await page.evaluate(() => {
    const words = (text) => (text ?? "").toLowerCase().match(/[\p{L}\p{N}]+/gu)?.join(" ") ?? "";
    const widgets = ["button", "link", "tab", "checkbox", "radio", "switch", "option", "menuitem", "searchbox", "combobox"];
    const all = document.querySelectorAll(["button,a[href],summary,input,select,textarea", ...widgets.map((role) => `[role=${role}]`)].join());
    return [...all].map((of) => {
      const field = of.matches("input, select, textarea");
      // Of a field, what is written beside it and in it while it is empty.
      const beside = [...(of.labels ?? [])].map((label) => [...label.childNodes].filter((node) => !node.contains(of)).map((node) => node.textContent).join(" "));
      const seen = field ? [...beside, of.placeholder] : [of.textContent];
      const named = of.getAttribute("aria-labelledby")?.split(" ").map((id) => document.getElementById(id)?.textContent).join(" ") ?? of.getAttribute("aria-label");
      return { html: of.outerHTML.slice(0, 200), seen: seen.map(words).filter((text) => text !== ""), name: named === null ? null : words(named) };
    });
  });
  assert.ok(controls.length > 3, `${where}: ${controls.length} controls`);
  for (const { html, seen, name } of controls) {
    if (name !== null) for (const text of seen) assert.ok(` ${name} `.includes(` ${text} `), `${where}: "${text}" is written on it, and it is called "${name}": ${html}`);
    assert.ok(seen.length > 0 || (name !== null && name !== ""), `${where}: no word names it: ${html}`);
  }
  return controls.filter(({ name }) => name !== null).length;
}
