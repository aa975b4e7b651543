/**
 * Nodes of other implementations that are installed on this machine. Each serves /api/v0, by itself
 * or through a program here.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { GoIpfs, withoutGoIpfs, withoutKubo } from "#test/support/go_ipfs.ts";
import { heliaProgram } from "#test/support/network/helia.ts";
import type { Wire } from "#test/support/network/words.ts";

/** Abilities besides content, connections, identify and ping, with their names in reports. */
export const speeches = {
  books: "ledgers and counters by peer",
  dht: "routing",
  names: "names",
  pubsub: "messages",
  streams: "streams",
  later: "features since version 0.9",
} as const;

export type Speech = keyof typeof speeches;

export interface Foreign extends AsyncDisposable {
  readonly url: string;
  readonly speaks: ReadonlySet<Speech>;
  readonly wire: Wire;
  /** The level of our node's API. Default: that of version 0.9. */
  readonly level?: "0.43";
  /** The transport between the nodes. Default: TCP. */
  readonly transport?: "quic-v1";
}

export interface Maker {
  readonly name: string;
  /** The reason why the node is not available. */
  readonly missing: string | undefined;
  start(): Promise<Foreign>;
}

const { HELIA: helia, JS_IPFS: js } = process.env;
/** The only address that a node listens on, by transport. */
export const listenAddresses = { tcp: "/ip4/127.0.0.1/tcp/0", "quic-v1": "/ip4/127.0.0.1/udp/0/quic-v1" } as const;
const besides = ["@helia/ipns", "@libp2p/gossipsub"];

export const foreign: readonly Maker[] = [
  { name: "go-ipfs", missing: withoutGoIpfs || undefined, start: goIpfs },
  { name: "kubo", missing: withoutKubo || undefined, start: () => kubo("tcp") },
  { name: "kubo-quic", missing: withoutKubo || undefined, start: () => kubo("quic-v1") },
  {
    name: "helia",
    missing:
      helia === undefined ? `HELIA does not name a folder with helia, @helia/unixfs, ${besides.join(", ")}` : undefined,
    start: () => program("helia_node.mjs", helia as string),
  },
  {
    name: "js-ipfs",
    missing: js === undefined ? "JS_IPFS does not name a folder with ipfs-daemon@0.16.1" : undefined,
    start: () => program("js_ipfs_node.mjs", js as string),
  },
];

async function goIpfs(): Promise<Foreign> {
  const go = await GoIpfs.start(["--enable-pubsub-experiment"]);
  return {
    url: go.url,
    speaks: new Set(["dht", "names", "pubsub", "streams", "books"]),
    wire: "plain",
    [Symbol.asyncDispose]: () => go[Symbol.asyncDispose](),
  };
}

async function kubo(transport: "tcp" | "quic-v1"): Promise<Foreign> {
  const own = await GoIpfs.startKubo((config) => {
    config.Addresses = { ...config.Addresses, Swarm: [listenAddresses[transport]] };
    config.Pubsub = { Enabled: true };
    config.Routing = { Type: "dhtserver", LoopbackAddressesOnLanDHT: true };
  });
  return {
    url: own.url,
    speaks: new Set(["books", "dht", "names", "pubsub", "streams", "later"]),
    wire: "multibase",
    level: "0.43",
    ...(transport === "tcp" ? {} : { transport }),
    [Symbol.asyncDispose]: () => own[Symbol.asyncDispose](),
  };
}

/**
 * Runs a program of this folder, which reports its address and its abilities. It runs in `folder`,
 * whose packages it uses.
 */
async function program(file: string, folder: string): Promise<Foreign> {
  const own = new URL(file, import.meta.url);
  const source = file.startsWith("helia") ? await heliaProgram(own) : await readFile(own, "utf8");
  const child = spawn(process.execPath, ["--input-type=module", "--eval", source], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const exited = once(child, "exit");
  const { url, speaks } = await Promise.race([
    once(child, "message").then(([said]) => said as { readonly url: string; readonly speaks: readonly Speech[] }),
    exited.then(([code]) => Promise.reject(new Error(`${file} ended with ${code}`))),
  ]);
  return {
    url,
    speaks: new Set(speaks),
    wire: "multibase",
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await exited;
    },
  };
}
