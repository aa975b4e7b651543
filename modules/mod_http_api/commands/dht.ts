/** `dht`: queries of the routing system. */
import { type DhtEvent, routingEventTypes as eventTypes, failure, NodeError, parsePeerId } from "modhost/node";
import { type Argument, type Commands, defineGroup, readCommand, stream, writeCommand } from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { lines, texts } from "./shapes.ts";

const options = { verbose: { type: "bool", aliases: ["v"], help: "Also print intermediate events." } } as const;

const several = <const N extends string>(name: N, help: string) =>
  [{ name, required: true, variadic: true, help }] as const satisfies readonly Argument[];

const queryEvent = fields("QueryEvent", {
  /** An error message, or a record in base64. */
  Extra: "string",
  ID: "string",
  Responses: nullable([fields("AddrInfo", { ID: "string", Addrs: ["string"] })]),
  Type: "int",
});

type ShownEvent = ValueOf<typeof queryEvent>;

const returns = stream(queryEvent);

async function* shown(events: AsyncIterable<DhtEvent>): AsyncGenerator<ShownEvent, void, undefined> {
  for await (const { type, id, responses, text, value } of events) {
    yield {
      Extra: text ?? (value === undefined ? "" : Buffer.from(value).toString("base64")),
      ID: id?.toString() ?? "",
      Responses: responses?.map((peer) => ({ ID: String(peer.id), Addrs: texts(peer.multiaddrs) })) ?? null,
      Type: type,
    };
  }
}

type Print = (event: ShownEvent, verbose: boolean) => string | Uint8Array;

const addresses = ({ Responses }: ShownEvent): readonly string[] => (Responses ?? []).flatMap(({ Addrs }) => Addrs);
const chatter =
  (print: (event: ShownEvent) => string): Print =>
  (event, verbose) =>
    verbose ? print(event) : "";

/** Text of the events that a command does not print in its own way. */
const usual: Readonly<Record<number, Print>> = {
  [eventTypes.sendingQuery]: chatter(({ ID }) => `* querying ${ID}\n`),
  [eventTypes.peerResponse]: chatter(
    ({ ID, Responses }) => `* ${ID} says use ${(Responses ?? []).map((peer) => `${peer.ID} `).join("")}\n`,
  ),
  [eventTypes.queryError]: chatter(({ Extra }) => `error: ${Extra}\n`),
  [eventTypes.dialingPeer]: chatter(({ ID }) => `dialing peer: ${ID}\n`),
};

const printId: Print = ({ ID }) => `${ID}\n`;
const printAddresses: Print = (event) => lines(addresses(event));
const printProvider: Print = (event, verbose) => {
  const names = (event.Responses ?? []).map(({ ID }) => `${verbose ? "provider: " : ""}${ID}`);
  return lines([...names, ...(verbose ? addresses(event).map((address) => `\t${address}`) : [])]);
};
/** Prints the record: raw bytes or, with `verbose`, a quoted line. */
const printRecord: Print = ({ Extra }, verbose) => (verbose ? `got value: '${Extra}'\n` : Buffer.from(Extra, "base64"));

/** Returns the local time with milliseconds. */
function moment(): string {
  const now = new Date();
  const two = (number: number) => String(number).padStart(2, "0");
  const time = [now.getHours(), now.getMinutes(), now.getSeconds()].map(two).join(":");
  return `${time}.${String(now.getMilliseconds()).padStart(3, "0")}`;
}

/**
 * Returns the text function for the events of a command. `own` has the texts of the event types
 * that the command prints in its own way.
 */
export const printing =
  (own: Readonly<Record<number, Print>>) =>
  (event: ShownEvent, { options: { verbose } }: { readonly options: { readonly verbose: boolean | undefined } }) => {
    const print = own[event.Type] ?? usual[event.Type];
    const text = print?.(event, verbose === true) ?? "";
    return verbose === true ? `${moment()}: ${text}` : text;
  };

/** @param isKubo043 behave like Kubo 0.43, which does not search for the node itself */
export const findPeer = (isKubo043: boolean) =>
  readCommand({
    help: "Finds the addresses of a peer.",
    arguments: several("peerID", "The peer's ID; further arguments are ignored."),
    options,
    returns,
    run: ({ node, arguments: { peerID }, signal }) =>
      shown(node.dht.events.findPeer(peerID[0] as string, { signal, onlyOthers: isKubo043 })),
    text: printing({ [eventTypes.finalPeer]: printAddresses }),
  });

/** @param isKubo043 behave like Kubo 0.43, where a path may name the block */
export const findProviders = (isKubo043: boolean) =>
  readCommand({
    help: "Finds peers that provide a block.",
    arguments: several("key", `CID ${isKubo043 ? "or path " : ""}of the block; further arguments are ignored.`),
    options: {
      ...options,
      "num-providers": { type: "int", aliases: ["n"], default: 20, help: "Number of providers to find." },
    },
    returns,
    run: ({ node, arguments: { key }, options: { "num-providers": numProviders }, signal }) =>
      shown(node.dht.events.findProvs(key[0] as string, { numProviders, signal, paths: isKubo043 })),
    text: printing({ [eventTypes.provider]: printProvider }),
  });

const putting = { options, file: { name: "value-file", required: true, help: "The record." }, returns } as const;

/**
 * Behaves like Kubo 0.43: accepts only records of names, and sends a single event when all is done.
 */
export const putKubo043 = writeCommand({
  ...putting,
  help: "Stores the record of a name.",
  arguments: [{ name: "key", required: true, help: "The name, with or without `/ipns/` before it." }],
  options: {
    ...options,
    "allow-offline": { type: "bool", help: "While the node is offline, store the record on this machine only." },
  },
  async *run({ node, arguments: { key }, options, files, signal, offline }) {
    const { "allow-offline": allowOffline } = options;
    const id = parsePeerId(key.replace(/^\/ipns\//, "")).toString();
    if ((offline === true || !node.lowLevel.online) && allowOffline !== true) {
      throw failure("OFFLINE_NOT_ALLOWED", { reason: "can't put while offline: pass `--allow-offline` to override" });
    }
    const how = { allowOffline, signal, offline };
    try {
      for await (const _ of node.dht.events.put(`/ipns/${id}`, (await files.one()).body, how));
    } catch (error) {
      // The record is stored on this node even if no peer can take it.
      if (!(NodeError.is(error) && error.code === "ROUTING_TABLE_EMPTY")) throw error;
    }
    yield { ID: id, Type: eventTypes.value, Responses: null, Extra: "" };
  },
  text: printing({ [eventTypes.value]: printId }),
});

const getting = { options, returns, text: printing({ [eventTypes.value]: printRecord }) } as const;

/**
 * Behaves like Kubo 0.43: sends only the event with the record. If none is found, the call fails
 * before the first event.
 */
export const getKubo043 = readCommand({
  ...getting,
  help: "Returns the best record for a key.",
  arguments: several("key", "The key, `/ipns/<name>` or `/pk/<peer ID>`; further arguments are ignored."),
  async *run({ node, arguments: { key }, signal }) {
    for await (const { Type, Extra } of shown(node.dht.events.get(key[0] as string, { signal }))) {
      if (Type === eventTypes.value) yield { ID: "", Type, Responses: null, Extra };
    }
  },
});

/**
 * @param isKubo043 behave like Kubo 0.43: fail if announcing is off, and report the search only
 * with `verbose`
 */
export const provide = (isKubo043: boolean) =>
  writeCommand({
    help: "Announces that this node provides blocks.",
    arguments: [{ name: "key", required: true, variadic: true, stdin: "lines", help: "CIDs of the blocks." }],
    options: {
      ...options,
      recursive: { type: "bool", aliases: ["r"], help: "Also announce everything that they link to." },
    },
    returns,
    async *run({ node, arguments: { key }, options: { recursive, verbose }, signal }) {
      const events = shown(node.dht.events.provide(key, { recursive, signal, onlyIfOn: isKubo043 }));
      for await (const event of events) if (!isKubo043 || verbose === true) yield event;
    },
    text: printing({}),
  });

export const commands = {
  dht: defineGroup({ help: "Query the routing system." }),
  "dht/findpeer": findPeer(false),
  "dht/findprovs": findProviders(false),
  "dht/get": readCommand({
    help: "Returns the best record for a key.",
    ...getting,
    arguments: several("key", "The key, `/ipns/<name>` or `/pk/<peer ID>`; further arguments are ignored."),
    run: ({ node, arguments: { key }, signal }) => shown(node.dht.events.get(key[0] as string, { signal })),
  }),
  "dht/provide": provide(false),
  "dht/put": writeCommand({
    help: "Stores a record for a key.",
    arguments: [{ name: "key", required: true, help: "The key, `/ipns/<name>` or `/pk/<peer ID>`." }],
    ...putting,
    run: async ({ node, arguments: { key }, files, signal }) =>
      shown(node.dht.events.put(key, (await files.one()).body, { signal })),
    text: printing({ [eventTypes.value]: printId }),
  }),
  "dht/query": readCommand({
    help: "Finds the peers that are nearest to an ID.",
    arguments: several("peerID", "The ID; further arguments are ignored."),
    options,
    returns,
    run: ({ node, arguments: { peerID }, signal }) => shown(node.dht.events.query(peerID[0] as string, { signal })),
    text: printing({ [eventTypes.finalPeer]: printId }),
  }),
} satisfies Commands;
