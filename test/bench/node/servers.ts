/**
 * Starts the node, other nodes, and a server that shows the limit of the machine: each in a process
 * of its own.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Subject } from "#test/bench/measure.ts";
import { install, pack } from "#test/contract/package/packed.ts";
import { RpcServer } from "#test/support/rpc_server.ts";

export interface Started {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export interface NodeServer extends Started {
  readonly name: string;
  /** Whether it shows the limit of the machine: it receives and sends bodies, but has no lists. */
  readonly isLimit: boolean;
}

/** The package, built and installed in a folder that is removed at the end. */
export interface Installed extends AsyncDisposable {
  readonly launcher: string;
}

/** Installs the package, so that built code is measured, as for the other nodes. */
export async function installed(): Promise<Installed> {
  const packed = await pack();
  const launcher = join(await install(packed, []), "node_modules/modhost/core/cli/launch.mjs");
  return { launcher, [Symbol.asyncDispose]: () => packed[Symbol.asyncDispose]() };
}

/** Starts the available servers, ours first. Their data is in `folder`. */
export async function startServers({ launcher }: Installed, folder: string): Promise<readonly NodeServer[]> {
  const path = join(folder, "modhost");
  await mkdir(path);
  const ours = await modhost(launcher, path);
  try {
    return [ours, ...(await startPeers(folder))];
  } catch (error) {
    await ours.stop();
    throw error;
  }
}

/** Starts all servers except ours. */
export async function startPeers(folder: string): Promise<readonly NodeServer[]> {
  const { GO_IPFS: go, JS_IPFS: js, KUBO: kubo } = process.env;
  const own = async (name: string) => {
    const path = join(folder, name);
    await mkdir(path);
    return path;
  };
  const servers: NodeServer[] = [];
  try {
    servers.push(await plain(await own("plain")));
    if (js !== undefined) servers.push(await script("js-ipfs", "js_ipfs.ts", await own("js")));
    if (go !== undefined) servers.push(await reference("go-ipfs", go, await own("go")));
    if (kubo !== undefined) servers.push(await reference("Kubo", kubo, await own("kubo")));
    return servers;
  } catch (error) {
    await Promise.all(servers.map((server) => server.stop()));
    throw error;
  }
}

const plain = async (folder: string): Promise<NodeServer> => ({
  ...(await script("node:http, the least", "plain_store.ts", folder)),
  isLimit: true,
});

async function script(name: string, file: string, folder: string): Promise<NodeServer> {
  const subject = await Subject.start(name, file, "/", { BENCH_FOLDER: folder });
  const { port, pid } = subject;
  return { name, url: `http://127.0.0.1:${port}`, pid, isLimit: false, stop: () => subject.stop() };
}

/** Starts modhost without the network, like the others. */
async function modhost(launcher: string, folder: string): Promise<NodeServer> {
  const server = await RpcServer.start({ folder, launcher, env: { MODHOST_NODE_OFFLINE: "true" } });
  return { name: "modhost", url: server.url, pid: server.pid, isLimit: false, stop: () => server.stop() };
}

async function reference(name: string, binary: string, folder: string): Promise<NodeServer> {
  initRepo(binary, folder);
  return { name, isLimit: false, ...(await startDaemon(binary, folder, "--offline")) };
}

/** Makes a repo without bootstrap peers. `binary`: go-ipfs or Kubo. */
export function initRepo(binary: string, folder: string): void {
  const env = { ...process.env, IPFS_PATH: folder };
  for (const words of [
    ["init", "--profile=test"],
    ["bootstrap", "rm", "--all"],
  ]) {
    const { status, stderr } = spawnSync(binary, words, { env, encoding: "utf8" });
    if (status !== 0) throw new Error(`${binary} ${words.join(" ")}: ${stderr}`);
  }
}

/** Starts a daemon. Resolves when it accepts calls. */
export async function startDaemon(binary: string, folder: string, ...flags: readonly string[]): Promise<Started> {
  const env = { ...process.env, IPFS_PATH: folder };
  const child = spawn(binary, ["daemon", ...flags], { env, stdio: ["ignore", "pipe", "ignore"] });
  const exited = once(child, "exit");
  const said: string[] = [];
  for await (const line of createInterface(child.stdout)) {
    said.push(line);
    const [, port] = /^(?:RPC )?API server listening on \/ip4\/127\.0\.0\.1\/tcp\/(\d+)/.exec(line) ?? [];
    if (port === undefined) continue;
    child.stdout.resume();
    const stop = async () => {
      child.kill();
      await exited;
    };
    return { url: `http://127.0.0.1:${port}`, pid: child.pid as number, stop };
  }
  throw new Error(`${binary} did not start: ${said.join("\n")}`);
}
