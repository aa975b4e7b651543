/**
 * Runs the program that replaces go-ipfs, and daemons of it (or of go-ipfs itself), as launchers
 * do.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { finished } from "node:stream/promises";
import { type Options, readWords } from "#core/cli/index.ts";
import { Output } from "#core/cli/output.ts";
import { program } from "#core/cli/program.ts";
import { daemon } from "#modules/mod_http_api/cli/node/daemon.ts";
import { sharedOptions } from "#modules/mod_http_api/cli/node/repo.ts";
import { Daemon as DaemonService } from "#modules/mod_http_api/cli/node/service.ts";
import { callOptions } from "#modules/mod_http_api/cli/rpc/parse.ts";
import { openNode } from "#node/node/open.ts";
import { nodeLauncher as ownProgram } from "#test/support/launchers.ts";

/** `modhost-node` of this checkout. */
export { ownProgram };

export interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
}

interface Given {
  readonly env?: NodeJS.ProcessEnv;
  readonly stdin?: string;
}

function output(args: readonly string[], { code, stdout, stderr }: Ended): string {
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** A folder with a repo in it, and the program that uses that repo. */
export class Sandbox implements AsyncDisposable {
  readonly folder: string;
  readonly #file: string;
  readonly #children = new Set<Child>();
  readonly #services = new Set<() => Promise<unknown>>();

  private constructor(folder: string, file: string) {
    this.folder = folder;
    this.#file = file;
  }

  /** Runs another program on the same repo; disposing it does not remove the folder. */
  static at(folder: string, file: string): Sandbox {
    return new Sandbox(folder, file);
  }

  static async make(file = ownProgram): Promise<Sandbox> {
    return new Sandbox(await mkdtemp(join(tmpdir(), "modhost-node-")), file);
  }

  /**
   * Creates a repo with these config values. It listens only on loopback, on ports that the system
   * picks.
   */
  static async withRepo(config: Readonly<Record<string, unknown>> = {}): Promise<Sandbox> {
    const sandbox = await Sandbox.make();
    const node = await openNode({ repo: sandbox.repo, profile: "test", offline: true });
    for (const [key, value] of Object.entries(config)) await node.repo.config.set(key, () => value);
    await node.close();
    return sandbox;
  }

  /** Path of the repo, which `init` creates. */
  get repo(): string {
    return join(this.folder, "repo");
  }

  /** Returns the contents of the file `api`; undefined if there is none. */
  api(): Promise<string | undefined> {
    return readFile(join(this.repo, "api"), "utf8").catch(() => undefined);
  }

  /** Runs `modhost node` to its end, in this process. */
  async node(args: readonly string[], given: Given = {}): Promise<Ended> {
    const { context, printed } = this.#context(given);
    const code = await program(["node", ...args], context);
    return { code, ...(await printed()) };
  }

  /**
   * Runs the service of `modhost node daemon` in this process until it is ready, which takes a
   * tenth of the time. It leaves out the program's first lines, its signals and its exit code.
   * `stop` returns what it wrote to stderr.
   *
   * @throws the error that the program would print after `Error: `
   */
  async serve(args: readonly string[] = ["--offline"], env: NodeJS.ProcessEnv = {}): Promise<Served> {
    const { args: rest, values } = readWords(daemon, args, { ...callOptions, ...sharedOptions } as Options);
    const { context, printed, lines } = this.#context({ env });
    const output = new Output(context.stdout, undefined);
    const service = new DaemonService({ ...context, args: rest, options: values, configPath: undefined, output });
    const stop = async () => {
      this.#services.delete(stop);
      await service.stop();
      return printed();
    };
    this.#services.add(stop);
    await service.start().catch(async (error: unknown) => {
      await stop();
      throw error;
    });
    return { lines, stop };
  }

  /** Runs `node`, which must not fail, and returns its stdout. */
  async does(args: readonly string[], given?: Given): Promise<string> {
    return output(args, await this.node(args, given));
  }

  /** Runs the program to its end. */
  async run(args: readonly string[], { env = {}, stdin = "" }: Given = {}): Promise<Ended> {
    const child = this.#spawn(args, env);
    child.stdin.on("error", () => undefined).end(stdin);
    return ended(child);
  }

  async done(args: readonly string[], given?: Given): Promise<string> {
    return output(args, await this.run(args, given));
  }

  /** Starts the program. The caller waits for its end, or disposing the folder stops it. */
  start(
    args: readonly string[],
    env: NodeJS.ProcessEnv = {},
  ): { kill(signal: NodeJS.Signals): void; readonly ended: Promise<Ended> } {
    const child = this.#spawn(args, env);
    return { kill: (signal) => child.kill(signal), ended: ended(child) };
  }

  /** Starts a daemon and resolves when it reports that it is ready. */
  async daemon(args: readonly string[] = ["--offline"], env: NodeJS.ProcessEnv = {}): Promise<Daemon> {
    const child = this.#spawn(["daemon", ...args], env);
    const whole = ended(child);
    let stdout = "";
    const ready = new Promise<void>((resolve) => {
      child.stdout.on("data", (piece: Buffer) => {
        stdout += piece;
        if (/^Daemon is ready$/m.test(stdout)) resolve();
      });
    });
    const failed = whole.then(({ stderr }) => Promise.reject(new Error(`The daemon ended: ${stderr}`)));
    await Promise.race([ready, failed]);
    failed.catch(() => undefined);
    return {
      lines: () => stdout.trimEnd().split("\n"),
      kill: (signal) => child.kill(signal),
      async stop(signal = "SIGTERM") {
        child.kill(signal);
        return whole;
      },
      ended: whole,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#services].map((stop) => stop()));
    const left = [...this.#children];
    await Promise.all(left.map((child) => child.kill("SIGKILL") && once(child, "exit")));
    await rm(this.folder, { recursive: true });
  }

  /**
   * The input of a command in this process, and its output: the lines so far, or all of it at the
   * end.
   */
  #context({ env = {}, stdin = "" }: Given) {
    const stdout = new Collected();
    const stderr = new Collected();
    const context = {
      stdin: Object.assign(Readable.from(stdin === "" ? [] : [Buffer.from(stdin)]), { isTTY: stdin === "" }),
      stdout: stdout as unknown as NodeJS.WriteStream,
      stderr: stderr as unknown as NodeJS.WriteStream,
      cwd: this.folder,
      env: { IPFS_PATH: this.repo, ...env },
    };
    const printed = async () => {
      await Promise.all([stdout, stderr].map((stream) => finished(stream.end())));
      return { stdout: stdout.text(), stderr: stderr.text() };
    };
    return { context, printed, lines: () => stdout.text().trimEnd().split("\n") };
  }

  #spawn(args: readonly string[], more: NodeJS.ProcessEnv): Child {
    const { NODE_OPTIONS: _, ...inherited } = process.env;
    const [file, ...first] = this.#file.endsWith(".mjs") ? [process.execPath, this.#file] : [this.#file];
    const child = spawn(file as string, [...first, ...args], {
      cwd: this.folder,
      env: { ...inherited, IPFS_PATH: this.repo, ...more },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#children.add(child);
    child.once("exit", () => this.#children.delete(child));
    return child;
  }
}

/** A daemon in this process. */
export interface Served {
  /** Lines of its stdout so far, without the first ones. */
  lines(): string[];
  stop(): Promise<Pick<Ended, "stdout" | "stderr">>;
}

class Collected extends Writable {
  readonly #pieces: Buffer[] = [];

  override _write(piece: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#pieces.push(piece);
    done();
  }

  text(): string {
    return Buffer.concat(this.#pieces).toString();
  }
}

export interface Daemon {
  /** Lines of its stdout so far. */
  lines(): string[];
  kill(signal: NodeJS.Signals): void;
  /** Sends a signal, by default SIGTERM, and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Ended>;
  readonly ended: Promise<Ended>;
}

async function ended(child: Child): Promise<Ended> {
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return { stdout, stderr, code };
}

/** Returns the URL of a TCP multiaddr. */
export function urlOf(address: string | undefined): string {
  const [, host, port] = /^\/ip[46]\/([^/]+)\/tcp\/(\d+)$/.exec(address ?? "") ?? [];
  if (host === undefined) throw new Error(`${address} is no TCP address`);
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Calls a command of the RPC API at such a URL. */
export async function call(url: string, command: string, init: RequestInit = {}) {
  const response = await fetch(`${url}/api/v0/${command}`, { method: "POST", ...init });
  return { status: response.status, headers: response.headers, text: await response.text() };
}
