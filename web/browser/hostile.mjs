// Names and labels that are markup, or hide what they are: text in every kind of page.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const SCRIPT = "<script>document.title='got in'</script>";

/** What a thread may call itself. */
const NAMES = ["<script>a()//", '"><img src=x>', "</script><b>", "'\";alert(1)//", "&lt;\u202ex"];

/** A stored run in which everybody has such a name, as far as its head and its details have names. */
function renamed(from, to) {
  cpSync(from, to, { recursive: true });
  let [at, hosts] = [0, 0];
  const hostile = () => NAMES[at++ % NAMES.length];
  const rename = (of, within) => {
    if (of === null || typeof of !== "object") return;
    for (const [key, value] of Object.entries(of)) {
      const ran = key === "name" && /^ran_/.test(within);
      if (typeof value === "string" && (key === "comm" || ran)) of[key] = hostile();
      else rename(value, Array.isArray(of) ? within : key);
    }
  };
  for (const file of ["manifest.json", "details.json"].map((name) => join(to, name))) {
    const told = JSON.parse(readFileSync(file, "utf8"));
    rename(told, "");
    told.label = SCRIPT;
    if (told.hostname !== undefined) told.hostname = NAMES[1];
    if (told.host !== undefined) {
      [told.host.hostname, told.host.cmdline] = [NAMES[1], NAMES[2]];
      hosts += 1;
    }
    writeFileSync(file, JSON.stringify(told));
  }
  assert.equal(hosts, 1, `${from} has no machine`);
  return at;
}

/** Nothing of a page came from a name: no script but its own, no image, no other title. */
async function harmless(page, scripts) {
  const made = await page.evaluate(() => ({
    scripts: document.querySelectorAll("script").length,
    images: document.querySelectorAll("img,b,iframe").length,
  }));
  assert.deepEqual(made, { scripts, images: 0 });
  assert.notEqual(await page.title(), "got in");
  // What turns the direction of what follows is spelt out.
  assert.doesNotMatch(await page.locator("body").innerText(), /[\u202a-\u202e\u2066-\u2069]/);
}

export async function hostileNames({ browser, check, open, settled, sound, jitterscope, page_of, runs, stored, generator, out }) {
  await check("names that are markup are text in pages of every kind of run", async () => {
    // Whoever made wake-ups late stands in the tables of a run alone, which the generator writes.
    const late = execFileSync(generator, [stored, "0", "hostile-wakeup"], { encoding: "utf8" }).trim();
    for (const kind of ["pipeline", "attach", "wakeup", "late", "passive"]) {
      const run = join(stored, `hostile-${kind}`);
      const names = renamed(kind === "late" ? late : join(stored, `fixture-${kind}`), run);
      const { page, said, requested } = await open(browser, page_of(run, `hostile-${kind}`));
      assert.equal(await page.locator("h1").textContent(), SCRIPT, kind);
      assert.ok((await page.locator("#machine").textContent()).includes(NAMES[2]), kind);
      const told = await page.locator("main").textContent();
      // The fixture of wake-ups names nobody but in its tables.
      if (kind !== "wakeup") assert.ok(NAMES.some((name) => told.includes(name)), `${kind}: no such name is shown`);
      assert.ok(names > 0 || kind === "wakeup" || kind === "late", `${kind}: nobody is renamed`);
      if (kind === "late") assert.match(await page.locator("#culprits").textContent(), /<script>a\(\)\/\//);
      if (kind === "passive") assert.match(await page.locator("#watched").textContent(), /<script>a\(\)\/\//);
      await harmless(page, 1);
      for (const width of [1280, 400]) {
        await page.setViewportSize({ width, height: 900 });
        await settled(page);
        await sound(page);
      }
      assert.deepEqual(said, [], kind);
      assert.deepEqual(requested, [], kind);
      await page.close();
    }
  });

  await check("names that are markup are text", async () => {
    for (const [at, run] of runs.entries()) {
      const { page, said, requested } = await open(browser, page_of(run, `hostile-${at}`));
      assert.match(await page.locator("#culprits").textContent(), /thread <script>a\(\)\/\//);
      await page.locator("td[data-culprit] button", { hasText: "<script>" }).first().click();
      await settled(page);
      await page.locator('[data-chart="outliers"] .plot > canvas').focus();
      await page.keyboard.press("ArrowRight");
      await settled(page);
      assert.match(await page.locator(".panel").textContent(), /<script>a\(\)\/\//);
      // Its data are taken out of it once they are read.
      await harmless(page, 1);
      for (const width of [1280, 400]) {
        await page.setViewportSize({ width, height: 900 });
        await settled(page);
        await sound(page);
      }
      await page.setViewportSize({ width: 1280, height: 900 });
      await page.evaluate(() => window.scrollTo(0, 0));
      await page.screenshot({ path: join(out, `hostile-${at}.png`) });
      const heading = await page.locator("h1").textContent();
      if (at === 0) assert.equal(heading, SCRIPT);
      assert.ok(heading.length <= 80, `a heading of ${heading.length} characters`);
      assert.deepEqual(said, []);
      assert.deepEqual(requested, []);
      await page.close();
    }
  });

  await check("labels and names that are markup are text in a comparison", async () => {
    for (const [at, other] of [1, 2, 3].entries()) {
      const file = join(out, `hostile-diff-${at}.html`);
      jitterscope("diff", runs[0], runs[other], "--html", file);
      const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
      const said = [];
      page.on("console", (message) => said.push(message.text()));
      await page.goto(`file://${file}`);
      assert.ok((await page.locator("h1").textContent()).startsWith(SCRIPT));
      assert.match(await page.locator("main").textContent(), /thread <script>a\(\)\/\//);
      // Its timelines need its own.
      await harmless(page, 1);
      await sound(page);
      await page.screenshot({ path: join(out, `hostile-diff-${at}.png`) });
      assert.deepEqual(said, []);
      await page.close();
    }
  });
}
