/** Processes that give and take content over a network, two of each kind. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { serverFlags } from "#test/support/launchers.ts";
import { heliaProgram } from "#test/support/network/helia.ts";
import { startKubo } from "./kubo_peer.ts";

/** What a process is asked to do; each answer is one value, times are in milliseconds. */
export interface Requests {
  /** Makes content of so many bytes, cut into chunks, and says what it is asked for by. */
  add(parts: { readonly size: number; readonly chunk: number; readonly seed: number }): string;
  /** Times that dialling has taken, one after the other; connected to the other in the end. */
  connect(parts: { readonly address: string; readonly times: number }): readonly number[];
  /** Round trips. */
  ping(parts: { readonly address: string; readonly times: number }): readonly number[];
  /** Reads all of the content from who is connected. */
  read(parts: { readonly name: string; readonly size: number }): null;
}

/** A way of giving and taking: two processes of each are measured. */
export interface Kind {
  readonly name: string;
  start(folder: string): Promise<Peer>;
}

type Answer = { readonly value: unknown } | { readonly error: string };

/** A process that listens at `address`. */
export interface Peer {
  readonly pid: number;
  readonly address: string;
  ask<K extends keyof Requests>(request: K, parts: Parameters<Requests[K]>[0]): Promise<ReturnType<Requests[K]>>;
  stop(): Promise<void>;
}

/** A process of Node.js that does what it is asked, and ends with this one. */
class NodePeer implements Peer {
  readonly pid: number;
  readonly address: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, address: string) {
    this.#child = child;
    this.pid = child.pid as number;
    this.address = address;
  }

  /** `flags` name the program; `cwd` is where its packages are. */
  static async start(flags: readonly string[], folder: string, cwd?: string): Promise<NodePeer> {
    await mkdir(folder);
    const child = spawn(process.execPath, flags, {
      cwd,
      env: { ...process.env, BENCH_FOLDER: folder, BENCH_CONTENT: import.meta.resolve("../../support/content.ts") },
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    return new NodePeer(child, (await answerOf(child)) as string);
  }

  async ask<K extends keyof Requests>(request: K, parts: Parameters<Requests[K]>[0]): Promise<ReturnType<Requests[K]>> {
    const answer = answerOf(this.#child);
    this.#child.send({ request, parts });
    return (await answer) as ReturnType<Requests[K]>;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.disconnect();
    await exited;
  }
}

async function answerOf(child: ChildProcess): Promise<unknown> {
  const [answer] = (await Promise.race([
    once(child, "message"),
    once(child, "exit").then(([code]) => Promise.reject(new Error(`the process ended with ${code}`))),
  ])) as [Answer];
  if ("error" in answer) throw new Error(answer.error);
  return answer.value;
}

const programAt = (file: string) => fileURLToPath(new URL(file, import.meta.url));

const own = (name: string, file: string): Kind => ({
  name,
  start: (folder) => NodePeer.start([...serverFlags, programAt(file)], folder),
});

/** Those that are there; the first is this project's. */
export function kinds({ HELIA: helia, KUBO: kubo } = process.env): readonly Kind[] {
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

/** The folder of one of the two. */
export const folderOf = (folder: string, { name }: Kind, role: string): string =>
  join(folder, `${name.replaceAll(/\W+/g, "-")}-${role}`);
