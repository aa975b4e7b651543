/** The program that stands in for go-ipfs, and daemons of it (or of go-ipfs itself) as launchers start them. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { finished } from "node:stream/promises";
import { callOptions, type Options, readWords } from "#core/cli/index.ts";
import { Output } from "#core/cli/output.ts";
import { program } from "#core/cli/program.ts";
import { daemon } from "#modules/mod_http_api/cli/node/daemon.ts";
import { sharedOptions } from "#modules/mod_http_api/cli/node/repo.ts";
import { Daemon as DaemonService } from "#modules/mod_http_api/cli/node/service.ts";
import { openNode } from "#node/open.ts";
import { nodeLauncher as ownProgram, wordsOf } from "#test/support/launchers.ts";

/** `modhost-node` of the clone. */
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

/** A folder with a repo in it, and the program on that repo. */
export class Place implements AsyncDisposable {
  readonly folder: string;
  readonly #file: string;
  readonly #children = new Set<Child>();
  readonly #services = new Set<() => Promise<unknown>>();

  private constructor(folder: string, file: string) {
    this.folder = folder;
    this.#file = file;
  }

  /** Another program on the same repo; the folder is not its own to remove. */
  static at(folder: string, file: string): Place {
    return new Place(folder, file);
  }

  static async make(file = ownProgram): Promise<Place> {
    return new Place(await mkdtemp(join(tmpdir(), "modhost-node-")), file);
  }

  /** With a repo that listens on loopback only, on ports that the system picks, and has these values in its config. */
  static async withRepo(config: Readonly<Record<string, unknown>> = {}): Promise<Place> {
    const place = await Place.make();
    const node = await openNode({ repo: place.repo, profile: "test", offline: true });
    for (const [key, value] of Object.entries(config)) await node.repo.config.set(key, () => value);
    await node.close();
    return place;
  }

  /** Not made before `init`. */
  get repo(): string {
    return join(this.folder, "repo");
  }

  /** What the file `api` says; undefined when there is none. */
  api(): Promise<string | undefined> {
    return readFile(join(this.repo, "api"), "utf8").catch(() => undefined);
  }

  /** `modhost node` to the end, in this process. */
  async node(args: readonly string[], given: Given = {}): Promise<Ended> {
    const { context, printed } = this.#context(given);
    const code = await program(["node", ...args], context);
    return { code, ...(await printed()) };
  }

  /**
   * The service that `modhost node daemon` runs, in this process, until it is ready: a tenth of the time. Of the program it
   * leaves out the first lines, the signals and the exit code. What it wrote to the standard error is known when it is stopped.
   *
   * @throws what the program would print behind `Error: `
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

  /** The standard output of such a run that must not fail. */
  async does(args: readonly string[], given?: Given): Promise<string> {
    return output(args, await this.node(args, given));
  }

  /** The program to the end. */
  async run(args: readonly string[], { env = {}, stdin = "" }: Given = {}): Promise<Ended> {
    const child = this.#spawn(args, env);
    child.stdin.on("error", () => undefined).end(stdin);
    return ended(child);
  }

  async done(args: readonly string[], given?: Given): Promise<string> {
    return output(args, await this.run(args, given));
  }

  /** Runs on: whoever starts it waits for its end, or has it ended with the place. */
  start(
    args: readonly string[],
    env: NodeJS.ProcessEnv = {},
  ): { kill(signal: NodeJS.Signals): void; readonly ended: Promise<Ended> } {
    const child = this.#spawn(args, env);
    return { kill: (signal) => child.kill(signal), ended: ended(child) };
  }

  /** Runs until it says that it is ready. */
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

  /** What a command in this process is given, and what it has printed: the lines so far, or all of it at its end. */
  #context({ env = {}, stdin = "" }: Given) {
    const [stdout, stderr] = [new Collected(), new Collected()];
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
    const [file, ...first] = this.#file.endsWith(".mjs") ? [process.execPath, ...wordsOf(this.#file)] : [this.#file];
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
  /** Of its standard output so far, without those that begin it. */
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
  /** Of its standard output so far. */
  lines(): string[];
  kill(signal: NodeJS.Signals): void;
  /** Sends a signal, SIGTERM when none is named, and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Ended>;
  readonly ended: Promise<Ended>;
}

async function ended(child: Child): Promise<Ended> {
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return { stdout, stderr, code };
}

/** The URL of a TCP multiaddr. */
export function urlOf(address: string | undefined): string {
  const [, host, port] = /^\/ip[46]\/([^/]+)\/tcp\/(\d+)$/.exec(address ?? "") ?? [];
  if (host === undefined) throw new Error(`${address} is no TCP address`);
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** A command of the RPC API at such a URL. */
export async function call(url: string, command: string, init: RequestInit = {}) {
  const answer = await fetch(`${url}/api/v0/${command}`, { method: "POST", ...init });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}
