// What was not recorded one by one, and what cannot be compared, is told where it is shown.

import assert from "node:assert/strict";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { edit } from "./edited.mjs";

/** A copy of a stored run under another id, after `change` of its details. */
function changed(runs, from, name, change, machine) {
  const to = join(runs, name);
  cpSync(join(runs, from), to, { recursive: true });
  edit(to, { id: name, label: name }, change);
  if (machine !== undefined) writeFileSync(join(to, "machine.json"), JSON.stringify(machine));
  return to;
}

export async function counted({ browser, check, open, settled, looks, jitterscope, page_of, runs, out }) {
  await check("of a pipeline's slow messages that were only counted the page and its charts tell", async () => {
    const whole = await open(browser, page_of(join(runs, "fixture-pipeline"), "messages-all"));
    assert.doesNotMatch(await whole.page.locator("body").innerText(), /only counted/);
    const all = Number((await whole.page.locator("#series svg.chart").textContent()).match(/([\d,]+) slow messages/)[1].replaceAll(",", ""));
    await whole.page.close();
    const run = changed(runs, "fixture-pipeline", "counted", ({ pipeline }) => {
      for (const consumer of pipeline.consumers) consumer.slow = 0;
      pipeline.consumers[0].slow = 1_234_567;
    });
    const { page, said } = await open(browser, page_of(run, "messages-counted"));
    const [some, slow] = [all, 1_234_567].map((n) => n.toLocaleString("en-US"));
    assert.ok((await page.locator(".now").textContent()).includes(`${some} of ${slow} slow messages were recorded one by one (the rest were only counted).`), await page.locator(".now").textContent());
    for (const chart of ["series", "outliers", "culprits", "histograms"]) {
      const text = await page.locator(`[data-chart="${chart}"] > svg.chart`).textContent();
      assert.ok(text.includes(`${some} of ${slow} slow messages (the rest were only counted)`), `${chart}: ${text.slice(0, 300)}`);
    }
    await settled(page);
    assert.deepEqual(said, []);
    await page.close();
  });

  const compared = async (a, b, name) => {
    const file = join(out, `${name}.html`);
    jitterscope("diff", a, b, "--html", file);
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    const said = [];
    page.on("console", (message) => said.push(message.text()));
    await page.goto(`file://${file}`);
    return { page, said };
  };

  await check("a comparison of what cannot be compared says why, once, and judges nothing", async () => {
    const other = changed(runs, "fixture-wakeup", "other", () => {});
    const { page, said } = await compared(join(runs, "fixture-spin"), other, "diff-apart");
    const warning = page.locator(".warning", { hasText: "Not comparable:" });
    assert.equal(await warning.count(), 1);
    const why = await warning.textContent();
    // That another probe measured says all else that differs with it.
    assert.equal(why, "Not comparable: probe: spin in A, wakeup in B. Nothing is judged.");
    assert.equal(await page.locator(".lead").count(), 0);
    const main = await page.locator("main").textContent();
    assert.match(main, /or the runs are not comparable/);
    assert.equal(await page.locator(".good, .bad").count(), 0);
    // A figure that only one has says which.
    const verdicts = await page.locator("table", { has: page.locator("caption", { hasText: "Figures" }) }).locator("tbody td:last-child").allTextContents();
    assert.ok(verdicts.length > 1 && verdicts.every((verdict) => ["", "A has no such figure", "B has no such figure"].includes(verdict)), verdicts.join());
    assert.match(await page.locator("#percentiles").textContent(), /has not measured .*: compare runs of one kind/);
    await looks(page, "diff-apart");
    assert.deepEqual(said, []);
    await page.close();
  });

  await check("a comparison of runs of other machines says what is other", async () => {
    const of = (arch) => changed(runs, "fixture-spin", `machine-${arch}`, () => {}, { settings: { "kernel.arch": [{ is: { value: arch } }] } });
    const { page, said } = await compared(of("x86_64"), of("aarch64"), "diff-machines");
    const warning = await page.locator(".warning", { hasText: "Other machines:" }).textContent();
    assert.match(warning, /the figures do not tell what a setting did\. .*kernel\.arch: x86_64 in A, aarch64 in B/);
    assert.deepEqual(said, []);
    await page.close();
  });
}
