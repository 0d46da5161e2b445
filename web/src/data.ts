// The rows of a run as the page holds them. crates/view/src/html/data.rs writes them and defines their format; both
// have the same version.

import type { Noun } from "./format.js";
import { type Frame, framesOf } from "./frames.js";

const VERSION = 4;

export interface Culprit {
  name: string;
  about: string;
  explained: boolean;
  total_ns: number;
  stalls: number;
  max_ns: number;
  /** Only in a served page. */
  key?: number;
}

export interface Sort {
  culprit: number;
  text: string;
}

export interface Curve {
  name: string;
  measured: string;
  /** If its values are those of moments: the time of all of them; else `null`. */
  moments_ns: number | null;
  points: [number, number][];
  /** The longest of all, if one lies above the curve. */
  longest: [number, number];
}

/** When within a unit of time stalls begin, column by column. */
export interface OffsetMap {
  unit_ns: number;
  units_per_column: number;
  columns: number;
  rows: number;
  counts: number[];
}

/** Numbers in byte planes, lowest byte first. */
interface Place {
  from: number;
  planes: number;
  delta: boolean;
  zigzag: boolean;
}

interface Head {
  version: number;
  /** Whether the page's server has more of the run. */
  served: boolean;
  trace_complete: boolean;
  run: {
    id: string;
    label: string;
    kind: string;
    began_ns: string;
    duration_ns: number;
    threshold_ns: number;
    noun: Noun;
    stalls: number;
    /** Total of slow messages, if only some have rows. */
    slow?: number;
    /** Why no culprit can be named, if the run's evidence fails its own proof. */
    doubt?: string;
  };
  lanes: string[];
  /** The CPU of each lane; 0 for a thread's lane. */
  lane_cpus: number[];
  culprits: Culprit[];
  /** Texts about sorts of parts. */
  texts: string[];
  /** For each sort: the culprit, followed by the texts that say what else is known. */
  sorts: number[][];
  curves: Curve[];
  /** The sums of all stalls, if the page does not have all of them. */
  offsets?: OffsetMap;
  rows: number;
  parts: number;
  columns: Record<string, Place>;
}

/** A run: its stalls by start, each with its parts in `firstPart[i]` to `firstPart[i + 1]`. */
export interface Run {
  head: Head;
  beganNs: bigint;
  sorts: Sort[];
  start: Float64Array;
  length: Float64Array;
  id: Float64Array;
  lane: Float64Array;
  cpu: Float64Array;
  firstPart: Uint32Array;
  sort: Float64Array;
  net: Float64Array;
  around: Float64Array;
  /** How many stretches of time each part sums. */
  turns: Float64Array;
  /** The culprit with the largest part of each stall; -1 without any. */
  leader: Int32Array;
  frames: Map<number, Frame[]>;
  byId: Map<number, number>;
}

/** Decodes a column. Throws if it contradicts its header. */
export function column(bytes: Uint8Array, place: Place, rows: number): Float64Array {
  const out = new Float64Array(rows);
  if (place.from + place.planes * rows > bytes.length) throw new Error("a column ends early");
  // No shifts: numbers have up to 53 bits here.
  for (let plane = 0; plane < place.planes; plane++) {
    const scale = 256 ** plane;
    const from = place.from + plane * rows;
    for (let row = 0; row < rows; row++) out[row] = (out[row] ?? 0) + (bytes[from + row] ?? 0) * scale;
  }
  if (place.zigzag) {
    for (let row = 0; row < rows; row++) {
      const value = out[row] ?? 0;
      out[row] = value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    }
  }
  if (place.delta) for (let row = 1; row < rows; row++) out[row] = (out[row] ?? 0) + (out[row - 1] ?? 0);
  return out;
}

/** Reorders values stored by culprit to the order of the parts. */
function byParts(grouped: Float64Array, culprits: Int32Array, of: number): Float64Array {
  const next = new Uint32Array(of + 1);
  for (const culprit of culprits) next[culprit + 1] = (next[culprit + 1] ?? 0) + 1;
  for (let culprit = 0; culprit < of; culprit++) next[culprit + 1] = (next[culprit + 1] ?? 0) + (next[culprit] ?? 0);
  const out = new Float64Array(grouped.length);
  culprits.forEach((culprit, part) => {
    const at = next[culprit] ?? 0;
    out[part] = grouped[at] ?? 0;
    next[culprit] = at + 1;
  });
  return out;
}

/** Reads inflated data. Throws if it is damaged, or of another version. */
export function parse(bytes: Uint8Array): Run {
  if (bytes.length < 4) throw new Error("there are no data");
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size))) as Head;
  if (head.version !== VERSION) throw new Error(`the data are of version ${head.version}`);
  const body = bytes.subarray(4 + size);
  const of = (name: string, rows: number): Float64Array => {
    const place = head.columns[name];
    if (place === undefined) throw new Error(`there is no column ${name}`);
    return column(body, place, rows);
  };
  const sort = of("sort", head.parts);
  const sorts = head.sorts.map(([culprit = -1, ...texts]) => ({ culprit, text: texts.map((at) => head.texts[at] ?? "").join("; ") }));
  const culprits = Int32Array.from(sort, (sort) => sorts[sort]?.culprit ?? 0);
  const grouped = (name: string): Float64Array => byParts(of(name, head.parts), culprits, head.culprits.length);
  const counts = of("parts", head.rows);
  const firstPart = new Uint32Array(head.rows + 1);
  for (let row = 0; row < head.rows; row++) {
    firstPart[row + 1] = (firstPart[row] ?? 0) + (counts[row] ?? 0);
  }
  const run: Run = {
    head,
    beganNs: BigInt(head.run.began_ns),
    sorts,
    start: of("start", head.rows),
    length: of("length", head.rows),
    id: of("id", head.rows),
    lane: of("lane", head.rows),
    cpu: of("cpu", head.rows),
    firstPart,
    sort,
    net: grouped("net"),
    around: grouped("around"),
    turns: grouped("turns"),
    leader: new Int32Array(head.rows).fill(-1),
    frames: new Map(),
    byId: new Map(),
  };
  for (let row = 0; row < head.rows; row++) {
    run.byId.set(run.id[row] ?? -1, row);
    run.cpu[row] = (run.cpu[row] ?? 0) + (head.lane_cpus[run.lane[row] ?? -1] ?? 0);
    let largest = -1;
    let sum = 0;
    for (let part = firstPart[row] ?? 0; part < (firstPart[row + 1] ?? 0); part++) {
      const net = run.net[part] ?? 0;
      sum += net;
      if (net > largest) {
        largest = net;
        run.leader[row] = culprits[part] ?? -1;
      }
    }
    // The stored value is the remainder that the parts do not cover.
    run.length[row] = (run.length[row] ?? 0) + sum;
  }
  return run;
}

/** The culprit of a part. */
export function culpritOf(run: Run, part: number): number {
  return run.sorts[run.sort[part] ?? -1]?.culprit ?? -1;
}

/** Which stalls have a part of a culprit; all of them for `null`. */
export function having(run: Run, culprit: number | null): Uint8Array {
  const mask = new Uint8Array(run.head.rows);
  if (culprit === null) return mask.fill(1);
  for (let row = 0; row < run.head.rows; row++) {
    for (let part = run.firstPart[row] ?? 0; part < (run.firstPart[row + 1] ?? 0); part++) {
      if (culpritOf(run, part) === culprit) {
        mask[row] = 1;
        break;
      }
    }
  }
  return mask;
}

/** Whether the run has more stalls than the page. */
export function sampled(run: Run): boolean {
  return run.head.run.stalls > run.head.rows;
}

/** Base64 to bytes. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
  return bytes;
}

/** Inflates with the browser's own decompressor. */
async function inflated(text: string): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([fromBase64(text)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Inflates rows and frames, and reads them. */
export async function load(rows: string, frames: string): Promise<Run> {
  const [run, within] = await Promise.all([inflated(rows), inflated(frames)]);
  return { ...parse(run), frames: framesOf(within) };
}

/** A stall in the server's format. */
export interface ServedStall {
  stall: number;
  start_ns: number;
  length_ns: number;
  cpu: number;
  victim: string;
  parts: { name: string; about: string; explained: boolean; text: string; net_ns: number; around_ns: number; turns: number }[];
  frames: Frame[];
  /** Whether its trace is gone. */
  order_lost: boolean;
}

/** Asks the page's server for one stall. Throws if the server does not return it. */
export async function ask(stall: number): Promise<ServedStall> {
  const answer = await fetch(`${location.pathname}/stall/${stall}`, { headers: { accept: "application/json" } });
  if (!answer.ok) throw new Error((await answer.text()).trim().slice(0, 200));
  return (await answer.json()) as ServedStall;
}
