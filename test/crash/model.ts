/** What must hold after a crash, by what was answered before it. */

export type PinState = "pinned" | "unpinned" | "uncertain";

export interface Known {
  readonly content: Uint8Array;
  state: PinState;
}

/** Contents by CID. An operation whose answer never came leaves its CID uncertain until the server is asked. */
export class Model {
  readonly known = new Map<string, Known>();
  /** Operations answered with success. */
  acknowledged = 0;

  /** CIDs in one of these states. */
  among(...states: readonly PinState[]): string[] {
    return [...this.known].filter(([, { state }]) => states.includes(state)).map(([cid]) => cid);
  }

  /** Runs one operation on a CID: uncertain until it is answered, then in the state that it leads to. */
  async change(cid: string, run: () => Promise<boolean>, then: PinState): Promise<void> {
    const entry = this.known.get(cid);
    if (entry === undefined) return;
    entry.state = "uncertain";
    if (await run()) {
      entry.state = then;
      this.acknowledged += 1;
    }
  }

  /** Differences between what was promised and what there is; settles what was uncertain. */
  settle(pinned: ReadonlySet<string>): string[] {
    const wrong: string[] = [];
    for (const [cid, entry] of this.known) {
      if (entry.state === "pinned" && !pinned.has(cid))
        wrong.push(`${cid} was pinned with success and is not any more`);
      if (entry.state === "unpinned" && pinned.has(cid)) wrong.push(`${cid} was unpinned with success and is pinned`);
      entry.state = pinned.has(cid) ? "pinned" : "unpinned";
    }
    return wrong;
  }
}
