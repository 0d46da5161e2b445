// The parts of a stall, by culprit.

export interface Piece {
  /** Its number, or its name. */
  culprit: number | string;
  /** Further details. */
  text: string;
  net: number;
  around: number;
}

export interface Sum<P extends Piece> {
  culprit: P["culprit"];
  net: number;
  around: number;
  /** The largest first. */
  pieces: P[];
}

/** All parts of each culprit together, the largest sum first. */
export function summed<P extends Piece>(pieces: P[]): Sum<P>[] {
  const sums = new Map<P["culprit"], Sum<P>>();
  for (const piece of [...pieces].sort((a, b) => b.net - a.net)) {
    const sum: Sum<P> = sums.get(piece.culprit) ?? { culprit: piece.culprit, net: 0, around: 0, pieces: [] };
    sum.net += piece.net;
    sum.around += piece.around;
    sum.pieces.push(piece);
    sums.set(piece.culprit, sum);
  }
  return [...sums.values()].sort((a, b) => b.net - a.net);
}
