// The parts of a stall, by culprit.

import { count } from "./format.js";

export interface Piece {
  /** Its number, or its name. */
  culprit: number | string;
  /** Further details. */
  text: string;
  net: number;
  around: number;
  /** How many stretches of time it sums. */
  turns: number;
}

export interface Sum<P extends Piece> {
  culprit: P["culprit"];
  net: number;
  around: number;
  turns: number;
  /** The largest first. */
  pieces: P[];
}

/** All parts of each culprit together, the largest sum first. */
export function summed<P extends Piece>(pieces: P[]): Sum<P>[] {
  const sums = new Map<P["culprit"], Sum<P>>();
  for (const piece of [...pieces].sort((a, b) => b.net - a.net)) {
    const sum: Sum<P> = sums.get(piece.culprit) ?? { culprit: piece.culprit, net: 0, around: 0, turns: 0, pieces: [] };
    sum.net += piece.net;
    sum.around += piece.around;
    sum.turns += piece.turns;
    sum.pieces.push(piece);
    sums.set(piece.culprit, sum);
  }
  return [...sums.values()].sort((a, b) => b.net - a.net);
}

/** Follows the time of a culprit whose turns are not told apart. */
export function sumOf(turns: number): string {
  return turns > 1 ? `, sum of ${count(turns)} turns` : "";
}
