/**
 * Checked by the compiler only: the types of what a declared command returns and prints, by its
 * shape.
 */
import type { CID } from "multiformats/cid";
import {
  bytes,
  defineGroup,
  Listing,
  nothing,
  raw,
  readCommand,
  stream,
  value,
} from "#modules/mod_http_api/rpc/command.ts";
import { fields, map, nullable, type Shape, type ValueOf } from "#modules/mod_http_api/rpc/shape.ts";
import type { GoText } from "#node/util/go/text.ts";

/** Compiles only where each type fits the other. */
type Same<A, B> = [A, B] extends [B, A] ? true : never;
const same = <A, B>(_same: Same<A, B>): void => undefined;

const help = "Help.";
const item = fields("Item", { Name: "string", "Size?": "int64", Link: nullable("link") });
type Item = ValueOf<typeof item>;
declare const cid: CID;

export function values(): void {
  same<Item, { readonly Name: string; readonly Size?: number; readonly Link: CID | null }>(true);
  same<ValueOf<"uint64">, number | bigint>(true);
  same<ValueOf<"bytes">, GoText>(true);
  same<ValueOf<typeof nested>, { readonly All: readonly Item[]; readonly By: Readonly<Record<string, Item>> }>(true);
  same<ValueOf<Shape>, unknown>(true);
  // @ts-expect-error: what is left out is not there as undefined
  ({ Name: "", Size: undefined, Link: null }) satisfies Item;
}

async function* items(): AsyncGenerator<Item> {}

class Counted extends Listing<Item> {
  override whole(all: readonly Item[]) {
    return { Count: all.length };
  }
}

const nested = fields({ All: [item], By: map(item) });

export const commands = [
  readCommand({
    help,
    returns: value(nested),
    run: async () => ({ All: [{ Name: "a", Size: 1, Link: cid }], By: {} }),
    text: ({ All }) => All.map(({ Name, Size = 0, Link }) => `${Name} ${Size.toFixed()} ${Link?.toV1()}`).join("\n"),
  }),
  readCommand({
    help,
    returns: value(item),
    // @ts-expect-error: a name is text
    run: () => ({ Name: 1, Link: null }),
  }),
  readCommand({
    help,
    returns: value(item),
    // @ts-expect-error: a link is null where there is none
    run: async () => ({ Name: "a" }),
  }),
  readCommand({
    help,
    returns: value(item),
    run: () => ({ Name: "a", Link: null }),
    // @ts-expect-error: the shape has no such field
    text: ({ Hash }) => Hash,
  }),
  readCommand({
    help,
    returns: stream(item),
    async *run() {
      yield { Name: "a", Link: cid };
    },
    text: (one, _call, previous) => `${one.Name} after ${previous?.Name}`,
    encodings: { own: { type: "text/plain", encode: ({ Name }) => Name } },
  }),
  readCommand({
    help,
    returns: stream(item),
    // @ts-expect-error: a stream is no single value
    run: () => ({ Name: "a", Link: cid }),
  }),
  readCommand({
    help,
    returns: stream(item),
    // @ts-expect-error: links are CIDs, not their JSON
    async *run() {
      yield { Name: "a", Link: { "/": "Qm" } };
    },
  }),
  readCommand({
    help,
    returns: value(item),
    // @ts-expect-error: the whole of it is no item
    run: () => new Counted("Items", items()),
  }),
  readCommand({ help, returns: raw, run: async () => bytes(new Uint8Array()) }),
  readCommand({
    help,
    returns: raw,
    // @ts-expect-error: bytes are given as such
    run: () => "text",
  }),
  readCommand({ help, returns: nothing, async run() {} }),
  readCommand({
    help,
    returns: nothing,
    // @ts-expect-error: nobody would hear of it
    run: () => 1,
  }),
  readCommand({
    help,
    group: defineGroup({ help, options: { flush: { type: "bool", default: true, help } } }),
    arguments: [{ name: "path", required: true, variadic: true, help }],
    options: { count: { type: "int", help } },
    returns: value(["string"]),
    run({ arguments: { path }, options: { count, flush } }) {
      same<typeof path, readonly string[]>(true);
      same<typeof count, number | undefined>(true);
      same<typeof flush, boolean>(true);
      return path;
    },
  }),
];
