// The rows of a run as the page holds them. crates/view/src/html/data.rs writes them and says their form; the
// two have one version.

const VERSION = 1;

export interface Culprit {
  name: string;
  about: string;
  explained: boolean;
  total_ns: number;
  stalls: number;
  max_ns: number;
}

export interface Sort {
  culprit: number;
  text: string;
}

export interface Curve {
  name: string;
  measured: string;
  points: [number, number][];
  /** The longest of all, where one of all lies above. */
  longest: [number, number];
}

export interface Frame {
  cpu?: number;
  depth: number;
  start_ns: number;
  end_ns: number | null;
  name: string;
  note?: string;
}

interface Place {
  from: number;
  bytes: number;
  delta: boolean;
  zigzag: boolean;
  split: boolean;
}

interface Head {
  version: number;
  /** Whether more of the run can be had from where the page came from. */
  served: boolean;
  run: {
    id: string;
    label: string;
    kind: string;
    began_ns: string;
    duration_ns: number;
    threshold_ns: number;
    stalls: number;
    /** Why who did it cannot be said, where the evidence of the run fails its own proof. */
    doubt?: string;
  };
  lanes: string[];
  culprits: Culprit[];
  sorts: Sort[];
  curves: Curve[];
  frames: { stall: number; frames: Frame[] }[];
  rows: number;
  parts: number;
  columns: Record<string, Place>;
}

/** A run: its stalls by start, each with its parts in `firstPart[i]` to `firstPart[i + 1]`. */
export interface Run {
  head: Head;
  beganNs: bigint;
  start: Float64Array;
  length: Float64Array;
  id: Float64Array;
  lane: Float64Array;
  cpu: Float64Array;
  firstPart: Uint32Array;
  sort: Float64Array;
  net: Float64Array;
  around: Float64Array;
  /** The culprit with the largest part of each stall; -1 without any. */
  leader: Int32Array;
  frames: Map<number, Frame[]>;
  byId: Map<number, number>;
}

/** Decodes a column of LEB128 numbers. Throws where it is not what it says. */
export function column(bytes: Uint8Array, place: Place, rows: number): Float64Array {
  const out = new Float64Array(rows);
  // Of a split column the lowest bytes stand first.
  let at = place.from + (place.split ? rows : 0);
  const end = place.from + place.bytes;
  let last = 0;
  for (let row = 0; row < rows; row++) {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = at < end ? bytes[at] : undefined;
      if (byte === undefined) throw new Error("a column ends early");
      at += 1;
      // Not by shifts: numbers have up to 53 bits here.
      value += (byte & 0x7f) * scale;
      scale *= 128;
      if (byte < 0x80) break;
    }
    if (place.split) value = value * 256 + (bytes[place.from + row] ?? 0);
    if (place.zigzag) value = value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    last = place.delta ? last + value : value;
    out[row] = last;
  }
  if (at !== end) throw new Error("a column is longer than it should be");
  return out;
}

/** Reads what was inflated. Throws where it is damaged, or of another version. */
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
  const counts = of("parts", head.rows);
  const firstPart = new Uint32Array(head.rows + 1);
  for (let row = 0; row < head.rows; row++) {
    firstPart[row + 1] = (firstPart[row] ?? 0) + (counts[row] ?? 0);
  }
  const run: Run = {
    head,
    beganNs: BigInt(head.run.began_ns),
    start: of("start", head.rows),
    length: of("length", head.rows),
    id: of("id", head.rows),
    lane: of("lane", head.rows),
    cpu: of("cpu", head.rows),
    firstPart,
    sort: of("sort", head.parts),
    net: of("net", head.parts),
    around: of("around", head.parts),
    leader: new Int32Array(head.rows).fill(-1),
    frames: new Map(head.frames.map((frames) => [frames.stall, frames.frames])),
    byId: new Map(),
  };
  for (let row = 0; row < head.rows; row++) {
    run.byId.set(run.id[row] ?? -1, row);
    let largest = -1;
    let left = run.length[row] ?? 0;
    const end = firstPart[row + 1] ?? 0;
    for (let part = firstPart[row] ?? 0; part < end; part++) {
      // Of the last part only what the others do not say is stored.
      const net = (run.net[part] ?? 0) + (part === end - 1 ? left : 0);
      run.net[part] = net;
      left = Math.max(left - net, 0);
      if (net > largest) {
        largest = net;
        run.leader[row] = culpritOf(run, part);
      }
    }
  }
  return run;
}

/** The culprit of a part. */
export function culpritOf(run: Run, part: number): number {
  return run.head.sorts[run.sort[part] ?? -1]?.culprit ?? -1;
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

/** Base64 to bytes. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
  return bytes;
}

/** Inflates with the browser's own means, and reads. */
export async function load(text: string): Promise<Run> {
  const stream = new Blob([fromBase64(text)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return parse(new Uint8Array(await new Response(stream).arrayBuffer()));
}

/** A stall as the server tells it. */
export interface Told {
  stall: number;
  start_ns: number;
  length_ns: number;
  cpu: number;
  victim: string;
  parts: { name: string; about: string; explained: boolean; text: string; net_ns: number; around_ns: number }[];
  frames: Frame[];
}

/** Asks the server of this page for one stall. Throws where it does not tell it. */
export async function ask(stall: number): Promise<Told> {
  const answer = await fetch(`${location.pathname}/stall/${stall}`, { headers: { accept: "application/json" } });
  if (!answer.ok) throw new Error((await answer.text()).trim().slice(0, 200));
  return (await answer.json()) as Told;
}
