/** The context of a use of a method. */
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { CID } from "multiformats/cid";
import type { PinningService } from "#test/support/network/remote_pins.ts";
import type { Rpc } from "#test/support/network/rpc.ts";

/** A plain form of a method's result: lists for streams, texts for CIDs and bytes. */
export type Plain = null | string | number | boolean | undefined | Plain[] | { [name: string]: Plain };

export interface Use {
  /** Calls a method by its name and collects its result. */
  call(name: string, ...args: readonly unknown[]): Promise<Plain>;
  /** Calls a method, and waits only for the first value of its result. */
  first(name: string, ...args: readonly unknown[]): Promise<Plain>;
  /** Causes an event that the node's log reports. */
  stir(): Promise<unknown>;
  /** Results of earlier uses, by name. */
  readonly results: Map<string, Plain>;
  /**
   * Another node, which is not connected before its first use. It pins for callers with its token.
   */
  readonly other: Rpc;
  readonly pinning: PinningService;
}

export const elsewhere = "no endpoint of this API";
export const local = "asks no server";
export const malformed = "sent by the clients in a form that no server accepts";

/** A use that has no equivalent in process. */
export interface OverHttpAlone {
  readonly why: string;
  readonly overHttp: (use: Use) => Promise<void>;
}

export type MethodLine = ((use: Use) => Promise<void>) | OverHttpAlone | typeof elsewhere | typeof local;

/** Makes a use that is one call. */
export const gives =
  (name: string, args: readonly unknown[], wanted: Plain | RegExp) =>
  async ({ call }: Use): Promise<void> =>
    holds(await call(name, ...args), wanted);

/**
 * Asserts that a result contains the expected one. Objects may have further fields, lists no
 * further items. A pattern is matched against the JSON.
 */
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
