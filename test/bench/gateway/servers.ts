/**
 * Starts the gateway, Kubo's gateway and a plain server of the same files: each in a process of its
 * own, without a network.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Subject } from "#test/bench/measure.ts";
import { exchange } from "#test/bench/node/client.ts";
import { file, fileName, files } from "#test/bench/node/content.ts";
import { lastHash } from "#test/bench/node/works.ts";
import { keystream } from "#test/support/content.ts";
import { GoIpfs } from "#test/support/go_ipfs.ts";
import { RpcServer } from "#test/support/rpc_server.ts";
import { FILE_BYTES, type GatewayContent, type GatewayScale } from "./works.ts";

export interface BenchedGateway {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  /** Whether it only serves files by their names. */
  readonly isStatic: boolean;
  stop(): Promise<unknown>;
}

export interface Servers extends AsyncDisposable {
  /** All servers; ours is the first. */
  readonly all: readonly BenchedGateway[];
  readonly content: GatewayContent;
}

/** Starts the servers with the same content. Kubo is left out unless KUBO names its program. */
export async function startServers(launcher: string, folder: string, scale: GatewayScale): Promise<Servers> {
  const all: BenchedGateway[] = [];
  const stop = async () => void (await Promise.all(all.map((server) => server.stop())));
  try {
    const ours = await startOurs(launcher, join(folder, "modhost"));
    all.push(ours);
    const content = await fill(ours.url, scale);
    if (process.env.KUBO !== undefined) all.push(await startKubo(ours.url, content));
    all.push(await startStatic(join(folder, "static"), scale));
    return { all, content, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startOurs(launcher: string, folder: string): Promise<BenchedGateway> {
  await mkdir(folder);
  const env = { MODHOST_MODULES_ENABLED: "http,http_errors,http_api,http_gateway", MODHOST_NODE_OFFLINE: "true" };
  const server = await RpcServer.start({ folder, launcher, env });
  return { name: "modhost", url: server.url, pid: server.pid, isStatic: false, stop: () => server.stop() };
}

const ADD = "/api/v0/add?progress=false&cid-version=1";
const SEED = 7;

/**
 * Adds a large file, and many small ones in a directory of one block and in a sharded directory.
 */
async function fill(url: string, { size, entries }: GatewayScale): Promise<GatewayContent> {
  const added = async (upload: ReturnType<typeof file>) => lastHash((await exchange(url, ADD, upload)).tail);
  const large = await added(file(size, SEED));
  const small = () => files(entries, FILE_BYTES, SEED, "tree");
  const flat = await added(small());
  await exchange(url, "/api/v0/config?arg=Experimental.ShardingEnabled&arg=true&bool=true");
  const sharded = await added(small());
  const [leaf = ""] = [...(await text(`${url}/api/v0/refs?arg=${flat}`)).matchAll(/"Ref":"(\w+)"/g)].map(
    ([, ref]) => ref,
  );
  return { large, flat, sharded, leaf };
}

/** Imports the content as archives, so that Kubo has the same blocks. */
async function startKubo(from: string, { large, flat, sharded }: GatewayContent): Promise<BenchedGateway> {
  const kubo = await GoIpfs.startKubo(undefined, ["--offline"]);
  for (const root of [large, flat, sharded]) {
    const archive = await fetch(`${from}/api/v0/dag/export?arg=${root}`, { method: "POST" });
    const body = new FormData();
    body.append("file", await archive.blob());
    await kubo.call("dag/import?pin-roots=false", body);
  }
  return {
    name: "Kubo",
    url: await kubo.gateway(),
    pid: kubo.pid,
    isStatic: false,
    stop: () => kubo[Symbol.asyncDispose](),
  };
}

async function startStatic(folder: string, { size, entries }: GatewayScale): Promise<BenchedGateway> {
  await mkdir(join(folder, "small"), { recursive: true });
  await writeFile(join(folder, "large"), keystream(size, SEED));
  const contents = Buffer.concat([...keystream(entries * FILE_BYTES, SEED)]);
  for (let at = 0; at < entries; at += 1) {
    await writeFile(join(folder, "small", fileName(at)), contents.subarray(at * FILE_BYTES, (at + 1) * FILE_BYTES));
  }
  const subject = await Subject.start("static files", "static_files.ts", "/", { BENCH_FOLDER: folder });
  const { name, port, pid } = subject;
  return { name, url: `http://127.0.0.1:${port}`, pid, isStatic: true, stop: () => subject.stop() };
}

const text = async (url: string): Promise<string> => (await fetch(url, { method: "POST" })).text();
