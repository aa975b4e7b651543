/** Records the results of all calls of a run in order, in a comparable form. */
import { isUtf8 } from "node:buffer";
import { CID } from "multiformats/cid";
import type { Plain } from "./use.ts";

/** A call: the method whose use made it, the called method, and the outcome. */
export interface Recorded {
  readonly line: string;
  /** The method and its arguments. */
  readonly call: string;
  outcome: CallOutcome | undefined;
}

/** A stream becomes a list. Its bytes are joined, because they arrive in other pieces over HTTP. */
export type CallOutcome = { readonly value: Plain } | { readonly stream: Plain[] } | { readonly error: string };

export class Recording {
  readonly calls: Recorded[] = [];
  #line = "";

  /** Later calls belong to this line of the table. */
  line(name: string): void {
    this.#line = name;
  }

  /** Records a call. If it is repeated until its result matches, only the last result counts. */
  begin(method: string, args: readonly unknown[]): Recorded {
    const recorded: Recorded = {
      line: this.#line,
      call: `${method}(${args.map(shown).join(", ")})`,
      outcome: undefined,
    };
    const last = this.calls.at(-1);
    if (last?.line === recorded.line && last.call === recorded.call) this.calls.pop();
    this.calls.push(recorded);
    return recorded;
  }
}

const shown = (argument: unknown): string =>
  typeof argument === "function" ? "a function" : (JSON.stringify(typed(argument)) ?? "undefined");

/** Returns the outcome of a stream. */
export function streamed(values: readonly unknown[]): CallOutcome {
  const joined: unknown[] = [];
  for (const each of values) {
    const last = joined.at(-1);
    if (each instanceof Uint8Array && last instanceof Uint8Array) joined.splice(-1, 1, Buffer.concat([last, each]));
    else joined.push(each);
  }
  return { stream: joined.map(typed) };
}

/**
 * Turns objects of libraries into texts that include their type: a CID differs from its text.
 * Undefined fields are left out, and the others are sorted.
 */
export function typed(value: unknown): Plain {
  if (value instanceof Uint8Array) {
    return isUtf8(value) ? `bytes "${Buffer.from(value).toString()}"` : `bytes ${Buffer.from(value).toString("hex")}`;
  }
  if (typeof value === "bigint") return `bigint ${value}`;
  if (typeof value !== "object" || value === null) return value as Plain;
  if (Array.isArray(value)) return value.map(typed);
  if (value instanceof Error) return `error ${value.message}`;
  if (value instanceof Date) return `date ${value.toISOString()}`;
  if (CID.asCID(value) !== null) return `CID ${value}`;
  if ("toMultihash" in value || "multihash" in value) return `peer ${value}`;
  if ("getComponents" in value || "protoCodes" in value) return `multiaddr ${value}`;
  const prototype = Object.getPrototypeOf(value);
  if (Symbol.asyncIterator in value || Symbol.iterator in value) return "an iterable";
  if (prototype !== null && prototype !== Object.prototype) return `${prototype.constructor.name} ${value}`;
  const fields = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, each]) => [name, typed(each)]));
}
