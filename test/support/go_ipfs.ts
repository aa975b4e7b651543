/**
 * Starts the reference: go-ipfs 0.9.0 if GO_IPFS names its program, and Kubo 0.43 if KUBO names
 * that.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const { GO_IPFS, KUBO } = process.env;

/** The reason to skip tests that need it. */
export const withoutGoIpfs: string | false = GO_IPFS === undefined && "GO_IPFS does not name the reference's program";
export const withoutKubo: string | false = KUBO === undefined && "KUBO does not name the program of Kubo 0.43";

/** Configuration by section. */
type KuboConfig = Record<string, Record<string, unknown>>;

const routingMethods = ["find-providers", "find-peers", "get-ipns", "put-ipns", "provide"];

/**
 * Section `Routing` of a Kubo configuration that uses one server of delegated routing and nothing
 * else.
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

/** A daemon on the loopback that connects to no bootstrap peers. */
export class GoIpfs implements AsyncDisposable {
  readonly id: string;
  /** Multiaddress with the peer id; "" for a daemon that is offline. */
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

  /** `args`: further arguments of `ipfs daemon`. `prepare` gets the folder of the repo. */
  static async start(
    args: readonly string[] = [],
    prepare?: (repo: string) => Promise<void>,
    program = GO_IPFS,
  ): Promise<GoIpfs> {
    if (program === undefined) throw new Error("Neither GO_IPFS nor KUBO names the program");
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
    const response = await fetch(`${api}/id`, { method: "POST" });
    return new GoIpfs(child, folder, api, (await response.json()) as Identity);
  }

  /**
   * Starts Kubo 0.43, without any request to public servers. `change` may edit its configuration.
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

  /** URL of the RPC API, without `/api/v0`. */
  get url(): string {
    return new URL(this.#api).origin;
  }

  /** Resolves to the URL of the gateway. Only Kubo has one here. */
  async gateway(): Promise<string> {
    return (await readFile(join(this.#folder, "gateway"), "utf8")).trim();
  }

  /** Runs a command of its program against this daemon, and returns the output. */
  async run(...args: readonly string[]): Promise<string> {
    const env = { ...process.env, IPFS_PATH: this.#folder };
    return (await promisify(execFile)(this.#child.spawnfile, args, { env })).stdout.trim();
  }

  /**
   * Calls the RPC API and returns the values of the response.
   * @throws Error with the text of a failure
   */
  async call<T = Record<string, unknown>>(path: string, body?: FormData): Promise<readonly T[]> {
    const response = await fetch(`${this.#api}/${path}`, { method: "POST", ...(body === undefined ? {} : { body }) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${text}`);
    return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as T]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.kill();
    await ended;
    await rm(this.#folder, { recursive: true, force: true });
  }
}
