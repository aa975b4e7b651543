/** Upper bounds in bytes of the buckets of the block size histogram, as in go-ipfs. */
export const blockSizeBounds = [64, 1024, 16_384, 262_144, 262_159, 4_194_304] as const;

/** A histogram of block sizes. */
export class BlockSizes {
  /** One count per bound, and one for larger blocks. */
  readonly counts: number[] = [0, 0, 0, 0, 0, 0, 0];
  /** Total size of all blocks in bytes. */
  sum = 0;

  add(bytes: number): void {
    let at = 0;
    while (at < blockSizeBounds.length && bytes > (blockSizeBounds[at] as number)) at += 1;
    this.counts[at] = (this.counts[at] as number) + 1;
    this.sum += bytes;
  }
}
