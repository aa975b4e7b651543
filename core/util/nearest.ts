/**
 * Returns the known name that a misspelt name most likely means. The two may differ by one edit (an
 * insertion, a deletion, a replacement, or a swap of neighbours) for every four characters, but
 * always by one and never by more than `most`. Returns undefined when no known name is that close.
 */
export function nearest(name: string, known: Iterable<string>, most = Number.POSITIVE_INFINITY): string | undefined {
  let best: string | undefined;
  let least = Math.min(most, Math.max(1, Math.floor(name.length / 4))) + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= least) continue;
    const edits = distance(name, candidate);
    if (edits < least) {
      best = candidate;
      least = edits;
    }
  }
  return best;
}

/** Optimal string alignment distance. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let edits = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (same ? 0 : 1));
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) edits = Math.min(edits, before[j - 2]! + 1);
      next.push(edits);
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}
