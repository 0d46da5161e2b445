// Pages in a real browser. Arguments: the program, the program that generates runs, and the folder of artefacts;
// then, while something is mended, a text that the names of checks must have in them.
// An unavailable check is reported as SKIPPED; nothing else may be missing.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { accessible } from "./axe.mjs";
import { beside } from "./beside.mjs";
import { details, edit } from "./edited.mjs";
import { counted } from "./counted.mjs";
import { gestures } from "./gestures.mjs";
import { hostileNames } from "./hostile.mjs";
import { lanes } from "./lanes.mjs";
import { named } from "./named.mjs";
import { reader } from "./reader.mjs";
import { sampled } from "./sampled.mjs";
import { serve } from "./serve.mjs";
import { sums } from "./sums.mjs";

const [program, generator, out] = process.argv.slice(2, 5).map((path) => resolve(path));
const only = new RegExp(process.argv[5] ?? "");
const browserPath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const root = resolve(fileURLToPath(import.meta.url), "../../..");
mkdirSync(out, { recursive: true });
const runs = mkdtempSync(join(tmpdir(), "jitterscope-web-"));
const jitterscope = (...args) => execFileSync(program, ["--runs", runs, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
const results = [];

async function check(name, work) {
  if (!only.test(name)) return;
  const begun = Date.now();
  const took = () => `in ${((Date.now() - begun) / 1000).toFixed(1)} s`;
  try {
    await work();
    results.push([name, "passed", took()]);
  } catch (error) {
    results.push([name, "FAILED", took()]);
    console.error(`${name}: ${error.stack ?? error}${error.stderr ?? ""}`);
  }
}

/** A page with everything that it says on the way, and every request that leaves it. */
async function open(browser, url, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  const said = [];
  const requested = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) said.push(message.text());
  });
  page.on("pageerror", (error) => said.push(error.message));
  page.on("request", (request) => {
    if (request.url() !== url.split("#")[0] && !/^(data|blob):/.test(request.url())) requested.push(request.url());
  });
  await page.goto(url);
  await ready(page);
  return { page, said, requested };
}

const ready = (page) => page.waitForFunction(() => document.documentElement.dataset.ready === "yes", null, { timeout: 60_000 });
const settled = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50)))));

/** Nothing wider than the page, and every control has a name. */
async function sound(page) {
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(wider <= 0, `the page is ${wider} px wider than the window`);
  const nameless = await page.evaluate(
    () => [...document.querySelectorAll("button,a[href],input,canvas[tabindex]")].filter((e) => !(e.textContent?.trim() || e.getAttribute("aria-label") || e.labels?.length)).length,
  );
  assert.equal(nameless, 0, "controls without a name");
}

/** Both themes at both widths, sound in each. */
async function looks(page, name) {
  for (const width of [1280, 400]) {
    await page.setViewportSize({ width, height: 900 });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await settled(page);
      await sound(page);
      await page.screenshot({ path: join(out, `${name}-${colorScheme}-${width}.png`), fullPage: true });
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
}

/** In a narrow window charts are as wide as it, and larger for whoever goes to one. */
async function chartsFit(page) {
  await page.setViewportSize({ width: 400, height: 900 });
  const figures = page.locator("figure.wide:visible");
  const count = await figures.count();
  assert.ok(count >= 5, `${count} charts`);
  const beyond = (figure) => figure.evaluate((of) => of.scrollWidth - of.clientWidth);
  for (let at = 0; at < count; at++) {
    const figure = figures.nth(at);
    assert.ok((await beyond(figure)) <= 0, `chart ${at} scrolls sideways`);
    assert.ok(await figure.locator(".enlarge").isVisible(), `chart ${at} does not say how it is enlarged`);
    await figure.focus();
    assert.ok((await figure.locator("svg").boundingBox()).width >= 960, `chart ${at} is no larger with the focus`);
    assert.equal(await figure.locator(".enlarge").isVisible(), false);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}

function stored() {
  const all = [];
  const copied = (kind, name) => {
    const to = join(runs, name);
    cpSync(join(root, "crates/recording/tests/fixtures", kind), to, { recursive: true });
    all.push([name, to]);
    return to;
  };
  for (const kind of ["spin", "wakeup", "attach", "pipeline", "passive"]) copied(kind, `fixture-${kind}`);
  // Two runs of one comparison differ in their ids.
  edit(copied("pipeline", "other-pipeline"), { id: "other1" });
  return all;
}

function recorded() {
  if (process.getuid?.() !== 0) {
    console.error("SKIPPED: fresh recordings, which need root");
    return [];
  }
  const all = [];
  const record = (label, ...args) => {
    // Whoever records here takes turns, by the lock that the Rust tests hold, too.
    const turn = join(tmpdir(), "jitterscope-live-tests.lock");
    execFileSync("flock", [turn, program, "--runs", runs, ...args, "--label", label, "--quiet"], { stdio: ["ignore", "pipe", "pipe"] });
    all.push([label, label]);
  };
  record("fresh-spin", "record", "-d", "1s");
  record("fresh-wakeup", "record", "wakeup", "-d", "1s", "-t", "20us");
  record("fresh-pipeline", "record", "pipeline", "--two-thread", "--duration", "500ms");
  const busy = spawn("sh", ["-c", "while :; do :; done"], { stdio: "ignore" });
  try {
    record("fresh-attach", "attach", "-d", "1s", "--pid", String(busy.pid));
    record("fresh-passive", "record", "none", "--for", String(busy.pid), "--cpus", "all", "-d", "1s");
  } finally {
    busy.kill("SIGKILL");
  }
  return all;
}

const page_of = (run, name, ...args) => {
  const file = join(out, `${name}.html`);
  jitterscope("report", run, "--html", file, ...args);
  return `file://${file}`;
};

const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
try {
  for (const [name, run] of [...stored(), ...recorded()]) {
    await check(`${name}: opens from disk, says nothing, asks for nothing`, async () => {
      const url = page_of(run, name);
      const { page, said, requested } = await open(browser, url);
      await looks(page, name);
      assert.deepEqual(said, []);
      assert.deepEqual(requested, []);
      await page.close();
    });
  }

  execFileSync(generator, [runs, "100000"]);
  execFileSync(generator, [runs, "10"]);
  const framed = join(out, "framed.html");
  const told = execFileSync(generator, [runs, "100000", `page=${framed}`], { encoding: "utf8" });
  const hostile = execFileSync(generator, [runs, "1000", "hostile"], { encoding: "utf8" }).trim().split("\n");
  const large = page_of("generated-100000", "generated-100000");
  const small = page_of("generated-10", "generated-10");

  await check("100,000 stalls with their parts fit into 1.5 MB", async () => {
    const size = statSync(join(out, "generated-100000.html")).size;
    console.error(`  ${size} bytes`);
    assert.ok(size <= 1.5e6, `${size} bytes`);
  });

  await check("with frames of the worst stalls and of some of each culprit they do, too, and the page says where the others are", async () => {
    const size = statSync(framed).size;
    console.error(`  ${size} bytes; ${told.trim()}`);
    assert.ok(size <= 1.5e6, `${size} bytes`);
    const [, of, all] = told.match(/^(\d+) of (\d+) stalls/).map(Number);
    assert.ok(all > 150 && of === all, told);
    const { page, said } = await open(browser, `file://${framed}`);
    assert.match(await page.locator(".now").textContent(), new RegExp(`Of ${of} stalls the frames are in this page .* lie in the run only`));
    await page.locator("#worst tbody a").first().click();
    await settled(page);
    assert.equal(await page.locator(".panel table.frames tbody tr").count(), 40);
    // One that is none of them.
    await page.evaluate(() => (location.hash = "#stall=5"));
    await settled(page);
    assert.match(await page.locator(".panel").textContent(), /they lie in the run only.*jitterscope report \S+ --stall 5/);
    assert.deepEqual(said, []);
    await page.close();
  });

  await check("100,000 stalls load and are drawn in no more than so many times of what ten take", async () => {
    const took = async (url) => {
      const { page, said } = await open(browser, url);
      const loads = [];
      for (let i = 0; i < 3; i++) {
        const begun = Date.now();
        await page.reload();
        await ready(page);
        loads.push(Date.now() - begun);
      }
      await page.locator("#timeline .canvas canvas").focus();
      for (let i = 0; i < 8; i++) {
        await page.keyboard.press(i % 2 ? "-" : "+");
        await settled(page);
      }
      const draws = await page.evaluate(() => performance.getEntriesByName("jitterscope-draw").map((entry) => entry.duration));
      assert.deepEqual(said, []);
      await page.close();
      // The first draws everything; those after it are what a hand waits for.
      const redraws = draws.slice(2).sort((a, b) => a - b);
      return { load: loads.sort((a, b) => a - b)[1], redraw: redraws[redraws.length >> 1] };
    };
    const [empty, full] = [await took(small), await took(large)];
    const ratio = { load: full.load / empty.load, redraw: full.redraw / Math.max(empty.redraw, 0.5) };
    console.error(`  load ${ratio.load.toFixed(1)} times, redraw ${ratio.redraw.toFixed(1)} times`);
    assert.ok(ratio.load < 12, `load ${ratio.load}`);
    assert.ok(ratio.redraw < 40, `redraw ${ratio.redraw}`);
  });

  await check("a click on a culprit filters everything, and the address keeps it", async () => {
    const { page, said } = await open(browser, large);
    const before = await page.locator(".now").textContent();
    const cell = page.locator("td[data-culprit] button", { hasText: "vmstat_update" });
    await cell.click();
    await settled(page);
    const after = await page.locator(".now").textContent();
    assert.match(before, /100,000 stalls\./);
    assert.match(after, / 1 stall with kworker vmstat_update\./);
    assert.equal(await cell.getAttribute("aria-pressed"), "true");
    assert.equal(await page.locator("#worst tbody tr:visible").count(), 1);
    assert.match(await page.locator("#worst").textContent(), /longest stalls 1 have a part of kworker vmstat_update/);
    await page.waitForFunction(() => location.hash.includes("culprit="));
    await page.reload();
    await ready(page);
    assert.match(await page.locator(".now").textContent(), / 1 stall with /);
    await page.locator(".legend button", { hasText: "All" }).click();
    await settled(page);
    assert.match(await page.locator(".now").textContent(), /100,000 stalls\./);
    assert.deepEqual(said, []);
    await page.close();
  });

  await check("the charts of sums follow the filter", async () => {
    const { page, said } = await open(browser, large);
    const label = (chart) => page.locator(`[data-chart="${chart}"] .plot > canvas`).getAttribute("aria-label");
    const pixels = (chart) => page.locator(`[data-chart="${chart}"] .plot > canvas`).evaluate((canvas) => canvas.toDataURL());
    assert.doesNotMatch(await label("culprits"), /of stalls with/);
    const all = await pixels("series");
    await page.locator("td[data-culprit] button", { hasText: "vmstat_update" }).click();
    await settled(page);
    assert.match(await label("culprits"), /of stalls with kworker vmstat_update/);
    const one = await pixels("series");
    assert.notEqual(one, all);
    // A click on the only bar lets go of it.
    await page.locator('[data-chart="culprits"] .plot > canvas').click({ position: { x: 320, y: 32 } });
    await settled(page);
    assert.doesNotMatch(await label("culprits"), /of stalls with/);
    assert.ok((await pixels("series")) === all, "all of them again");
    // Who chooses an outlier is brought to it; what the marks stand for is beneath them.
    assert.ok((await page.locator('[data-chart="outliers"] .keys li:visible').count()) > 0, "a key");
    await page.locator('[data-chart="outliers"] .plot > canvas').focus();
    for (const key of ["ArrowRight", "Enter"]) await page.keyboard.press(key);
    await settled(page);
    assert.ok(Math.abs((await page.locator("#timeline").boundingBox()).y) < 60, "the timeline is in sight");
    // In print the images stand in their place.
    await page.emulateMedia({ media: "print" });
    assert.ok(await page.locator('[data-chart="series"] > svg.chart').isVisible());
    assert.deepEqual(said, []);
    await page.close();
  });

  await sums({ browser, check, open, settled, jitterscope, page_of, run: join(runs, "fixture-spin"), name: "fixture-spin", out });

  await check("watched CPUs and followed threads have a first view of their own", async () => {
    for (const [name, section, words] of [["fixture-passive", "watched", /interrupted \(stolen\)/], ["fixture-attach", "threads", /What became of each thread's time/]]) {
      const { page } = await open(browser, `file://${join(out, `${name}.html`)}`);
      assert.match(await page.locator(`#${section} svg.chart`).first().textContent(), words);
      assert.ok((await page.locator(`#${section} table`).count()) > 0);
      await page.close();
    }
  });

  await check("the worst stall leads into the timeline and shows its parts; keys and wheel zoom", async () => {
    const { page, said } = await open(browser, large);
    await page.locator("#worst tbody a").first().click();
    await settled(page);
    const panel = page.locator(".panel");
    assert.match(await panel.textContent(), /30,000,000 ns/);
    assert.match(await panel.textContent(), /kworker vmstat_update/);
    assert.match(await panel.textContent(), /100\.0 %/);
    const inView = async () => (await page.locator(".now").textContent()).split(" in view")[0];
    const near = await inView();
    assert.match(near, / ms$/);
    const canvas = page.locator("#timeline .canvas canvas");
    await canvas.focus();
    for (let i = 0; i < 22; i++) await page.keyboard.press("+");
    await settled(page);
    assert.match(await inView(), / ns$/);
    await page.keyboard.press("Enter");
    await settled(page);
    assert.equal(await inView(), near);
    const box = await canvas.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + 90);
    await page.mouse.wheel(0, -400);
    await settled(page);
    assert.notEqual(await inView(), near);
    await page.keyboard.press("Home");
    await page.keyboard.press("p");
    await settled(page);
    assert.doesNotMatch(await panel.textContent(), /30,000,000 ns/);
    await page.keyboard.press("Escape");
    await settled(page);
    assert.match(await panel.textContent(), /Choose a stall/);
    assert.deepEqual(said, []);
    await page.close();
  });

  await check("a stall's frames are on the same axis, down to nanoseconds", async () => {
    const { page, said } = await open(browser, `file://${join(out, "fixture-spin.html")}`);
    await page.locator("#worst tbody a").first().click();
    await settled(page);
    const rows = await page.locator(".panel table.frames tbody tr").count();
    assert.ok(rows > 1, `${rows} frames`);
    await page.screenshot({ path: join(out, "stall-light-1280.png") });
    assert.deepEqual(said, []);
    await page.close();
  });

  await check("a doubtful run says so beside each stall's culprits, and a sound one does not", async () => {
    const folder = join(runs, "doubtful");
    cpSync(join(root, "crates/recording/tests/fixtures/spin"), folder, { recursive: true });
    edit(folder, {}, (details) => {
      details.events_in_gaps.inside = Math.floor(details.events_in_gaps.events / 2);
    });
    for (const [name, doubted] of [["fixture-spin", false], ["doubtful", true]]) {
      const { page, said } = await open(browser, page_of(folder.replace("doubtful", name), `${name}-doubt`));
      await page.locator("#worst tbody a").first().click();
      await settled(page);
      const told = await page.locator(".panel").textContent();
      assert.match(told, /Whose time it became/);
      assert.equal(/The culprits are unknown: only \d+\.\d % of/.test(told), doubted, told);
      assert.deepEqual(said, []);
      await page.close();
    }
  });

  await hostileNames({ browser, check, open, ready, settled, sound, jitterscope, page_of, runs: hostile, stored: runs, generator, out });
  await counted({ browser, check, open, settled, looks, jitterscope, page_of, runs, out });
  await lanes({ browser, check, open, settled, generator, page_of, runs, out });
  await reader({ browser, check, open, ready, settled, small, large, out });
  await gestures({ browser, check, open, settled, jitterscope, large, out });
  await accessible({ browser, check, open, settled, jitterscope, out });
  await named({ browser, check, open, settled, out });
  await beside({ browser, check, settled, jitterscope, out });
  await sampled({ browser, check, open, settled, generator, page_of, runs, out });

  await check("what the audit found is in the page, each with what it would win", async () => {
    const folder = execFileSync(generator, [runs, "1000", "findings"], { encoding: "utf8" }).trim();
    const { page, said } = await open(browser, page_of(folder, "findings"));
    const section = page.locator("#settings");
    const winning = section.locator("table").first();
    assert.match(await winning.textContent(), /Memory statistics/);
    assert.match(await winning.textContent(), /30\.0 ms.*vmstat_update/);
    assert.match(await winning.textContent(), /stat_interval 1 <script>.*at least 10/);
    await section.locator("details > summary", { hasText: "1 more, which would win nothing" }).click();
    assert.match(await section.textContent(), /writeback.*nothing that was measured/);
    await section.locator("details > summary", { hasText: "could not be read" }).click();
    assert.match(await section.textContent(), /<b>it is guarded<\/b>/);
    assert.match(await section.textContent(), /jitterscope tune plan --run \S+/);
    await section.screenshot({ path: join(out, "findings.png") });
    assert.deepEqual(said, []);
    await page.close();
  });

  await check("the policy stops a script that got in all the same", async () => {
    const { page, said } = await open(browser, small);
    const ran = await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "window.ranAnyway = true";
      document.body.append(script);
      const image = new Image();
      image.src = "http://127.0.0.1:9/x.png";
      return "ranAnyway" in window;
    });
    assert.equal(ran, false);
    await page.waitForTimeout(100);
    assert.ok(said.some((text) => text.includes("Content Security Policy")), said.join("\n"));
    await page.close();
  });

  await check("without a script the page is complete", async () => {
    const page = await browser.newPage({ javaScriptEnabled: false });
    await page.goto(small);
    for (const section of ["verdict", "culprits", "percentiles", "outliers", "offsets", "worst", "trust", "machine"]) {
      assert.ok(await page.locator(`#${section}`).isVisible(), section);
    }
    assert.ok((await page.locator("svg.chart").count()) >= 5);
    for (const link of await page.locator('nav a:visible, main a[href^="#"]').all()) {
      const to = await link.getAttribute("href");
      assert.equal(await page.locator(to).count(), 1, `${to} leads nowhere`);
    }
    await chartsFit(page);
    // Without a script nothing tells when a frame has been drawn: a screenshot waits for it by itself.
    for (const width of [1280, 400]) {
      await page.setViewportSize({ width, height: 900 });
      await page.screenshot({ path: join(out, `static-light-${width}.png`), fullPage: true });
    }
    await page.close();
  });

  await check("a redacted page names nobody", async () => {
    // The fixture's own host and command line are everyday words.
    const named = join(runs, "named");
    cpSync(join(runs, "fixture-spin"), named, { recursive: true });
    edit(named, { hostname: "trading-7" }, (of) => {
      [of.host.hostname, of.host.cmdline] = ["trading-7", "root=UUID=5ec2e7 quiet"];
      of.command_line.push("/home/alice/run");
    });
    page_of(named, "redacted", "--redact");
    const text = readFileSync(join(out, "redacted.html"), "utf8");
    const { page } = await open(browser, `file://${join(out, "redacted.html")}`);
    const shown = await page.locator("body").textContent();
    const { host, command_line } = details(named);
    const facts = [await page.locator(".facts").textContent(), ...(await page.locator("#machine dd").allTextContents())];
    assert.ok(facts.every((fact) => !fact.split(" \u00b7 ").includes(host.hostname)), facts.join("\n"));
    for (const name of [host.cmdline, ...command_line.filter((word) => word.includes("/")), runs].filter((name) => name !== "")) {
      assert.ok(!text.includes(name) && !shown.includes(name), name);
    }
    await page.close();
  });

  await check("a comparison is a page of its own", async () => {
    const file = join(out, "diff.html");
    jitterscope("diff", "generated-10", "generated-100000", "--html", file);
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    const said = [];
    page.on("console", (message) => said.push(message.text()));
    await page.goto(`file://${file}`);
    assert.match(await page.locator("h1").textContent(), /generated-10 beside generated-100000/);
    assert.match(await page.locator("main").textContent(), /tick_nohz_handler/);
    assert.equal(await page.locator("#percentiles svg.chart").count(), 1);
    assert.equal(await page.locator("#outliers svg.chart").count(), 2);
    for (const section of ["series", "outliers"]) {
      const marks = await page.locator(`#${section} svg.chart`).evaluateAll((charts) =>
        charts.map((chart) => [...chart.querySelectorAll('text[text-anchor="end"].num')].map((text) => `${text.textContent} at ${text.getAttribute("y")}`)),
      );
      assert.ok(marks.length === 2 && marks[0].length > 3, `${section}: ${marks}`);
      // A lane more is a panel more; what both have is on the same scale.
      const [few, many] = marks.sort((a, b) => a.length - b.length);
      assert.deepEqual(many.slice(0, few.length).map((mark) => mark.split(" at ")[0]), few.map((mark) => mark.split(" at ")[0]), section);
    }
    // A table behind each chart, and what became of each CPU.
    for (const [section, count] of [["percentiles", 1], ["culprits", 2], ["series", 2], ["outliers", 2]]) {
      assert.equal(await page.locator(`#${section} table`).count(), count, section);
    }
    const cpus = page.locator("table", { has: page.locator("caption", { hasText: "CPUs that both measured" }) });
    assert.deepEqual(await cpus.locator("tbody td:first-child").allTextContents(), ["1", "2"]);
    await chartsFit(page);
    await looks(page, "diff");
    assert.deepEqual(said, []);
    await page.close();
  });

  await check("a redacted comparison names nobody, and calls a thread the same throughout", async () => {
    const file = join(out, "diff-redacted.html");
    jitterscope("diff", "generated-10", hostile[0], "--redact", "--html", file);
    const text = readFileSync(file, "utf8");
    for (const name of ["got in", "generated-10", "script>a()", runs]) assert.ok(!text.includes(name), name);
    const page = await browser.newPage();
    await page.goto(`file://${file}`);
    assert.match(await page.locator("h1").textContent(), /label-1 beside label-2/);
    const inTable = (await page.locator("main table td").allTextContents()).join(" ").match(/thread thread-\d+/g) ?? [];
    const inCharts = (await page.locator("svg.chart text").allTextContents()).join(" ").match(/thread thread-\d+/g) ?? [];
    assert.ok(inCharts.every((name) => inTable.includes(name)), `${inCharts} / ${inTable}`);
    await page.close();
  });

  if (jitterscope("--help").includes("serve")) {
    await serve({ browser, program, runs, out, check, looks, ready, settled, sound });
  }
} finally {
  await browser.close();
  rmSync(runs, { recursive: true, force: true });
}

for (const [name, result, took] of results) console.error(`${result} ${name} ${took}`);
const failed = results.filter(([, result]) => result !== "passed").length;
console.error(`${results.length} checks, ${failed} failed; screenshots are in ${out}`);
process.exitCode = failed === 0 && existsSync(out) ? 0 : 1;
