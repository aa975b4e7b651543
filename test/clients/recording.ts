/** What every call of a drive gave, in the order of the calls, made comparable. */
import { isUtf8 } from "node:buffer";
import { CID } from "multiformats/cid";
import type { Plain } from "./use.ts";

/** One call: its line in the table of methods, what was called, and what came of it. */
export interface Recorded {
  readonly line: string;
  /** The method and its arguments. */
  readonly call: string;
  outcome: Outcome | undefined;
}

/** A stream gives a list, whose bytes are joined: they come in other pieces over HTTP. */
export type Outcome = { readonly value: Plain } | { readonly stream: Plain[] } | { readonly error: string };

export class Recording {
  readonly calls: Recorded[] = [];
  #line = "";

  /** Calls that begin from now on belong to this line. */
  line(name: string): void {
    this.#line = name;
  }

  /** A call that is made again at once, until its answer fits, is recorded by its last answer. */
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

/** Of what a stream gave. */
export function streamed(values: readonly unknown[]): Outcome {
  const joined: unknown[] = [];
  for (const each of values) {
    const last = joined.at(-1);
    if (each instanceof Uint8Array && last instanceof Uint8Array) joined.splice(-1, 1, Buffer.concat([last, each]));
    else joined.push(each);
  }
  return { stream: joined.map(typed) };
}

/**
 * Objects of libraries are texts that say what they are: a CID is not the same as its text.
 * Undefined fields are left out, the others are in order.
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
