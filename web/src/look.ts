// Colours and patterns of culprits: the same order in every chart, and never by colour alone.

import type { Run } from "./data.js";

/** Series that look different; the last is everybody else's. */
export const SERIES = 7;

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
  /** How a bar of a series is filled. */
  fills: (string | CanvasPattern)[];
}

/** Which series each culprit is: those that lead most stalled time have their own. */
export function seriesOf(run: Run): Int32Array {
  const time = new Float64Array(run.head.culprits.length);
  for (let row = 0; row < run.head.rows; row++) {
    const leader = run.leader[row] ?? -1;
    if (leader >= 0) time[leader] = (time[leader] ?? 0) + (run.length[row] ?? 0);
  }
  const order = [...time.keys()].sort((a, b) => (time[b] ?? 0) - (time[a] ?? 0) || a - b);
  const out = new Int32Array(run.head.culprits.length).fill(SERIES - 1);
  order.slice(0, SERIES - 1).forEach((culprit, at) => (out[culprit] = at));
  return out;
}

/** Reads the theme that the page has now. */
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
  return draw.createPattern(tile, "repeat");
}

/** Half of a mark with its line, and least height of a stick that has its mark within it. */
const HALF = 3.6;
const ROOM = 14;

/** How far down the mark of a stick is, from its end to its foot: within it, because above its end it would be as much
 * as a longer one; below its foot where there is no room in it. As the images have it. */
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
    default:
      draw.moveTo(x - r, y);
      draw.lineTo(x + r, y);
  }
}
