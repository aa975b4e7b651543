/** Upper bounds of the sizes of blocks, bytes: those of the reference's histograms. */
export const blockSizeBounds = [64, 1024, 16_384, 262_144, 262_159, 4_194_304] as const;

/** Blocks by their size. */
export class BlockSizes {
  /** One for each bound, and one for what is above the last. */
  readonly counts: number[] = [0, 0, 0, 0, 0, 0, 0];
  /** Bytes of all. */
  sum = 0;

  add(bytes: number): void {
    let at = 0;
    while (at < blockSizeBounds.length && bytes > (blockSizeBounds[at] as number)) at += 1;
    this.counts[at] = (this.counts[at] as number) + 1;
    this.sum += bytes;
  }
}
