// What ran within some stalls. crates/view/src/html/frames.rs writes it and defines its format.

export interface Frame {
  cpu?: number;
  depth: number;
  start_ns: number;
  end_ns: number | null;
  name: string;
  note?: string;
  /** The index of the page's culprit. */
  culprit?: number;
  /** The key that links the server's frames with the page's culprits. */
  key?: number;
}

/** Frames from the server, each with its culprit in the page: a thread has its program's colour. */
export function owned(frames: Frame[], culprits: { key?: number }[]): Frame[] {
  const known = new Map(culprits.flatMap(({ key }, at) => (key === undefined ? [] : [[key, at] as const])));
  return frames.map((frame) => {
    const culprit = frame.key === undefined ? undefined : known.get(frame.key);
    return culprit === undefined ? frame : { ...frame, culprit };
  });
}

interface Whole {
  texts: string[];
  stalls: [number, number[]][];
}

/** The numbers of one frame. */
const EACH = 7;

/** Reads the frames of each stall. Throws if they are damaged. */
export function framesOf(bytes: Uint8Array): Map<number, Frame[]> {
  const whole = JSON.parse(new TextDecoder().decode(bytes)) as Whole;
  const text = (at: number | undefined): string => {
    const found = whole.texts[at ?? -1];
    if (found === undefined) throw new Error("a frame has no name");
    return found;
  };
  const of = (numbers: number[]): Frame[] => {
    const frames: Frame[] = [];
    let last = 0;
    for (let at = 0; at + EACH <= numbers.length; at += EACH) {
      const [cpu = -1, depth = 0, since = 0, long = -1, name, note, culprit = -1] = numbers.slice(at, at + EACH);
      last += since;
      const told = text(note);
      frames.push({
        ...(cpu >= 0 && { cpu }),
        depth,
        start_ns: last,
        end_ns: long < 0 ? null : last + long,
        name: text(name),
        ...(told !== "" && { note: told }),
        ...(culprit >= 0 && { culprit }),
      });
    }
    return frames;
  };
  return new Map(whole.stalls.map(([stall, numbers]) => [stall, of(numbers)]));
}

/** Frames drawn as one. */
export interface Merged {
  /** The first of them. */
  frame: Frame;
  of: number;
  from: number;
  to: number;
}

/** Merges neighbours of one depth that are narrower than a pixel and less than a pixel apart: drawn separately they
 * would look like a solid bar. `pixel`: nanoseconds per pixel. */
export function merged(frames: Frame[], pixel: number): Merged[] {
  const out: Merged[] = [];
  const open = new Map<number, Merged>();
  for (const frame of [...frames].sort((a, b) => a.start_ns - b.start_ns)) {
    const to = frame.end_ns ?? frame.start_ns;
    const narrow = to - frame.start_ns < pixel;
    const last = open.get(frame.depth);
    if (narrow && last !== undefined && frame.start_ns - last.to < pixel) {
      last.of += 1;
      last.to = Math.max(last.to, to);
      continue;
    }
    const made = { frame, of: 1, from: frame.start_ns, to };
    out.push(made);
    if (narrow) open.set(frame.depth, made);
    else open.delete(frame.depth);
  }
  return out;
}
