/** Pins of this node. */
import { setTimeout as pause } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { verifyPins } from "../../mod_node/content/pins/verify.ts";
import { CidSet } from "../../mod_node/formats/cid/set.ts";
import { ExternalSortedMap, jsonCodec } from "../../mod_node/storage/external_sorted_map.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { goJson } from "../../mod_node/util/go/text.ts";
import { type AnyCall, type Commands, defineCommand, defineGroup, Listing, stream, value } from "../rpc/command.ts";
import { fields, map, type ValueOf } from "../rpc/shape.ts";

const paths = [{ name: "ipfs-path", required: true, variadic: true, stdin: "lines", help: "The objects." }] as const;
const pinned = fields("PinOutput", { Pins: ["string"] });

/** Milliseconds between two lines of progress. */
const progressEvery = 500;

const addOutput = fields("AddPinOutput", { "Pins?": ["string"], "Progress?": "int" });
type Progress = ValueOf<typeof addOutput>;

/** Pins one after the other; `progress` hears the number of blocks looked at, of all together. */
async function addAll(
  given: readonly string[],
  recursive: boolean,
  call: AnyCall,
  progress?: (blocks: number) => void,
): Promise<Progress> {
  const { lowLevel: node, signal, offline } = call;
  const write = call.cidText();
  const pins: string[] = [];
  let before = 0;
  for (const path of given) {
    const { cid } = await node.resolve(path, call);
    let own = 0;
    const count = (blocks: number) => {
      own = blocks;
      progress?.(before + blocks);
    };
    try {
      await node.pins.add(cid, recursive ? "recursive" : "direct", { signal, offline, progress: count });
    } catch (error) {
      if (!(error instanceof NodeError)) throw error;
      throw new NodeError(`pin: ${error.message}`, { cause: error });
    }
    node.announce([cid]);
    before += own;
    pins.push(write(cid));
  }
  return { Pins: pins };
}

async function* addTelling(given: readonly string[], recursive: boolean, call: AnyCall): AsyncGenerator<Progress> {
  const over = new AbortController();
  let blocks = 0;
  const line = (): Progress => (blocks === 0 ? {} : { Progress: blocks });
  const work = addAll(given, recursive, call, (count) => {
    blocks = count;
  }).finally(() => over.abort());
  work.catch(() => {});
  const tick = () => pause(progressEvery, true, { signal: over.signal }).catch(() => false);
  while (await tick()) yield line();
  const result = await work;
  if (blocks > 0) yield line();
  yield result;
}

const types = ["direct", "indirect", "recursive", "all"];

const pin = fields("PinLsObject", { Cid: "string", Type: "string" });
type Pin = ValueOf<typeof pin>;

/** All pins of a type: stored ones, then what lies below the recursive ones. */
async function* listAll(type: string, { lowLevel: node, signal, ...call }: Lister): AsyncGenerator<Pin> {
  const isBelow = type === "all" || type === "indirect";
  const told = new CidSet();
  for (const mode of ["recursive", "direct"] as const) {
    if (type !== mode && !isBelow) continue;
    for await (const cid of node.pins.list(mode)) {
      if (isBelow) told.add(cid);
      if (type !== "indirect") yield { Cid: call.write(cid), Type: mode };
    }
  }
  if (!isBelow) return;
  for await (const cid of node.pins.indirect(told, signal)) yield { Cid: call.write(cid), Type: "indirect" };
}

interface Lister extends Pick<AnyCall, "lowLevel" | "signal" | "offline"> {
  readonly write: (cid: CID) => string;
}

/** The pins of given objects, in their order. @throws NodeError at the first that is not pinned so */
async function* listGiven(given: readonly string[], type: string, lister: Lister): AsyncGenerator<Pin> {
  const { lowLevel: node, signal, write } = lister;
  const found: { path: string; cid: CID; stored: string | undefined }[] = [];
  let late: unknown;
  for (const path of given) {
    try {
      const { cid } = await node.resolve(path, lister);
      found.push({ path, cid, stored: await node.pins.mode(cid) });
    } catch (error) {
      // Those before it are answered first.
      late = error;
      break;
    }
  }
  const open = found.filter(({ stored }) => type === "indirect" || (type === "all" && stored === undefined));
  const through = await node.pins.through(
    open.map(({ cid }) => cid),
    signal,
  );
  for (const { path, cid, stored } of found) {
    const root = through.get(cid.toString());
    if (type !== "indirect" && stored !== undefined && (type === "all" || type === stored)) {
      yield { Cid: write(cid), Type: stored };
    } else if (root !== undefined) {
      yield { Cid: write(cid), Type: `indirect through ${root}` };
    } else {
      throw new NodeError(`path '${path}' is not pinned`);
    }
  }
  if (late !== undefined) throw late;
}

/** By CID, each once; then again from the beginning, behind `undefined`. */
async function* inOrderTwice(pins: AsyncIterable<Pin>, folder: string): AsyncGenerator<Pin | undefined> {
  const types = new ExternalSortedMap<string>(folder, jsonCodec());
  async function* inOrder(): AsyncGenerator<Pin> {
    for await (const page of types.pages(0)) for (const [Cid, Type] of page) yield { Cid, Type };
  }
  try {
    for await (const { Cid, Type } of pins) {
      const stored = types.set(0, Cid, Type);
      if (stored !== undefined) await stored;
    }
    yield* inOrder();
    yield undefined;
    yield* inOrder();
  } finally {
    await types.clear();
  }
}

/** All pins as one value, in which they stand twice. */
class PinListing extends Listing<Pin | undefined> {
  override whole(pins: readonly (Pin | undefined)[]) {
    const once = pins.slice(0, pins.indexOf(undefined)) as readonly Pin[];
    const Keys = Object.fromEntries(once.map(({ Cid, Type }) => [Cid, { Type }]));
    return { Keys, PinLsList: { Keys } };
  }

  override async *json(pins: AsyncIterable<Pin | undefined>): AsyncGenerator<string, void, undefined> {
    let between = '{"Keys":{';
    for await (const pin of pins) {
      yield pin === undefined ? '},"PinLsList":{"Keys":{' : `${between}${goJson(pin.Cid)}:{"Type":${goJson(pin.Type)}}`;
      between = pin === undefined ? "" : ",";
    }
    yield "}}}";
  }
}

async function* doubled(pins: AsyncIterable<Pin>): AsyncGenerator<Pin & { readonly PinLsObject: Pin }> {
  for await (const pin of pins) yield { ...pin, PinLsObject: pin };
}

const pinKeys = map(fields("PinLsType", { Type: "string" }));
const badNode = fields("BadNode", { Cid: "string", Err: "string" });

export const commands = {
  pin: defineGroup({ help: "Keep objects from being collected as garbage." }),
  "pin/add": defineCommand({
    help: "Pins objects, and fetches what is missing of them.",
    arguments: paths,
    options: {
      recursive: { type: "bool", aliases: ["r"], default: true, help: "Pin all that is linked to, too." },
      progress: { type: "bool", help: "Tell how many blocks were looked at." },
    },
    returns: value(addOutput),
    run(call) {
      const { recursive, progress } = call.options;
      const run = progress === true ? addTelling : addAll;
      return run(call.arguments["ipfs-path"], recursive, call);
    },
    text: ({ Pins = [] }, { options }) =>
      Pins.map((cid) => `pinned ${cid} ${options.recursive ? "recursively" : "directly"}\n`).join(""),
  }),
  "pin/ls": defineCommand({
    help: "Lists pins.",
    arguments: [{ name: "ipfs-path", variadic: true, help: "Objects to look up; by default all pins are listed." }],
    options: {
      type: {
        type: "string",
        aliases: ["t"],
        default: "all",
        help: "Pins to list: direct, indirect, recursive or all.",
      },
      quiet: { type: "bool", aliases: ["q"], help: "Print CIDs only." },
      stream: { type: "bool", aliases: ["s"], help: "Send pins as they are found." },
    },
    returns: value(
      fields("PinLsOutputWrapper", {
        "Keys?": pinKeys,
        "PinLsList?": fields("PinLsList", { Keys: pinKeys }),
        "Cid?": "string",
        "Type?": "string",
        "PinLsObject?": pin,
      }),
    ),
    run(call) {
      const { type, stream: streamed } = call.options;
      const lister = { lowLevel: call.lowLevel, signal: call.signal, offline: call.offline, write: call.cidText() };
      if (!types.includes(type)) {
        throw new NodeError(`invalid type '${type}', must be one of {direct, indirect, recursive, all}`);
      }
      const given = call.arguments["ipfs-path"];
      const pins = given.length > 0 ? listGiven(given, type, lister) : listAll(type, lister);
      if (streamed === true) return doubled(pins);
      return new PinListing("Keys", inOrderTwice(pins, call.lowLevel.scratch));
    },
    text({ Keys, Cid = "", Type = "" }, { options }) {
      const pins =
        Keys === undefined ? [{ Cid, Type }] : Object.entries(Keys).map(([Cid, { Type }]) => ({ Cid, Type }));
      return pins.map(({ Cid, Type }) => (options.quiet === true ? `${Cid}\n` : `${Cid} ${Type}\n`)).join("");
    },
  }),
  "pin/rm": defineCommand({
    help: "Removes pins.",
    arguments: paths,
    options: {
      recursive: { type: "bool", aliases: ["r"], default: true, help: "Remove recursive pins, too." },
    },
    returns: value(pinned),
    async run(call) {
      const write = call.cidText();
      const Pins: string[] = [];
      for (const path of call.arguments["ipfs-path"]) {
        const { cid } = await call.lowLevel.resolve(path, call);
        await call.lowLevel.pins.remove(cid, call.options.recursive);
        Pins.push(write(cid));
      }
      return { Pins };
    },
    text: ({ Pins }) => Pins.map((cid) => `unpinned ${cid}\n`).join(""),
  }),
  "pin/update": defineCommand({
    help: "Pins one object in the place of another; what they share is not looked at again.",
    arguments: [
      { name: "from-path", required: true, help: "The pinned object." },
      { name: "to-path", required: true, help: "The one to pin in its place." },
    ],
    options: { unpin: { type: "bool", default: true, help: "Remove the old pin." } },
    returns: value(pinned),
    async run(call) {
      const { lowLevel: node, signal, offline, options } = call;
      const write = call.cidText();
      const { cid: from } = await node.resolve(call.arguments["from-path"], call);
      const { cid: to } = await node.resolve(call.arguments["to-path"], call);
      await node.pins.update(from, to, options.unpin, { signal, offline });
      return { Pins: [write(from), write(to)] };
    },
    text: ({ Pins: [from, to] }) => `updated ${from} to ${to}\n`,
  }),
  "pin/verify": defineCommand({
    help: "Looks whether all that is pinned recursively is here.",
    options: {
      verbose: { type: "bool", help: "Tell of whole pins, too." },
      quiet: { type: "bool", aliases: ["q"], help: "Tell the CIDs of broken pins only." },
    },
    returns: stream(
      fields("PinVerifyRes", {
        Cid: "string",
        Ok: "bool",
        "BadNodes?": [badNode],
        PinStatus: fields("PinStatus", { Ok: "bool", "BadNodes?": [badNode] }),
      }),
    ),
    async *run(call) {
      const { lowLevel: node, options, signal } = call;
      if (options.verbose === true && options.quiet === true) {
        throw new NodeError("the --verbose and --quiet options can not be used at the same time");
      }
      const write = call.cidText();
      for await (const { root, bad } of verifyPins(node.blocks, node.pins, signal)) {
        const Ok = bad.length === 0;
        if (Ok && options.verbose !== true) continue;
        const BadNodes = bad.map(({ cid, message }) => ({ Cid: write(cid), Err: message }));
        const status = Ok || options.quiet === true ? { Ok } : { Ok, BadNodes };
        yield { Cid: write(root), ...status, PinStatus: status };
      }
    },
    text({ Cid, PinStatus }, { options }) {
      if (options.quiet === true) return `${Cid}\n`;
      const lines = (PinStatus.BadNodes ?? []).map((node) => `  ${node.Cid}: ${node.Err}\n`);
      return `${Cid} ${PinStatus.Ok ? "ok" : "broken"}\n${lines.join("")}`;
    },
  }),
} satisfies Commands;
