/**
 * The reference's own node, for tests that meet it: only where GO_IPFS names its program, or KUBO
 * that of today.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const { GO_IPFS, KUBO } = process.env;

/** Of tests that need it. */
export const withoutGoIpfs: string | false = GO_IPFS === undefined && "GO_IPFS does not name the reference's program";
export const withoutKubo: string | false = KUBO === undefined && "KUBO does not name the program of today's reference";

/** By section. */
type KuboConfig = Record<string, Record<string, unknown>>;

const routingMethods = ["find-providers", "find-peers", "get-ipns", "put-ipns", "provide"];

/**
 * The section `Routing` of a config of today's reference: it asks one server of delegated routing,
 * and nobody else.
 */
export const routedBy = (endpoint: string) => ({
  Type: "custom",
  Routers: { only: { Type: "http", Parameters: { Endpoint: endpoint } } },
  Methods: Object.fromEntries(routingMethods.map((method) => [method, { RouterName: "only" }])),
});

interface Identity {
  readonly ID: string;
  readonly Addresses: readonly string[] | null;
}

/** A daemon on loopback that knows nobody. */
export class GoIpfs implements AsyncDisposable {
  readonly id: string;
  /** Where it is met, with its id; "" where it is offline. */
  readonly address: string;
  readonly #api: string;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(child: ChildProcess, folder: string, api: string, identity: Identity) {
    this.#child = child;
    this.#folder = folder;
    this.#api = api;
    this.id = identity.ID;
    this.address = identity.Addresses?.[0] ?? "";
  }

  /** `args`: further arguments of `ipfs daemon`; `prepare` gets the folder of the repo. */
  static async start(
    args: readonly string[] = [],
    prepare?: (repo: string) => Promise<void>,
    program = GO_IPFS,
  ): Promise<GoIpfs> {
    if (program === undefined) throw new Error("No variable names the program");
    const folder = await mkdtemp(join(tmpdir(), "modhost-go-ipfs-"));
    const env = { ...process.env, IPFS_PATH: folder };
    await promisify(execFile)(program, ["init", "--profile=test"], { env });
    await prepare?.(folder);
    const child = spawn(program, ["daemon", ...args], { env, stdio: ["ignore", "pipe", "ignore"] });
    const lines = createInterface(child.stdout);
    for await (const line of lines) if (line === "Daemon is ready") break;
    child.stdout.resume();
    const [, , host, , port] = (await readFile(join(folder, "api"), "utf8")).split("/");
    const api = `http://${host}:${port}/api/v0`;
    const answer = await fetch(`${api}/id`, { method: "POST" });
    return new GoIpfs(child, folder, api, (await answer.json()) as Identity);
  }

  /**
   * As `start`, of today's reference, which asks nothing of the world; `change` gets its config.
   */
  static startKubo(change: (config: KuboConfig) => void = () => {}, args: readonly string[] = []): Promise<GoIpfs> {
    const prepare = async (repo: string) => {
      const file = join(repo, "config");
      const config = JSON.parse(await readFile(file, "utf8")) as KuboConfig;
      config.AutoConf = { Enabled: false };
      config.DNS = { Resolvers: {} };
      config.Ipns = { DelegatedPublishers: [] };
      change(config);
      await writeFile(file, JSON.stringify(config));
    };
    return GoIpfs.start(args, prepare, KUBO);
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** Of its RPC, before `/api/v0`. */
  get url(): string {
    return new URL(this.#api).origin;
  }

  /** Of its gateway; only of today's reference. */
  async gateway(): Promise<string> {
    return (await readFile(join(this.#folder, "gateway"), "utf8")).trim();
  }

  /** What a command of its program prints that asks this daemon. */
  async run(...args: readonly string[]): Promise<string> {
    const env = { ...process.env, IPFS_PATH: this.#folder };
    return (await promisify(execFile)(this.#child.spawnfile, args, { env })).stdout.trim();
  }

  /** Values of an answer. @throws Error with the text of a failure */
  async call<T = Record<string, unknown>>(path: string, body?: FormData): Promise<readonly T[]> {
    const answer = await fetch(`${this.#api}/${path}`, { method: "POST", ...(body === undefined ? {} : { body }) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${text}`);
    return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as T]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.kill();
    await ended;
    await rm(this.#folder, { recursive: true, force: true });
  }
}
