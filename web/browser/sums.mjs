// Whether the charts of sums show what the run holds: what is drawn is read back from their pixels and tips, and
// held against the stalls as `export` writes them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

// The measures of web/src/sums.ts and charts.ts, in CSS pixels.
const LEFT = 66;
const PANEL = 118;
const TOP = 20;
const BARS = { top: 24, line: 24, most: 14, from: 300, beyond: 230 };

/** The stalls of a run, each with its parts. */
function stallsOf(jitterscope, run, began, file) {
  jitterscope("export", run, "--to", `json://${file}`);
  const lines = readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  return lines
    .filter((line) => line.type === "stall")
    .map(({ cpu, start_ns, duration_ns, parts }) => ({
      cpu,
      start: start_ns - began,
      length: duration_ns,
      parts: parts.map(({ kind, name, net_ns }) => ({ name: `${kind} ${name}`, net: net_ns })),
    }));
}

/** Time and stalls of each culprit, the most first. */
function sumsOf(stalls) {
  const sums = new Map();
  for (const { parts } of stalls) {
    for (const { name, net } of parts) {
      const sum = sums.get(name) ?? { name, total: 0, stalls: 0 };
      sums.set(name, { ...sum, total: sum.total + net });
    }
    for (const name of new Set(parts.map((part) => part.name))) sums.get(name).stalls += 1;
  }
  return [...sums.values()].sort((a, b) => b.total - a.total);
}

const withCommas = (n) => n.toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");

/** The bars of the chart of culprits: what each says of itself, and how long it is drawn. */
async function barsOf(page, count) {
  const canvas = page.locator('[data-chart="culprits"] .plot > canvas');
  await canvas.scrollIntoViewIfNeeded();
  const told = [];
  for (let at = 0; at < count; at++) {
    await canvas.hover({ position: { x: BARS.from + 4, y: BARS.top + BARS.line * at + 8 } });
    told.push(await page.locator('[data-chart="culprits"] .tip').textContent());
  }
  const drawn = await canvas.evaluate(
    (canvas, [bars, count]) => {
      const draw = canvas.getContext("2d");
      const lengths = [];
      for (let at = 0; at < count; at++) {
        const { data, width } = draw.getImageData(bars.from, bars.top + bars.line * at, canvas.width - bars.from, bars.line - 8);
        const empty = (x) => {
          for (let i = x; i < width * (bars.line - 8); i += width) if (data[4 * i + 3] > 30) return false;
          return true;
        };
        // Its label stands eight pixels behind its end.
        let [end, gap] = [0, 0];
        for (let x = 0; x < width && gap < 6; x++) [end, gap] = empty(x) ? [end, gap + 1] : [x + 1, 0];
        lengths.push(end);
      }
      return { lengths, room: canvas.clientWidth - bars.beyond - bars.from };
    },
    [BARS, count],
  );
  return { told, ...drawn };
}

/** Where there are sticks in the chart of stalls over time: of each panel the columns, and how high they reach. */
function sticksOf(page, panels) {
  return page.locator('[data-chart="series"] .plot > canvas').evaluate(
    (canvas, [panels, left, panel, top]) => {
      const style = getComputedStyle(document.documentElement);
      const colours = [];
      for (let at = 0, text; (text = style.getPropertyValue(`--s${at}`).trim()) !== ""; at++) colours.push(text.match(/[0-9a-f]{2}/gi).map((hex) => Number.parseInt(hex, 16)));
      const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const isStick = (x, y) => {
        const at = 4 * (y * width + x);
        return data[at + 3] >= 110 && colours.some((colour) => colour.every((value, i) => Math.abs(value - data[at + i]) < 24));
      };
      const found = [];
      for (let at = 0; at < panels; at++) {
        const base = panel * (at + 1);
        const columns = [];
        for (let x = left - 2; x < width; x++) {
          // Between the lowest lines of the grid, and above every bottom.
          if (!isStick(x, base - 5)) continue;
          let y = base - 5;
          // A line of the grid may lie across it.
          while (y > base - panel + top - 2 && (isStick(x, y - 1) || isStick(x, y - 2))) y -= 1;
          columns.push({ x, y });
        }
        found.push(columns);
      }
      return { found, width: Math.max(canvas.clientWidth - left - 8, 50) };
    },
    [panels, LEFT, PANEL, TOP],
  );
}

/** The sticks that there should be: of stalls that share a pixel the longest. */
function expectedSticks(stalls, all, duration, width) {
  const lengths = all.map((stall) => stall.length);
  const low = 10 ** Math.floor(Math.log10(Math.min(...lengths)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...lengths) * 1.001));
  const cpus = [...new Set(all.map((stall) => stall.cpu))].sort((a, b) => a - b);
  return cpus.map((cpu, at) => {
    const longest = new Map();
    for (const stall of stalls.filter((stall) => stall.cpu === cpu)) {
      const column = Math.floor((stall.start / duration) * width);
      if ((longest.get(column)?.length ?? 0) < stall.length) longest.set(column, stall);
    }
    const base = PANEL * (at + 1);
    return [...longest.values()].map(({ start, length }) => ({
      x: LEFT + (start / duration) * width,
      y: base - (Math.log(length / low) / Math.log(high / low)) * (PANEL - TOP),
    }));
  });
}

export async function sums({ browser, check, open, settled, jitterscope, page_of, run, name, out }) {
  const { started_realtime_ns: began, duration_ns: duration } = JSON.parse(jitterscope("report", run, "--json")).run;
  const all = stallsOf(jitterscope, run, began, join(out, `${name}.jsonl`));
  const cpus = new Set(all.map((stall) => stall.cpu)).size;
  const url = page_of(run, name);

  await check("bars and sticks are what the run holds, and what a filter leaves of it", async () => {
    const { page, said } = await open(browser, url);
    const names = sumsOf(all).map((sum) => sum.name);
    const threads = names.filter((name) => name.startsWith("thread "));
    assert.ok(threads.length > 5, `${threads}`);
    for (const culprit of [null, threads[0], threads[threads.length - 1], "timer tick_nohz_handler"]) {
      if (culprit !== null) {
        const of = culprit.split(" ").slice(1).join(" ");
        const button = page.locator("td[data-culprit] button").filter({ hasText: new RegExp(`\\b${of}$`) });
        const rest = page.locator("#culprits details:not([open]) > summary");
        if ((await rest.count()) > 0) await rest.first().click();
        await button.first().click();
        await settled(page);
      }
      const stalls = culprit === null ? all : all.filter(({ parts }) => parts.some((part) => part.name === culprit));
      const wanted = sumsOf(stalls).slice(0, BARS.most);
      const { told, lengths, room } = await barsOf(page, wanted.length);
      const say = ({ name, total, stalls }) => `${name} \u00b7 ${withCommas(total)} ns in ${withCommas(stalls)} ${stalls === 1 ? "stall" : "stalls"}`;
      assert.deepEqual(told, wanted.map(say), `bars of ${culprit}`);
      wanted.forEach(({ total }, at) => {
        const long = Math.max((total / wanted[0].total) * room, 1);
        assert.ok(Math.abs(lengths[at] - long) <= 2, `${culprit}: bar ${at} is ${lengths[at]} px, and should be ${long}`);
      });
      const { found, width } = await sticksOf(page, cpus);
      const expected = expectedSticks(stalls, all, duration, width);
      let held = 0;
      found.forEach((columns, panel) => {
        const sticks = expected[panel] ?? [];
        const near = (x, reach) => sticks.filter((stick) => Math.abs(stick.x - x) <= reach);
        // Of all stalls every pixel has one: then only some can be told apart.
        for (const { x } of columns) assert.ok(near(x + 0.5, 2).length > 0, `${culprit}: a stick at ${x} of panel ${panel} is of no stall`);
        for (const stick of sticks) {
          // Too short to reach where sticks are looked for.
          if (stick.y > PANEL * (panel + 1) - 7) continue;
          // Where two lie on one another, their colours mix.
          const reach = near(stick.x, 2).length > 1 ? 3 : 1.5;
          const drawn = columns.filter(({ x }) => Math.abs(x + 0.5 - stick.x) <= reach);
          assert.ok(drawn.length > 0, `${culprit}: no stick at ${stick.x} of panel ${panel}`);
          if (near(stick.x, 5).length > 1) continue;
          const top = Math.min(...drawn.map(({ y }) => y));
          assert.ok(Math.abs(top - stick.y) <= 2, `${culprit}: the stick at ${stick.x} reaches to ${top}, and should to ${stick.y}`);
          held += 1;
        }
      });
      const count = expected.flat().length;
      assert.ok(culprit === null ? count > 50 && held > 10 : held > 0, `${culprit}: ${held} of ${count} sticks stand apart`);
      if (culprit !== null) {
        await page.locator(".legend button", { hasText: "All" }).click();
        await settled(page);
      }
    }
    // That pixels are read back at all is this check's doing.
    assert.deepEqual(said.filter((text) => !text.includes("willReadFrequently")), []);
    await page.close();
  });
}
