// Colours and patterns of culprits: the same order in every chart, and never by colour alone.

import type { Run } from "./data.js";

/** Number of distinct series; the last one is for all other culprits. */
export const SERIES = 9;

export interface Look {
  paper: string;
  ink: string;
  muted: string;
  line: string;
  soft: string;
  accent: string;
  mark: string;
  series: string[];
  heat: string[];
  /** The fill of a series' bars. */
  fills: (string | CanvasPattern)[];
}

/** Assigns series to the culprits of each run: those with most time get their own, by name across all runs. */
export function seriesOf(runs: Run[]): Int32Array[] {
  const time = new Map<string, number>();
  for (const { head } of runs) for (const { name, total_ns } of head.culprits) time.set(name, (time.get(name) ?? 0) + total_ns);
  const order = [...time].sort(([, a], [, b]) => b - a).map(([name]) => name);
  const series = new Map(order.slice(0, SERIES - 1).map((name, at) => [name, at]));
  return runs.map(({ head }) => Int32Array.from(head.culprits, ({ name }) => series.get(name) ?? SERIES - 1));
}

/** Reads the page's current theme. */
export function look(): Look {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const series = Array.from({ length: SERIES }, (_, at) => of(`s${at}`));
  return {
    paper: of("paper"),
    ink: of("ink"),
    muted: of("muted"),
    line: of("line"),
    soft: of("soft"),
    accent: of("accent"),
    mark: of("mark"),
    series,
    heat: Array.from({ length: 8 }, (_, at) => of(`h${at}`)),
    fills: series.map((colour, at) => pattern(colour, of("paper"), at) ?? colour),
  };
}

function pattern(colour: string, paper: string, series: number): CanvasPattern | null {
  if (series === 0 || series === SERIES - 1) return null;
  const size = 8;
  const tile = document.createElement("canvas");
  [tile.width, tile.height] = [size, size];
  const draw = tile.getContext("2d");
  if (draw === null) return null;
  draw.fillStyle = colour;
  draw.fillRect(0, 0, size, size);
  draw.strokeStyle = paper;
  draw.globalAlpha = 0.55;
  draw.lineWidth = 1.5;
  const line = (x1: number, y1: number, x2: number, y2: number): void => {
    draw.beginPath();
    draw.moveTo(x1, y1);
    draw.lineTo(x2, y2);
    draw.stroke();
  };
  if (series === 1) for (const shift of [-size, 0, size]) line(shift, size, shift + size, 0);
  if (series === 2) line(0, size / 2, size, size / 2);
  if (series === 3) for (const shift of [-size, 0, size]) line(shift, 0, shift + size, size);
  if (series === 4) line(size / 2, 0, size / 2, size);
  if (series === 5) {
    line(0, size / 2, size, size / 2);
    line(size / 2, 0, size / 2, size);
  }
  if (series === 6) for (const shift of [-size, 0, size]) {
    line(shift, size, shift + size, 0);
    line(shift, 0, shift + size, size);
  }
  if (series === 7) {
    for (const shift of [-size, 0, size]) line(shift, size, shift + size, 0);
    line(0, size / 2, size, size / 2);
  }
  return draw.createPattern(tile, "repeat");
}

/** Half of a mark with its line, and the least height of a stick that contains its mark. */
const HALF = 3.6;
const ROOM = 14;

/** The offset of a stick's mark from its end towards its foot: inside the stick, because above its end it would look
 * longer; below its foot if it does not fit. As in the images. */
export function hanging(end: number, foot: number): number {
  return (foot - end < ROOM ? foot + 1 : end) + HALF;
}

/** The mark of a series around a point, as in the images. */
export function mark(draw: CanvasRenderingContext2D, series: number, x: number, y: number, r: number): void {
  switch (series) {
    case 0:
      draw.moveTo(x + r, y);
      draw.arc(x, y, r, 0, 7);
      break;
    case 1:
      draw.rect(x - r, y - r, 2 * r, 2 * r);
      break;
    case 2:
      draw.moveTo(x, y - r);
      draw.lineTo(x + r, y + r);
      draw.lineTo(x - r, y + r);
      draw.closePath();
      break;
    case 3:
      draw.moveTo(x, y - r);
      draw.lineTo(x + r, y);
      draw.lineTo(x, y + r);
      draw.lineTo(x - r, y);
      draw.closePath();
      break;
    case 4:
      draw.moveTo(x - r, y);
      draw.lineTo(x + r, y);
      draw.moveTo(x, y - r);
      draw.lineTo(x, y + r);
      break;
    case 5:
      draw.moveTo(x - r, y - r);
      draw.lineTo(x + r, y + r);
      draw.moveTo(x - r, y + r);
      draw.lineTo(x + r, y - r);
      break;
    case 6:
      draw.moveTo(x - r, y - r);
      draw.lineTo(x + r, y - r);
      draw.lineTo(x, y + r);
      draw.closePath();
      break;
    case 7:
      draw.moveTo(x - r, y - r);
      draw.lineTo(x - r, y + r);
      draw.lineTo(x + r, y - r);
      draw.lineTo(x + r, y + r);
      draw.closePath();
      break;
    default:
      draw.moveTo(x - r, y);
      draw.lineTo(x + r, y);
  }
}
