import assert from "node:assert/strict";
import test from "node:test";
import { capital, count, counted, exact, moment, nines, ns, percent, utc, wall } from "../src/format.js";
import { merged, owned } from "../src/frames.js";
import { summed, sumOf } from "../src/parts.js";
import type { Run } from "../src/data.js";
import { hanging, SERIES, seriesOf } from "../src/look.js";
import { tops } from "../src/pick.js";
import { around, firstLane, LANES_SHOWN, laneInView, marks, moved, within, zoomed } from "../src/scale.js";
import { NOTHING, read, written } from "../src/state.js";

test("numbers are as the text report has them", () => {
  assert.deepEqual([0, 17, 999, 1000, 12_345, 999_499, 999_500, 1_300_000, 47_800_000, 61e9].map(ns), [
    "0 ns", "17 ns", "999 ns", "1.00 us", "12.3 us", "999 us", "1.00 ms", "1.30 ms", "47.8 ms", "61.0 s",
  ]);
  assert.equal(count(1234567), "1,234,567");
  assert.equal(exact(1302113), "1,302,113 ns");
  const noun = { one: "slow message", many: "slow messages" };
  assert.deepEqual([0, 1, 1234].map((n) => counted(n, noun)), ["0 slow messages", "1 slow message", "1,234 slow messages"]);
  assert.equal(capital(noun.one), "Slow message");
  assert.deepEqual([0.412, 0, 1, 0.0001].map(percent), ["41.2 %", "0.0 %", "100.0 %", "<0.1 %"]);
  assert.deepEqual([0, 1, 2, 5].map(nines), ["0 %", "90 %", "99 %", "99.999 %"]);
});

test("times keep their nanoseconds", () => {
  const epoch = 1795213189826000001n;
  assert.equal(utc(epoch), "2026-11-20 22:19:49.826000001 UTC");
  assert.equal(wall(epoch, 1e9), "22:19:49");
  assert.equal(wall(epoch, 1e6), "22:19:49.826");
  assert.equal(moment(3_200_045_000, 1000), "3.200\u2009045 s");
  assert.equal(moment(3e9, 1e9), "3 s");
});

test("a view stays within the run and never shrinks to nothing", () => {
  assert.deepEqual(within({ from: -50, to: 50 }, 1000), { from: 0, to: 100 });
  assert.deepEqual(within({ from: 990, to: 2000 }, 1000), { from: 0, to: 1000 });
  assert.deepEqual(within({ from: 500, to: 500 }, 1000), { from: 500, to: 510 });
  assert.deepEqual(moved({ from: 0, to: 100 }, 0.5, 1000), { from: 50, to: 150 });
  const near = zoomed({ from: 0, to: 1000 }, 250, 0.5, 1000);
  assert.deepEqual(near, { from: 125, to: 625 });
  assert.ok(around(500, 100, 1000).from < 500 && around(500, 100, 1000).to > 600);
});

test("axes are marked at round values", () => {
  assert.deepEqual(marks({ from: 0, to: 60e9 }, 6), { step: 10e9, at: [0, 10e9, 20e9, 30e9, 40e9, 50e9, 60e9] });
  const fine = marks({ from: 1e12 + 3, to: 1e12 + 43 }, 5);
  assert.equal(fine.step, 10);
  assert.deepEqual(fine.at.map((at) => at - 1e12), [10, 20, 30, 40]);
});

test("the eight culprits with most time have a colour of their own, the same in every run", () => {
  const run = (times: number[]): Run => ({ head: { culprits: times.map((total_ns, at) => ({ name: `c${at}`, total_ns })) } }) as unknown as Run;
  const [first, second] = seriesOf([run([90, 80, 70, 60, 50, 40, 30, 20, 10, 5]), run([0, 0, 0, 0, 0, 0, 0, 0, 0, 100])]);
  assert.equal(SERIES, 9);
  // The tenth has more time than any other over both runs.
  assert.deepEqual([...(first ?? [])], [1, 2, 3, 4, 5, 6, 7, 8, 8, 0]);
  assert.deepEqual(second, first);
});

test("an address leads back to the same view", () => {
  const state = { stall: 12, view: { from: 5, to: 900 }, culprit: 3, wall: true, lane: 40 };
  assert.deepEqual(read(written(state)), state);
  assert.equal(written(NOTHING), "");
  assert.deepEqual(read(""), NOTHING);
  assert.equal(read("#culprits"), null);
  assert.deepEqual(read("#stall=<script>&from=9&to=1"), NOTHING);
});

test("of many lanes some are in view, and any can be", () => {
  assert.deepEqual([-3, 0, 7.4, 168, 500].map((wanted) => firstLane(wanted, 200)), [0, 0, 7, 168, 168]);
  assert.equal(firstLane(5, LANES_SHOWN), 0);
  assert.equal(laneInView(10, 10, 200), 10);
  assert.equal(laneInView(10, 10 + LANES_SHOWN - 1, 200), 10);
  for (const lane of [0, 9, 42, 120, 199]) {
    const first = laneInView(10, lane, 200);
    assert.ok(first <= lane && lane < first + LANES_SHOWN && first === firstLane(first, 200), `${lane} from ${first}`);
  }
});

test("frames that no eye could tell apart are one", () => {
  const frame = (depth: number, start_ns: number, end_ns: number | null) => ({ depth, start_ns, end_ns, name: "n" });
  const frames = [frame(0, 0, 1000), frame(1, 10, 12), frame(1, 14, 15), frame(1, 16, null), frame(1, 500, 501), frame(0, 1001, 1002)];
  const shown = (pixel: number) => merged(frames, pixel).map(({ frame, of, from, to }) => [frame.depth, of, from, to]);
  assert.deepEqual(shown(10), [[0, 1, 0, 1000], [1, 3, 10, 16], [1, 1, 500, 501], [0, 1, 1001, 1002]]);
  assert.equal(shown(0.5).length, frames.length);
});

test("parts are summed by culprit, the largest sum first", () => {
  const part = (culprit: number, net: number) => ({ culprit, net, around: 1, turns: net, text: `pid ${net}` });
  const sums = summed([part(7, 50), part(3, 40), part(3, 30)]);
  assert.deepEqual(sums.map(({ culprit, net, around, turns, pieces }) => [culprit, net, around, turns, pieces.map((piece) => piece.net)]), [[3, 70, 2, 70, [40, 30]], [7, 50, 1, 50, [50]]]);
  assert.deepEqual([1, 2, 1234].map(sumOf), ["", ", sum of 2 turns", ", sum of 1,234 turns"]);
});

test("of marks that stand close together the highest is left", () => {
  assert.deepEqual(tops([[0, 9], [5, 2], [13, 4], [15, 7]], 14), [[5, 2], [15, 7]]);
});

test("the mark of a stick is below its end, and below its foot where there is no room in it", () => {
  for (const end of [0, 50, 85, 86, 87, 99]) {
    const middle = hanging(end, 100);
    assert.ok(middle - 3.6 >= end, `${end}: ${middle}`);
    assert.equal(middle - 3.6 >= 100, end > 86, `${end}: ${middle}`);
  }
});

test("frames that the server told have their culprit's colour, whatever they are called", () => {
  const frame = { depth: 0, start_ns: 0, end_ns: 1 };
  const told = [{ ...frame, name: "thread worker", key: 7 }, { ...frame, name: "thread cc1" }, { ...frame, name: "thread other", key: 9 }];
  const culprits = [{ name: "thread worker", key: 3 }, { name: "thread cc1", key: 7 }];
  assert.deepEqual(owned(told, culprits).map((of) => of.culprit), [1, undefined, undefined]);
});
