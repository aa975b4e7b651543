/**
 * Has sockets that were accepted read as those that are dialled with the option `onread`, which Node has for these alone. What peers
 * bring over connections that they have opened took half as much CPU time again.
 */
import { type OnReadOpts, Socket } from "node:net";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "@libp2p/tcp",
  version: "11.0.28",
  without: "what comes over connections that peers have opened takes more CPU time",
};

/** Where a socket keeps the buffer to read into, who is told of each read, and who gives the next buffer. */
const [kBuffer, kBufferCb, kBufferGen] = ["kBuffer", "kBufferCb", "kBufferGen"].map((name) =>
  Object.getOwnPropertySymbols(new Socket()).find(({ description }) => description === name),
);

interface Insides {
  readonly _handle?: { useUserBuffer?(buffer: Uint8Array): void } | null;
  /** Null where the pieces are those that Node makes. */
  [symbol: symbol]: unknown;
}

/** @param reads made for this socket alone, if it does not read in this way already */
export function readAsDialled(socket: Socket, reads: () => OnReadOpts, notices: PatchNotices): void {
  const insides = socket as Socket & Insides;
  const { _handle: handle } = insides;
  if (handle === null) return;
  const parts = { kBuffer, kBufferCb, kBufferGen, "socket._handle.useUserBuffer": handle?.useUserBuffer };
  if (!notices.isApplicable(patch, parts) || insides[kBuffer as symbol] !== null) return;
  const { buffer, callback } = reads();
  const next = typeof buffer === "function" ? buffer : () => buffer;
  const first = next();
  Object.assign(insides, {
    [kBuffer as symbol]: first,
    [kBufferCb as symbol]: callback,
    [kBufferGen as symbol]: next,
  });
  handle?.useUserBuffer?.(first);
}
