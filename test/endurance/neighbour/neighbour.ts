/** Measures what a module that uses up the machine costs the requests of a trusted neighbour. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { sourceFlags } from "#test/support/launchers.ts";
import { type Act, acts, noisy, pathOf, steady } from "./noisy_module.ts";

/** Milliseconds between two requests to the neighbour. */
const EVERY_MS = 5;

export interface NeighbourReport {
  readonly act: Act | "nothing";
  /** Milliseconds within which half, and 99 of 100, of the responses arrived. */
  readonly median: number;
  readonly p99: number;
  readonly requests: number;
  /** The note of the module, or the first warning of the log. */
  readonly notice: string;
  readonly failures: readonly string[];
}

export interface NeighbourOptions {
  /** Seconds for which each act is measured. */
  readonly seconds: number;
  readonly only?: readonly Act[];
}

/** Yields a report for doing nothing, and one for each act. Each has a host of its own. */
export async function* neighbours({ seconds, only }: NeighbourOptions): AsyncGenerator<NeighbourReport> {
  yield await measure("nothing", seconds);
  for (const act of Object.keys(acts) as Act[]) if (only?.includes(act) ?? true) yield await measure(act, seconds);
}

async function measure(act: Act | "nothing", seconds: number): Promise<NeighbourReport> {
  await using host = await NoisyHost.start();
  const agent = new http.Agent({ keepAlive: true });
  const get = (path: string) => ask(agent, host.port, path);
  const failures: string[] = [];
  // The first requests compile the code that serves them.
  for (let at = 0; at < 200; at += 1) await get("/steady");
  await get("/noisy");
  if (act !== "nothing") await get(pathOf(act));
  const times: number[] = [];
  const running = new Set<Promise<void>>();
  const end = performance.now() + seconds * 1000;
  for (let due = performance.now(); due < end; due += EVERY_MS) {
    const wait = due - performance.now();
    if (wait > 0) await sleep(wait);
    const began = performance.now();
    const request = get("/steady").then(
      (body) => {
        times.push(performance.now() - began);
        if (body !== "hello") failures.push(`the neighbour responded ${body}`);
      },
      (error: Error) => void failures.push(`the neighbour: ${error.message}`),
    );
    running.add(request);
    void request.finally(() => running.delete(request));
  }
  await Promise.all(running);
  const states = await host.states();
  const others = states.filter(({ name, status, note }) => name !== "noisy" && (status !== "loaded" || note));
  failures.push(...others.map(({ name, status, note }) => `${name} is ${status}: ${note}`));
  const note = states.find(({ name }) => name === "noisy")?.note;
  const notice = note || host.warnings.find((line) => !line.includes("content type")) || "";
  const expected = act === "nothing" ? undefined : acts[act];
  if (expected !== undefined && !expected.test(`${notice} ${host.warnings.join(" ")}`)) {
    failures.push(`the operator reads: ${notice || "nothing"}`);
  }
  agent.destroy();
  times.sort((one, other) => one - other);
  const at = (share: number) => times[Math.floor((times.length - 1) * share)] ?? Number.NaN;
  return { act, median: at(0.5), p99: at(0.99), requests: times.length, notice, failures };
}

function ask(agent: http.Agent, port: number, path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const request = http.get({ agent, port, path, host: "127.0.0.1", timeout: 30_000 }, async (response) => {
    try {
      resolve(Buffer.concat(await response.toArray()).toString());
    } catch (error) {
      reject(error as Error);
    }
  });
  request.on("timeout", () => request.destroy(new Error(`no response for ${path} in 30 s`)));
  request.on("error", reject);
  return promise;
}

interface NoisyState {
  readonly name: string;
  readonly status: string;
  readonly note: string | undefined;
}

/** A host in a process of its own, with a noisy sandboxed module and a steady trusted one. */
class NoisyHost implements AsyncDisposable {
  readonly port: number;
  readonly warnings: string[];
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(child: ChildProcess, folder: string, port: number, warnings: string[]) {
    this.#child = child;
    this.#folder = folder;
    this.port = port;
    this.warnings = warnings;
  }

  static async start(): Promise<NoisyHost> {
    const folder = await mkdtemp(join(tmpdir(), "modhost-neighbour-"));
    // The users that sandboxes have read the modules as well.
    await chmod(folder, 0o755);
    await mkdir(join(folder, "modules"));
    await writeFile(join(folder, "modules", "mod_noisy.js"), noisy);
    await writeFile(join(folder, "modules", "mod_steady.js"), steady);
    const config = {
      plugin_paths: [join(folder, "modules")],
      modules_enabled: ["http", "noisy", "steady"],
      http_ports: [0],
      http_interfaces: ["127.0.0.1"],
      https_ports: [],
      data_path: join(folder, "data"),
      // Lower than the defaults, so that each is reached within seconds.
      isolated_timeout: 2,
      modules: {
        noisy: {
          run: "sandboxed",
          grant: { write: ["data"], run: ["/usr/bin/env", "/usr/bin/sh", "/usr/bin/dash"] },
          limits: { memory: "256MiB", disk: "64MiB" },
        },
      },
    };
    const program = fileURLToPath(new URL("./host_program.ts", import.meta.url));
    const child = fork(program, [JSON.stringify(config)], { execArgv: [...sourceFlags] });
    const warnings: string[] = [];
    const started = Promise.withResolvers<number>();
    child.on("message", (message: { line?: string; port?: number }) => {
      if (message.line !== undefined) warnings.push(String(JSON.parse(message.line).msg));
      if (message.port !== undefined) started.resolve(message.port);
    });
    child.once("exit", (code) => started.reject(new Error(`the host ended with ${code}`)));
    return new NoisyHost(child, folder, await started.promise, warnings);
  }

  /** Returns the states of all modules. */
  async states(): Promise<readonly NoisyState[]> {
    const { promise, resolve } = Promise.withResolvers<readonly NoisyState[]>();
    const receive = ({ states }: { states?: readonly NoisyState[] }) => {
      if (states !== undefined) resolve(states);
    };
    this.#child.on("message", receive);
    this.#child.send("states");
    const states = await promise;
    this.#child.off("message", receive);
    return states;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.disconnect();
    await ended;
    await rm(this.#folder, { recursive: true, force: true });
  }
}
