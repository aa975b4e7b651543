/** What a use of a method has at hand. */
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { CID } from "multiformats/cid";
import type { PinningService } from "#test/support/network/remote_pins.ts";
import type { Rpc } from "#test/support/network/rpc.ts";

/** What a method gives, made plain: lists for streams, texts for CIDs and bytes. */
export type Plain = null | string | number | boolean | undefined | Plain[] | { [name: string]: Plain };

export interface Use {
  /** Calls a method by its name and gathers what it gives. */
  call(name: string, ...args: readonly unknown[]): Promise<Plain>;
  /** The same, of which only the first value is waited for. */
  first(name: string, ...args: readonly unknown[]): Promise<Plain>;
  /** Makes something happen that the log of the node tells. */
  stir(): Promise<unknown>;
  /** What earlier uses left, by name. */
  readonly kept: Map<string, Plain>;
  /**
   * Another node, not met before the first use that meets it, which pins for whoever has its token.
   */
  readonly other: Rpc;
  readonly pinning: PinningService;
}

export const elsewhere = "no endpoint of this API";
export const local = "asks no server";
export const malformed = "sent by the clients in a form that no server takes";

/** A use that there is no other side of in process. */
export interface OverHttpAlone {
  readonly why: string;
  readonly overHttp: (use: Use) => Promise<void>;
}

export type Line = ((use: Use) => Promise<void>) | OverHttpAlone | typeof elsewhere | typeof local;

/** A use that is one call. */
export const gives =
  (name: string, args: readonly unknown[], wanted: Plain | RegExp) =>
  async ({ call }: Use): Promise<void> =>
    holds(await call(name, ...args), wanted);

/** Objects may have more than is wanted, lists not; a pattern is looked for in the JSON. */
export function holds(got: Plain, wanted: Plain | RegExp): void {
  if (wanted instanceof RegExp) assert.match(JSON.stringify(got) ?? "undefined", wanted);
  else if (!includes(got, wanted)) assert.deepEqual(got, wanted);
}

function includes(got: Plain, wanted: Plain): boolean {
  if (Array.isArray(wanted)) {
    return Array.isArray(got) && got.length === wanted.length && wanted.every((each, at) => includes(got[at], each));
  }
  if (typeof wanted !== "object" || wanted === null) return isDeepStrictEqual(got, wanted);
  if (typeof got !== "object" || got === null || Array.isArray(got)) return false;
  return Object.entries(wanted).every(([name, each]) => includes(got[name], each));
}

export const cidOf = (value: Plain): CID => CID.parse(String((value as { cid?: Plain } | null)?.cid ?? value));
