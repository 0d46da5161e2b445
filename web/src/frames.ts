// What ran within some stalls. crates/view/src/html/frames.rs writes it and says its form.

export interface Frame {
  cpu?: number;
  depth: number;
  start_ns: number;
  end_ns: number | null;
  name: string;
  note?: string;
}

interface Whole {
  texts: string[];
  stalls: [number, number[]][];
}

/** The numbers of one frame. */
const EACH = 6;

/** Reads the frames of each stall. Throws where they are damaged. */
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
      const [cpu = -1, depth = 0, since = 0, long = -1, name, note] = numbers.slice(at, at + EACH);
      last += since;
      const told = text(note);
      frames.push({
        ...(cpu >= 0 && { cpu }),
        depth,
        start_ns: last,
        end_ns: long < 0 ? null : last + long,
        name: text(name),
        ...(told !== "" && { note: told }),
      });
    }
    return frames;
  };
  return new Map(whole.stalls.map(([stall, numbers]) => [stall, of(numbers)]));
}
