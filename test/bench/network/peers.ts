/** Processes that send and receive content over a network, two of each kind. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { serverFlags } from "#test/support/launchers.ts";
import { heliaProgram } from "#test/support/network/helia.ts";
import { startKubo } from "./kubo_peer.ts";

/** Requests to a process. Each has one value as its result. Times are in milliseconds. */
export interface Requests {
  /** Makes content of `size` bytes, cut into chunks. Returns the name to request it by. */
  add(parts: { readonly size: number; readonly chunk: number; readonly seed: number }): string;
  /** Connects several times and stays connected. Returns the times that dialling took. */
  connect(parts: { readonly address: string; readonly times: number }): readonly number[];
  /** Returns round-trip times. */
  ping(parts: { readonly address: string; readonly times: number }): readonly number[];
  /** Reads all of the content from the connected peer. */
  read(parts: { readonly name: string; readonly size: number }): null;
}

/** A kind of transfer. Two processes of each kind are measured. */
export interface PeerKind {
  readonly name: string;
  start(folder: string): Promise<Peer>;
}

type WorkerResult = { readonly value: unknown } | { readonly error: string };

/** A process that listens at `address`. */
export interface Peer {
  readonly pid: number;
  readonly address: string;
  ask<K extends keyof Requests>(request: K, parts: Parameters<Requests[K]>[0]): Promise<ReturnType<Requests[K]>>;
  stop(): Promise<void>;
}

/** A process of Node.js that executes requests, and ends with this one. */
class NodePeer implements Peer {
  readonly pid: number;
  readonly address: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, address: string) {
    this.#child = child;
    this.pid = child.pid as number;
    this.address = address;
  }

  /**
   * Starts a program of Node.js as a peer. `flags` are the arguments of Node.js, with the path or
   * the source of the program. `cwd` is the folder with the packages of the program.
   */
  static async start(flags: readonly string[], folder: string, cwd?: string): Promise<NodePeer> {
    await mkdir(folder);
    const child = spawn(process.execPath, flags, {
      cwd,
      env: { ...process.env, BENCH_FOLDER: folder, BENCH_CONTENT: import.meta.resolve("../../support/content.ts") },
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    return new NodePeer(child, (await resultOf(child)) as string);
  }

  async ask<K extends keyof Requests>(request: K, parts: Parameters<Requests[K]>[0]): Promise<ReturnType<Requests[K]>> {
    const result = resultOf(this.#child);
    this.#child.send({ request, parts });
    return (await result) as ReturnType<Requests[K]>;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.disconnect();
    await exited;
  }
}

async function resultOf(child: ChildProcess): Promise<unknown> {
  const [result] = (await Promise.race([
    once(child, "message"),
    once(child, "exit").then(([code]) => Promise.reject(new Error(`the process ended with ${code}`))),
  ])) as [WorkerResult];
  if ("error" in result) throw new Error(result.error);
  return result.value;
}

const programAt = (file: string) => fileURLToPath(new URL(file, import.meta.url));

const own = (name: string, file: string): PeerKind => ({
  name,
  start: (folder) => NodePeer.start([...serverFlags, programAt(file)], folder),
});

/** Returns the kinds whose programs are available. The first one is modhost. */
export function kinds({ HELIA: helia, KUBO: kubo } = process.env): readonly PeerKind[] {
  const all = [
    own("modhost", "modhost_peer.ts"),
    own("a bare libp2p stream", "libp2p_peer.ts"),
    own("TCP + hash", "tcp_peer.ts"),
  ];
  if (helia !== undefined) all.push({ name: "helia", start: (folder) => startHelia(helia, folder) });
  if (kubo !== undefined) all.push({ name: "Kubo", start: startKubo });
  return all;
}

async function startHelia(packages: string, folder: string): Promise<Peer> {
  const source = await heliaProgram(new URL("helia_peer.mjs", import.meta.url));
  return NodePeer.start(["--input-type=module", "--eval", source], folder, packages);
}

/** Returns the folder of the sending or the receiving process. */
export const folderOf = (folder: string, { name }: PeerKind, role: string): string =>
  join(folder, `${name.replaceAll(/\W+/g, "-")}-${role}`);
