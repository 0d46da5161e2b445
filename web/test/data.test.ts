import assert from "node:assert/strict";
import { deflateRawSync } from "node:zlib";
import test from "node:test";
import { column, having, load, parse } from "../src/data.js";
import { framesOf } from "../src/frames.js";
import { aligned, bars, lanes, leftOut, namesOfSeries, next, nines, shade, shades } from "../src/pick.js";

const zigzag = (value: number): number => (value < 0 ? -2 * value - 1 : 2 * value);

/** Two lanes, three stalls: one of 1 us, one of a second, one without parts. */
function plain(): Uint8Array<ArrayBuffer> {
  const columns: Record<string, { from: number; planes: number; delta: boolean; zigzag: boolean }> = {};
  const bytes: number[] = [];
  const add = (name: string, values: number[], delta = false, signed = false): void => {
    const planes = Math.ceil(Math.log2(Math.max(...values) + 1) / 8);
    columns[name] = { from: bytes.length, planes, delta, zigzag: signed };
    for (let plane = 0; plane < planes; plane++) bytes.push(...values.map((value) => Math.floor(value / 256 ** plane) % 256));
  };
  add("start", [100, 900, 2 ** 40], true);
  // What the parts of each do not say: nothing, a nanosecond, and all of it where there are none.
  add("length", [zigzag(0), zigzag(1), zigzag(300)], false, true);
  add("id", [zigzag(7), zigzag(-4), zigzag(10)], true, true);
  add("lane", [0, 1, 0]);
  // What the lane does not say.
  add("cpu", [zigzag(0), zigzag(0), zigzag(-1)], false, true);
  add("parts", [2, 1, 0]);
  add("sort", [1, 0, 1]);
  // By culprits: that of the first has the second part.
  add("net", [400, 600, 1e9 - 1]);
  add("around", [0, 7, 5]);
  add("turns", [1, 300, 2]);
  const head = new TextEncoder().encode(
    JSON.stringify({
      version: 4,
      run: { id: "x", label: "<b>", kind: "spin", began_ns: "1795213189826000001", duration_ns: 2 ** 41, threshold_ns: 300, noun: { one: "stall", many: "stalls" }, stalls: 3 },
      lanes: ["CPU 2", "CPU 3"],
      lane_cpus: [2, 3],
      culprits: [{ name: "a" }, { name: "b" }],
      texts: ["at", "by"],
      sorts: [[0, 1], [1, 0, 1]],
      curves: [],
      rows: 3,
      parts: 3,
      columns,
    }),
  );
  const out = new Uint8Array(4 + head.length + bytes.length);
  new DataView(out.buffer).setUint32(0, head.length, true);
  out.set(head, 4);
  out.set(bytes, 4 + head.length);
  return out;
}

test("a run is read as it was written", async () => {
  const within = { texts: ["f", "", "said"], stalls: [[3, [-1, 0, 10, 5, 0, 1, 1, 2, 1, -4, -1, 0, 2, -1]]] };
  const packed = (plain: Uint8Array): string => deflateRawSync(plain).toString("base64");
  const run = await load(packed(plain()), packed(new TextEncoder().encode(JSON.stringify(within))));
  assert.deepEqual([...run.start], [100, 1000, 1000 + 2 ** 40]);
  assert.deepEqual([...run.length], [1000, 1e9, 300]);
  assert.deepEqual([...run.id], [7, 3, 13]);
  assert.deepEqual([...run.cpu], [2, 3, 1]);
  assert.deepEqual(run.sorts[1], { culprit: 1, text: "at; by" });
  assert.deepEqual([...run.net], [600, 400, 1e9 - 1]);
  assert.deepEqual([...run.around], [7, 0, 5]);
  assert.deepEqual([...run.turns], [300, 1, 2]);
  assert.deepEqual([...run.leader], [1, 1, -1]);
  assert.equal(run.beganNs, 1795213189826000001n);
  assert.equal(run.byId.get(13), 2);
  assert.deepEqual(run.frames.get(3), [
    { depth: 0, start_ns: 10, end_ns: 15, name: "f", culprit: 1 },
    { cpu: 2, depth: 1, start_ns: 6, end_ns: null, name: "f", note: "said" },
  ]);
});

test("damaged data is reported and not drawn", () => {
  assert.throws(() => parse(new Uint8Array(2)), /no data/);
  const whole = plain();
  assert.throws(() => parse(whole.subarray(0, whole.length - 1)), /ends early/);
  assert.throws(() => column(Uint8Array.of(1, 2), { from: 0, planes: 3, delta: false, zigzag: false }, 1), /ends early/);
  assert.throws(() => framesOf(new TextEncoder().encode('{"texts":["f"],"stalls":[[1,[0,0,0,0,0,1,-1]]]}')), /no name/);
});

test("a filter keeps the stalls with a part of a culprit", () => {
  const run = parse(plain());
  assert.deepEqual([...having(run, 0)], [1, 0, 0]);
  assert.deepEqual([...having(run, 1)], [1, 1, 0]);
  assert.deepEqual([...having(run, null)], [1, 1, 1]);
  assert.equal(next(having(run, 0), 1, -1), 0);
  assert.equal(next(having(run, 0), 0, 1), 0);
});

test("of stalls that share a pixel the longest is drawn, and one that began before the view too", () => {
  const run = parse(plain());
  const of = lanes(run);
  const drawn = (lane: number, from: number, to: number): number[] => {
    const rows: number[] = [];
    bars(run, of, lane, having(run, null), { from, to }, 10, (row) => rows.push(row));
    return rows;
  };
  assert.deepEqual(drawn(0, 0, 2 ** 41), [0, 2]);
  assert.deepEqual(drawn(0, 0, 2 ** 60), [0]);
  assert.deepEqual(drawn(1, 5e8, 6e8), [1]);
  assert.deepEqual(drawn(1, 2e9, 3e9), []);
});

test("nines of lengths end where ten lie above, and the longest is told apart", () => {
  const run = parse(plain());
  // Of three nothing can be said but which is the longest.
  assert.deepEqual(nines(run, having(run, null), null), { points: [], longest: [Math.log10(3), 1e9] });
  const of = (lengths: number[], momentsNs: number | null = null): ReturnType<typeof nines> =>
    nines({ ...run, head: { ...run.head, rows: lengths.length }, length: Float64Array.from(lengths) }, new Uint8Array(lengths.length).fill(1), momentsNs);
  const { points, longest } = of([...Array.from({ length: 90 }, () => 100), ...Array.from({ length: 9 }, () => 500), 9000]);
  assert.deepEqual(points[0], [0, 100]);
  assert.ok(Math.abs((points[points.length - 1]?.[0] ?? 0) - 1) < 1e-9, "ten of a hundred lie above 90 %");
  assert.equal(points[points.length - 1]?.[1], 500);
  assert.deepEqual(longest, [2, 9000]);
  // All of a millisecond is stalls, and one takes 910 us of it: a moment waits 100 us or more in 81 % of it.
  const lost = of([...Array.from({ length: 90 }, () => 1e3), 910e3], 1e6);
  const [x, wait] = lost.points[lost.points.length - 1] ?? [0, 0];
  assert.ok(Math.abs(wait / (910e3 / 11) - 1) < 0.06, "ten such waits lie above");
  assert.ok(Math.abs(x + Math.log10((910e3 - wait) / 1e6)) < 1e-9 && x < lost.longest[0]);
  assert.equal(lost.longest[1], 910e3);
});

test("a page that has not all stalls says so wherever it shows some, and how many of those that are meant", () => {
  const run = parse(plain());
  const said = (stalls: number, culprit: number | null, whole: boolean): string =>
    leftOut({ ...run, head: { ...run.head, run: { ...run.head.run, stalls }, culprits: [{ name: "a", stalls: 40 }, { name: "b", stalls: 1 }] as typeof run.head.culprits } }, having(run, culprit), culprit, whole);
  assert.equal(said(3, null, false) + said(3, 0, false) + said(3, 0, true), "");
  assert.equal(said(90_000, null, true), "");
  assert.match(said(90_000, null, false), /Of 90,000 stalls 3 are in this page/);
  for (const whole of [true, false]) assert.match(said(90_000, 0, whole), /3 stalls in this page, which are a sample of 90,000: 1 of the 40 with a\./);
  // An idle control's stalls are in no sum.
  assert.match(said(90_000, 1, true), /: 2 of the 2 with b\./);
});

test("between a line's end and its longest there is nothing, whatever points another line has there", () => {
  const { xs, lines } = aligned([
    { points: [[0, 10], [2, 20]], longest: [3, 90] },
    { points: [[0, 10], [1, 15], [2.75, 30]], longest: [3.5, 95] },
  ]);
  assert.deepEqual(xs, [0, 1, 2, 2.5, 2.75, 3, 3.125, 3.5]);
  assert.deepEqual(lines[0], [10, undefined, 20, null, null, 90, undefined, undefined]);
  assert.deepEqual(lines[1], [10, 15, undefined, undefined, 30, null, null, 95]);
});

test("a key names what is drawn, and nothing else", () => {
  const run = parse(plain());
  // The second leads two stalls, the third was only counted.
  assert.deepEqual(namesOfSeries(run, having(run, null), [0, 1]), [{ series: 0, name: "not attributed" }, { series: 1, name: "b" }]);
  assert.deepEqual(namesOfSeries(run, Uint8Array.from([1, 1, 0]), [0, 1]), [{ series: 1, name: "b" }]);
  assert.deepEqual(namesOfSeries(run, having(run, null), [0, 0]), [{ series: 0, name: "b, not attributed" }]);
  assert.deepEqual(namesOfSeries(run, new Uint8Array(3), [0, 1]), []);
});

test("shades part all numbers between them, and the key has those in use", () => {
  for (const most of [6, 40, 1_000, 123_456]) {
    const counts = Array.from({ length: Math.min(most, 2_000) }, (_, at) => at + 1).concat(most);
    const used = shades(counts, most);
    let next = used[0]?.from ?? 0;
    assert.equal(next, 1);
    for (const { shade: of, from, to } of used) {
      assert.ok(from >= next && from <= to, `${of} of ${most}`);
      for (const n of [from, to]) assert.equal(shade(n, most), of, `${n} of ${most}`);
      next = to + 1;
    }
    assert.equal(next, most + 1);
  }
  assert.deepEqual(shades([0, 0], 6), []);
});
