/** Drives a node of any implementation through its RPC API. */
import { createHash } from "node:crypto";

export type RpcQuery = Readonly<Record<string, string | readonly string[]>>;

/** Contents of files by name. A name with slashes makes directories. */
export type Files = Readonly<Record<string, readonly Uint8Array[]>>;

interface Added {
  readonly Name: string;
  readonly Hash: string;
}

interface Identity {
  readonly ID: string;
  readonly Addresses: readonly string[];
  readonly AgentVersion: string;
  /** Nodes later than version 0.9 do not report it. */
  readonly ProtocolVersion?: string;
  readonly Protocols: readonly string[];
}

export interface RpcSettings {
  /** Transport of the address that other nodes dial. */
  readonly transport?: "tcp" | "quic-v1";
  /** The group of commands for the routing table: `dht` in version 0.9, `routing` in later ones. */
  readonly routing?: "dht" | "routing";
}

const loopback = {
  tcp: /^\/ip4\/127\.0\.0\.1\/tcp\/\d+\/p2p\/[^/]+$/,
  "quic-v1": /^\/ip4\/127\.0\.0\.1\/udp\/\d+\/quic-v1\/p2p\/[^/]+$/,
};

/** Timeout of a call in milliseconds. Streams of messages have none. */
const callWithin = 120_000;

export class Rpc {
  /** The name that reports show. */
  readonly name: string;
  readonly id: string;
  /** Multiaddress with the peer id. */
  readonly address: string;
  readonly identity: Identity;
  readonly routing: "dht" | "routing";
  readonly #api: string;

  private constructor(name: string, api: string, identity: Identity, settings: RpcSettings) {
    const { transport = "tcp", routing = "dht" } = settings;
    this.name = name;
    this.#api = api;
    this.routing = routing;
    this.identity = identity;
    this.id = identity.ID;
    const own = identity.Addresses.find((one) => loopback[transport].test(one));
    if (own === undefined) throw new Error(`${name} does not listen on the loopback: ${identity.Addresses.join(" ")}`);
    this.address = own;
  }

  /** `url`: without `/api/v0`. */
  static async of(name: string, url: string, settings: RpcSettings = {}): Promise<Rpc> {
    const api = `${url}/api/v0`;
    const [identity] = await values<Identity>(await post(api, "id"));
    return new Rpc(name, api, identity as Identity, settings);
  }

  /** @throws Error with the text of a failure */
  post(command: string, query: RpcQuery = {}, more: { readonly body?: FormData; readonly signal?: AbortSignal } = {}) {
    return post(this.#api, command, query, more);
  }

  /**
   * Returns all values of a response.
   * @throws Error with the text of a failure
   */
  async all<T = Record<string, unknown>>(command: string, query?: RpcQuery, body?: FormData): Promise<readonly T[]> {
    return values<T>(await this.post(command, query, body === undefined ? {} : { body }));
  }

  /** Returns the only value, or the last one. */
  async one<T = Record<string, unknown>>(command: string, query?: RpcQuery, body?: FormData): Promise<T> {
    const last = (await this.all<T>(command, query, body)).at(-1);
    if (last === undefined) throw new Error(`${this.name} returned nothing for ${command}`);
    return last;
  }

  /** @returns the CID of the last value; for a tree, that of its root */
  async add(files: Files, query: RpcQuery = {}): Promise<string> {
    const body = new FormData();
    for (const [name, pieces] of Object.entries(files)) {
      body.append("file", new Blob(pieces as Uint8Array<ArrayBuffer>[]), encodeURIComponent(name));
    }
    return (await this.one<Added>("add", { progress: "false", ...query }, body)).Hash;
  }

  /** Resolves to the SHA-256 of a file in hexadecimal. */
  async digest(path: string): Promise<string> {
    const hash = createHash("sha256");
    for await (const piece of (await this.post("cat", { arg: path })).body ?? []) hash.update(piece);
    return hash.digest("hex");
  }
}

async function post(
  api: string,
  command: string,
  query: RpcQuery = {},
  { body, signal }: { readonly body?: FormData; readonly signal?: AbortSignal } = {},
): Promise<Response> {
  const pairs = Object.entries(query).flatMap(([name, given]) =>
    [given].flat().map((value): [string, string] => [name, value]),
  );
  const response = await fetch(`${api}/${command}?${new URLSearchParams(pairs)}`, {
    method: "POST",
    signal: signal ?? limit(`${command} ${new URLSearchParams(pairs)}`),
    ...(body === undefined ? {} : { body }),
  });
  if (!response.ok) throw new Error(`${command}: ${response.status} ${await response.text()}`);
  return response;
}

/** Aborts a call that takes too long; the reason names it. */
function limit(call: string): AbortSignal {
  const leaving = new AbortController();
  const late = () => leaving.abort(new Error(`${call} took longer than ${callWithin} ms`));
  setTimeout(late, callWithin).unref();
  return leaving.signal;
}

async function values<T>(response: Response): Promise<readonly T[]> {
  return (await response.text()).split("\n").flatMap((line) => (line.trim() === "" ? [] : [JSON.parse(line) as T]));
}
