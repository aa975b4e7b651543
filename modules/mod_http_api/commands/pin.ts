/** `pin`: the pins of this node. */
import { setTimeout as pause } from "node:timers/promises";
import { failure, goJson, type PinLsResult, type SortedPin, type SortedPins } from "modhost/node";
import type { CID } from "multiformats/cid";
import {
  type AnyCall,
  type ArgumentValues,
  type Commands,
  defineGroup,
  Listing,
  type Options,
  type OptionValues,
  readCommand,
  stream,
  value,
  writeCommand,
} from "../rpc/command.ts";
import { fields, map, type ValueOf } from "../rpc/shape.ts";
import { announceDecision, fastProvide } from "./fast_provide.ts";
import { remoteCommands } from "./pin_remote.ts";

const paths = [
  { name: "ipfs-path", path: true, required: true, variadic: true, stdin: "lines", help: "The objects." },
] as const;
const pinned = fields("PinOutput", { Pins: ["string"] });

/** Milliseconds between two progress reports. */
const PROGRESS_INTERVAL_MS = 500;

const addOutput = fields("AddPinOutput", { "Pins?": ["string"], "Progress?": "int" });
/** The level 0.43 also reports bytes. */
const addOutputKubo043 = fields("AddPinOutput", { "Pins?": ["string"], "Progress?": "int", "Bytes?": "uint64" });
type Progress = ValueOf<typeof addOutputKubo043>;

type AddCall = Pick<AnyCall, "node" | "level" | "signal" | "offline" | "cidText"> & {
  readonly options: { readonly name: string | undefined } & OptionValues<typeof fastProvide>;
};

async function addAll(
  given: readonly string[],
  recursive: boolean,
  { node, level, options, signal, offline, cidText }: AddCall,
  progress?: (blocks: number, bytes: number) => void,
): Promise<Progress> {
  const { name } = options;
  const announce = announceDecision({ node, level, options });
  const write = cidText();
  const Pins: string[] = [];
  const pins = given.map((path) => ({ path, recursive }));
  for await (const cid of node.pin.addAll(pins, { progress, name, announce, signal, offline })) Pins.push(write(cid));
  return { Pins };
}

/** @param lineOf returns the progress line for the blocks and bytes so far */
async function* addWithProgress(
  given: readonly string[],
  recursive: boolean,
  call: AddCall,
  lineOf: (blocks: number, bytes: number) => Progress,
): AsyncGenerator<Progress> {
  const over = new AbortController();
  const met = { blocks: 0, bytes: 0 };
  const line = (): Progress => (met.blocks === 0 ? {} : lineOf(met.blocks, met.bytes));
  const work = addAll(given, recursive, call, (blocks, bytes) => {
    Object.assign(met, { blocks, bytes });
  }).finally(() => over.abort());
  work.catch(() => {});
  const tick = () => pause(PROGRESS_INTERVAL_MS, true, { signal: over.signal }).catch(() => false);
  while (await tick()) yield line();
  const result = await work;
  if (met.blocks > 0) yield line();
  yield result;
}

const pin = fields("PinLsObject", { Cid: "string", Type: "string" });
type Pin = ValueOf<typeof pin>;

/** Returns how to write CIDs; undefined if they are written as they are stored. */
const textsOf = ({ cidForm: { cidBase, upgradeCidv0InOutput }, cidText }: Pick<AnyCall, "cidForm" | "cidText">) =>
  cidBase || upgradeCidv0InOutput === true ? cidText() : undefined;

/** Yields the pages of all pins, then `between`, then all pages again. */
async function* pagesTwice<B>(
  sorting: () => Promise<SortedPins>,
  between: B,
): AsyncGenerator<readonly (SortedPin | B)[]> {
  const pins = await sorting();
  try {
    yield* pins.pages();
    yield [between];
    yield* pins.pages();
  } finally {
    await pins.close();
  }
}

/** Lists all pins as one value, which contains each of them twice. */
class PinListing extends Listing<SortedPin | undefined> {
  override whole(pins: readonly (SortedPin | undefined)[]) {
    const once = pins.slice(0, pins.indexOf(undefined)) as readonly SortedPin[];
    const Keys = Object.fromEntries(once.map(({ text, type }) => [text, { Type: type }]));
    return { Keys, PinLsList: { Keys } };
  }

  override async *json(
    pages: AsyncIterable<readonly (SortedPin | undefined)[]>,
  ): AsyncGenerator<string, void, undefined> {
    let text = '{"Keys":{';
    let between = "";
    for await (const page of pages) {
      for (const pin of page) {
        text +=
          pin === undefined ? '},"PinLsList":{"Keys":{' : `${between}${goJson(pin.text)}:{"Type":${goJson(pin.type)}}`;
        between = pin === undefined ? "" : ",";
      }
      yield text;
      text = "";
    }
    yield "}}}";
  }
}

async function* doubled(
  pins: AsyncIterable<PinLsResult>,
  write: (cid: CID) => string,
): AsyncGenerator<Pin & { readonly PinLsObject: Pin }> {
  for await (const { cid, type } of pins) {
    const pin = { Cid: write(cid), Type: type };
    yield { ...pin, PinLsObject: pin };
  }
}

const pinKeys = map(fields("PinLsType", { Type: "string" }));
const pinKeysKubo043 = map(fields("PinLsType", { Type: "string", Name: "string" }));

const aboutList = {
  help: "Lists pins.",
  arguments: [
    { name: "ipfs-path", path: true, variadic: true, help: "Objects to look up; by default all pins are listed." },
  ],
  options: {
    type: {
      type: "string",
      aliases: ["t"],
      default: "all",
      help: "Pins to list: direct, indirect, recursive or all.",
    },
    quiet: { type: "bool", aliases: ["q"], help: "Print CIDs only." },
    stream: { type: "bool", aliases: ["s"], help: "Return pins as they are found." },
    names: { type: "bool", since: "0.43", help: "Show the names of pins, at the level 0.43." },
    name: { type: "string", aliases: ["n"], since: "0.43", help: "List only pins whose name contains this text." },
  },
} as const;

type ListCall = Pick<AnyCall, "signal" | "offline"> & {
  readonly arguments: ArgumentValues<typeof aboutList.arguments>;
  readonly options: OptionValues<typeof aboutList.options>;
};

const listOptions = ({ arguments: { "ipfs-path": paths }, options, signal, offline }: ListCall) => ({
  paths,
  type: options.type,
  names: options.names,
  name: options.name,
  signal,
  offline,
});

type ListedPins = Readonly<Record<string, { readonly Type: string; readonly Name?: string }>>;

const listText = (pins: ListedPins, { quiet }: ListCall["options"]): string =>
  Object.entries(pins)
    .map(([cid, { Type, Name = "" }]) => (quiet === true ? `${cid}\n` : `${[cid, Type, Name].join(" ").trimEnd()}\n`))
    .join("");

/** Lists all pins as one value, with their names. */
class NamedListing extends Listing<SortedPin> {
  override whole(pins: readonly SortedPin[]) {
    if (pins.length === 0) return {};
    return { Keys: Object.fromEntries(pins.map(({ text, type, name = "" }) => [text, { Type: type, Name: name }])) };
  }

  override async *json(pages: AsyncIterable<readonly SortedPin[]>): AsyncGenerator<string, void, undefined> {
    let between = '{"Keys":{';
    for await (const page of pages) {
      let lines = "";
      for (const { text, type, name = "" } of page) {
        lines += `${between}${goJson(text)}:${goJson({ Type: type, Name: name })}`;
        between = ",";
      }
      yield lines;
    }
    yield between === "," ? "}}" : "{}";
  }
}

async function* pagesOf(sorting: () => Promise<SortedPins>): AsyncGenerator<readonly SortedPin[]> {
  const pins = await sorting();
  try {
    yield* pins.pages();
  } finally {
    await pins.close();
  }
}

async function* named(pins: AsyncIterable<PinLsResult>, write: (cid: CID) => string) {
  for await (const { cid, type, name } of pins) yield { Cid: write(cid), ...(name && { Name: name }), Type: type };
}

const badNode = fields("BadNode", { Cid: "string", Err: "string" });

const adding = {
  help: "Pins objects and fetches missing blocks.",
  arguments: paths,
  options: {
    recursive: { type: "bool", aliases: ["r"], default: true, help: "Also pin everything that it links to." },
    progress: { type: "bool", help: "Report the number of visited blocks." },
    name: { type: "string", aliases: ["n"], since: "0.43", help: "Name of the pins, at most 255 bytes." },
    ...fastProvide,
  },
  text: ({ Pins = [] }: Progress, { options }: Pick<AnyCall, "options">) =>
    Pins.map((cid) => `pinned ${cid} ${options.recursive === true ? "recursively" : "directly"}\n`).join(""),
} as const;

type AddingCall = AddCall & {
  readonly arguments: ArgumentValues<typeof paths>;
  readonly options: OptionValues<typeof adding.options>;
};

const added = (call: AddingCall, lineOf: Parameters<typeof addWithProgress>[3]) => {
  const { recursive, progress } = call.options;
  const given = call.arguments["ipfs-path"];
  return progress === true ? addWithProgress(given, recursive, call, lineOf) : addAll(given, recursive, call);
};

const verifiedFields = { Cid: "string", Ok: "bool", "BadNodes?": [badNode] } as const;
const verifiedPin = fields("PinVerifyRes", verifiedFields);
type VerifiedPin = ValueOf<typeof verifiedPin>;

const verifyOptions = {
  verbose: { type: "bool", help: "Also list intact pins." },
  quiet: { type: "bool", aliases: ["q"], help: "List only the CIDs of broken pins." },
} as const satisfies Options;

const verifying = {
  help: "Checks that all blocks of recursive pins are stored.",
  options: verifyOptions,
  text({ Cid, Ok, BadNodes = [] }: VerifiedPin, { options }: Pick<AnyCall, "options">) {
    if (options.quiet === true) return `${Cid}\n`;
    const lines = BadNodes.map((node) => `  ${node.Cid}: ${node.Err}\n`);
    return `${Cid} ${Ok ? "ok" : "broken"}\n${lines.join("")}`;
  },
} as const;

type VerifyCall = Pick<AnyCall, "node" | "signal" | "cidText"> & {
  readonly options: OptionValues<typeof verifyOptions>;
};

async function* verified({ node, options, signal, cidText }: VerifyCall): AsyncGenerator<VerifiedPin> {
  const { verbose, quiet } = options;
  if (verbose === true && quiet === true) {
    throw failure("OPTION_CONFLICT", { reason: "the --verbose and --quiet options can not be used at the same time" });
  }
  const write = cidText();
  for await (const { cid, ok: Ok, badNodes } of node.pin.verify({ verbose, signal })) {
    const BadNodes = badNodes.map(({ cid, err }) => ({ Cid: write(cid), Err: err }));
    yield { Cid: write(cid), ...(Ok || quiet === true ? { Ok } : { Ok, BadNodes }) };
  }
}

export const commands = {
  pin: defineGroup({ help: "Protect objects from garbage collection." }),
  "pin/add": writeCommand({
    ...adding,
    returns: value(addOutput),
    run: (call) => added(call, (Progress) => ({ Progress })),
  }),
  "pin/ls": readCommand({
    ...aboutList,
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
      const how = listOptions(call);
      if (call.options.stream === true) return doubled(call.node.pin.ls(how), call.cidText());
      return new PinListing(
        "Keys",
        pagesTwice(() => call.node.pin.sorted(textsOf(call), how), undefined),
      );
    },
    text: ({ Keys, Cid = "", Type = "" }, { options }) => listText(Keys ?? { [Cid]: { Type } }, options),
  }),
  "pin/rm": writeCommand({
    help: "Removes pins.",
    arguments: paths,
    options: {
      recursive: { type: "bool", aliases: ["r"], default: true, help: "Also remove recursive pins." },
    },
    returns: value(pinned),
    async run({ node, arguments: { "ipfs-path": paths }, options: { recursive }, signal, offline, cidText }) {
      const write = cidText();
      const Pins: string[] = [];
      const pins = paths.map((path) => ({ path, recursive }));
      for await (const cid of node.pin.rmAll(pins, { signal, offline })) Pins.push(write(cid));
      return { Pins };
    },
    text: ({ Pins }) => Pins.map((cid) => `unpinned ${cid}\n`).join(""),
  }),
  "pin/update": writeCommand({
    help: "Replaces a recursive pin by another; blocks that both share are not checked again.",
    arguments: [
      { name: "from-path", path: true, required: true, help: "The pinned object." },
      { name: "to-path", path: true, required: true, help: "The object to pin instead." },
    ],
    options: { unpin: { type: "bool", default: true, help: "Remove the old pin." }, ...fastProvide },
    returns: value(pinned),
    async run({ node, arguments: { "from-path": from, "to-path": to }, options, level, signal, offline, cidText }) {
      const write = cidText();
      const announce = announceDecision({ node, level, options }, { preset: level.importDefaults });
      const how = { unpin: options.unpin, announce, signal, offline };
      return { Pins: (await node.pin.update(from, to, how)).map(write) };
    },
    text: ({ Pins: [from, to] }) => `updated ${from} to ${to}\n`,
  }),
  "pin/verify": readCommand({
    ...verifying,
    returns: stream(
      fields("PinVerifyRes", {
        ...verifiedFields,
        PinStatus: fields("PinStatus", { Ok: "bool", "BadNodes?": [badNode] }),
      }),
    ),
    async *run(call) {
      for await (const { Cid, ...status } of verified(call)) yield { Cid, ...status, PinStatus: status };
    },
  }),
  ...remoteCommands,
} satisfies Commands;

export const kubo043 = {
  "pin/add": writeCommand({
    ...adding,
    returns: value(addOutputKubo043),
    run: (call) => added(call, (Progress, Bytes) => ({ Progress, Bytes })),
  }),
  "pin/ls": readCommand({
    ...aboutList,
    returns: value(
      fields("PinLsOutputWrapper", { "Keys?": pinKeysKubo043, "Cid?": "string", "Name?": "string", "Type?": "string" }),
    ),
    run(call) {
      const how = listOptions(call);
      if (call.options.stream === true) return named(call.node.pin.ls(how), call.cidText());
      return new NamedListing(
        "Keys",
        pagesOf(() => call.node.pin.sorted(textsOf(call), how)),
      );
    },
    text: ({ Keys, Cid, Name = "", Type = "" }, { options }) =>
      listText(Keys ?? (Cid === undefined ? {} : { [Cid]: { Type, Name } }), options),
  }),
  "pin/verify": readCommand({ ...verifying, returns: stream(verifiedPin), run: (call) => verified(call) }),
} satisfies Commands;
