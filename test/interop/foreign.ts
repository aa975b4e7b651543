/** Nodes of others, as far as they are on this machine; each answers /api/v0, by itself or through a script here. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Wire } from "../network/words.ts";
import { GoIpfs, withoutGoIpfs } from "../support/go_ipfs.ts";

/** What it can do besides content, connections, identify and ping. `books`: ledgers and counters by peer. */
type Speech = "dht" | "pubsub" | "streams" | "books";

export interface Foreign extends AsyncDisposable {
  readonly url: string;
  readonly speaks: ReadonlySet<Speech>;
  readonly wire: Wire;
}

export interface Maker {
  readonly name: string;
  /** Why it is not there. */
  readonly missing: string | undefined;
  start(): Promise<Foreign>;
}

const { HELIA: helia, JS_IPFS: js } = process.env;

export const foreign: readonly Maker[] = [
  { name: "go-ipfs", missing: withoutGoIpfs || undefined, start: goIpfs },
  {
    name: "helia",
    missing: helia === undefined ? "HELIA does not name a folder with helia and @helia/unixfs" : undefined,
    start: () => script("helia_node.mjs", helia as string, ["dht", "pubsub"]),
  },
  {
    name: "js-ipfs",
    missing: js === undefined ? "JS_IPFS does not name a folder with ipfs-daemon@0.16.1" : undefined,
    start: () => script("js_ipfs_node.mjs", js as string, ["dht", "pubsub"]),
  },
];

async function goIpfs(): Promise<Foreign> {
  const go = await GoIpfs.start(["--enable-pubsub-experiment"]);
  return {
    url: go.url,
    speaks: new Set(["dht", "pubsub", "streams", "books"]),
    wire: "plain",
    [Symbol.asyncDispose]: () => go[Symbol.asyncDispose](),
  };
}

/** A program of this folder that says where it answers; the packages are those of `folder`. */
async function script(file: string, folder: string, speaks: readonly Speech[]): Promise<Foreign> {
  const child: ChildProcess = fork(fileURLToPath(new URL(file, import.meta.url)), [folder], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const exited = once(child, "exit");
  const url = await Promise.race([
    once(child, "message").then(([said]) => String(said)),
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
