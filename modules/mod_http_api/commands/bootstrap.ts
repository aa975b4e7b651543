/** The bootstrap peers, which are dialled first. */
import type { BootstrapResult } from "modhost/node";
import { type AnyCall, type Argument, type Commands, readCommand, value, writeCommand } from "../rpc/command.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";
import { texts } from "./shapes.ts";

const output = fields("BootstrapOutput", { Peers: ["string"] });
const returns = value(output);

const shown = ({ Peers, texts: written }: BootstrapResult) => ({ Peers: written ?? texts(Peers) });

const lines = (word: string) => (listed: ValueOf<typeof output>) =>
  listed.Peers.toSorted()
    .map((peer) => `${word}${peer}\n`)
    .join("");

const peers = (help: string) =>
  [{ name: "peer", variadic: true, stdin: "lines", help }] as const satisfies readonly Argument[];

const list = readCommand({
  help: "Lists the bootstrap peers.",
  returns,
  run: async ({ node }) => shown(await node.bootstrap.list()),
  text: lines(""),
});

export const commands = {
  bootstrap: list,
  "bootstrap/add": writeCommand({
    help: "Adds bootstrap peers, which the node dials whenever it has too few peers.",
    example: { arg: "<peer>" },
    arguments: peers("The peers to add, as `<multiaddr>/p2p/<peer ID>`; required unless `default` is set."),
    options: {
      default: {
        type: "bool",
        deprecated: true,
        help: "Add the default peers; use `bootstrap/add/default` instead.",
      },
    },
    returns,
    run: async ({ node, arguments: { peer }, options }) =>
      shown(await node.bootstrap.add(peer, { ...options, texts: true })),
    text: lines("added "),
  }),
  "bootstrap/add/default": writeCommand({
    help: "Adds the default peers to the list.",
    returns,
    run: async ({ node }) => shown(await node.bootstrap.reset()),
    text: lines("added "),
  }),
  "bootstrap/list": list,
  "bootstrap/rm": writeCommand({
    help: "Removes bootstrap peers.",
    arguments: peers(
      "The peers to remove, as `<multiaddr>/p2p/<peer ID>`, or `/p2p/<peer ID>` for all addresses of a peer.",
    ),
    options: {
      all: { type: "bool", deprecated: true, help: "Remove all peers; use `bootstrap/rm/all` instead." },
    },
    returns,
    run: async ({ node, arguments: { peer }, options }) =>
      shown(await node.bootstrap.rm(peer, { ...options, texts: true })),
    text: lines("removed "),
  }),
  "bootstrap/rm/all": writeCommand({
    help: "Empties the list.",
    returns,
    run: async ({ node }) => shown(await node.bootstrap.clear({ texts: true })),
    text: lines("removed "),
  }),
} satisfies Commands;

const listing = {
  help: "Lists the bootstrap peers.",
  returns,
  text: lines(""),
} as const;

type ListCall = Pick<AnyCall, "node"> & { readonly options: { readonly "expand-auto"?: boolean | undefined } };

const listed = async ({ node, options }: ListCall) =>
  options["expand-auto"] === true ? shown(await node.bootstrap.list()) : { Peers: await node.bootstrap.written() };

const bootstrapKubo043 = readCommand({
  ...listing,
  options: { "expand-auto": { type: "bool", help: "Show the values that the word `auto` stands for." } },
  run: listed,
});

/**
 * Kubo 0.43 stores no default peers in the list: the word `auto` stands for peers that are looked
 * up.
 */
export const kubo043 = {
  bootstrap: bootstrapKubo043,
  "bootstrap/list": readCommand({ ...listing, group: bootstrapKubo043, run: listed }),
  "bootstrap/add": writeCommand({
    help: "Adds bootstrap peers, which the node dials whenever it has too few peers.",
    example: { arg: "<peer>" },
    arguments: peers("The peers to add, as `<multiaddr>/p2p/<peer ID>`, or `auto`, which `default` adds as well."),
    options: { default: { type: "bool", deprecated: true, help: "Ignored." } },
    returns,
    async run({ node, arguments: { peer } }) {
      const words = peer.map((each) => (each === "default" ? "auto" : each));
      return shown(await node.bootstrap.add(words, { texts: true }));
    },
    text: lines("added "),
  }),
  "bootstrap/add/default": writeCommand({
    help: "Adds the word `auto`.",
    returns,
    run: async ({ node }) => shown(await node.bootstrap.add(["auto"], { texts: true })),
    text: lines("added "),
  }),
} satisfies Commands;
