import assert from "node:assert/strict";
import { deflateRawSync } from "node:zlib";
import test from "node:test";
import { column, having, load, parse } from "../src/data.js";
import { bars, lanes, next, nines } from "../src/pick.js";

function leb(values: number[]): number[] {
  const out: number[] = [];
  for (let value of values) {
    while (value >= 128) {
      out.push((value % 128) + 128);
      value = Math.floor(value / 128);
    }
    out.push(value);
  }
  return out;
}

const zigzag = (value: number): number => (value < 0 ? -2 * value - 1 : 2 * value);

/** Two lanes, three stalls: one of 1 us, one of a second, one without parts. */
function plain(): Uint8Array<ArrayBuffer> {
  const columns: Record<string, { from: number; bytes: number; delta: boolean; zigzag: boolean; split: boolean }> = {};
  const bytes: number[] = [];
  const add = (name: string, values: number[], delta = false, signed = false, split = false): void => {
    const encoded = split
      ? [...values.map((value) => value % 256), ...leb(values.map((value) => Math.floor(value / 256)))]
      : leb(values);
    columns[name] = { from: bytes.length, bytes: encoded.length, delta, zigzag: signed, split };
    bytes.push(...encoded);
  };
  add("start", [100, 900, 2 ** 40], true, false, true);
  add("length", [1000, 1e9, 300], false, false, true);
  add("id", [zigzag(7), zigzag(-4), zigzag(10)], true, true);
  add("lane", [0, 1, 0]);
  add("cpu", [2, 3, 2]);
  add("parts", [2, 1, 0]);
  add("sort", [0, 1, 1]);
  // The last part of a stall is what the others leave of it, and of the second a nanosecond less.
  add("net", [zigzag(400), zigzag(0), zigzag(-1)], false, true);
  add("around", [0, 5, 0]);
  const head = new TextEncoder().encode(
    JSON.stringify({
      version: 1,
      run: { id: "x", label: "<b>", kind: "spin", began_ns: "1795213189826000001", duration_ns: 2 ** 41, threshold_ns: 300, stalls: 3 },
      lanes: ["CPU 2", "CPU 3"],
      culprits: [{ name: "a" }, { name: "b" }],
      sorts: [{ culprit: 0, text: "" }, { culprit: 1, text: "" }],
      curves: [],
      frames: [{ stall: 3, frames: [{ depth: 0, start_ns: 0, end_ns: 5, name: "f" }] }],
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
  const run = await load(deflateRawSync(plain()).toString("base64"));
  assert.deepEqual([...run.start], [100, 1000, 1000 + 2 ** 40]);
  assert.deepEqual([...run.length], [1000, 1e9, 300]);
  assert.deepEqual([...run.id], [7, 3, 13]);
  assert.deepEqual([...run.net], [400, 600, 1e9 - 1]);
  assert.deepEqual([...run.leader], [1, 1, -1]);
  assert.equal(run.beganNs, 1795213189826000001n);
  assert.equal(run.byId.get(13), 2);
  assert.equal(run.frames.get(3)?.[0]?.name, "f");
});

test("what is damaged is told, not drawn", () => {
  assert.throws(() => parse(new Uint8Array(2)), /no data/);
  const whole = plain();
  assert.throws(() => parse(whole.subarray(0, whole.length - 1)), /ends early/);
  assert.throws(() => column(Uint8Array.of(1, 2), { from: 0, bytes: 2, delta: false, zigzag: false, split: false }, 1), /longer/);
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
  assert.deepEqual(nines(run, having(run, null)), { points: [], longest: [Math.log10(3), 1e9] });
  const of = (lengths: number[]): ReturnType<typeof nines> =>
    nines({ ...run, head: { ...run.head, rows: lengths.length }, length: Float64Array.from(lengths) }, new Uint8Array(lengths.length).fill(1));
  const { points, longest } = of([...Array.from({ length: 90 }, () => 100), ...Array.from({ length: 9 }, () => 500), 9000]);
  assert.deepEqual(points[0], [0, 100]);
  assert.ok(Math.abs((points[points.length - 1]?.[0] ?? 0) - 1) < 1e-9, "ten of a hundred lie above 90 %");
  assert.equal(points[points.length - 1]?.[1], 500);
  assert.deepEqual(longest, [2, 9000]);
});
