/** A host with the module as it is shipped, and calls as clients make them. */
import { join } from "node:path";
import { after, before } from "node:test";
import { openRepo } from "#node/storage/repo/repo.ts";
import { CommandClient } from "#test/contract/vectors/call.ts";
import { type HostSetup, startHost, type TestHost } from "#test/support/host.ts";

export interface Called {
  readonly status: number;
  readonly text: string;
  /** The body, parsed as lines of JSON. */
  readonly lines: readonly unknown[];
}

type Files = Readonly<Record<string, string | Uint8Array<ArrayBuffer>>>;

export interface RpcHost extends TestHost {
  /** Makes a call; files by name become a multipart body. */
  call(path: string, files?: Files): Promise<Called>;
  /** Returns the unparsed body of a response. */
  bytes(path: string): Promise<Uint8Array<ArrayBuffer>>;
  /** Returns the single value of a response. */
  value<T = Record<string, unknown>>(path: string): Promise<T>;
  /** Returns status and text of an error. */
  failure(path: string, files?: Files): Promise<readonly [status: number, message: unknown]>;
}

const rpcOptions = { modules_enabled: ["http", "http_api"], https_ports: [], node_offline: true };

/**
 * Starts without a network unless `node_offline` is false. With a network, calls wait for missing
 * blocks.
 */
export async function startRpc(config: Record<string, unknown> = {}, setup: Partial<HostSetup> = {}): Promise<RpcHost> {
  const host = await startHost({
    ...setup,
    config: setup.config ?? { ...rpcOptions, ...config },
  });
  const ask = (path: string, body: FormData | null) => {
    const url = `http://127.0.0.1:${host.http}/api/v0/${path}`;
    return fetch(url, { method: "POST", body, headers: { connection: "close" } });
  };
  const call: RpcHost["call"] = async (path, files) => {
    const body = files === undefined ? null : new FormData();
    for (const [name, content] of Object.entries(files ?? {})) body?.append("file", new File([content], name));
    const reply = await ask(path, body);
    const text = await reply.text();
    const isJson = reply.headers.get("content-type")?.includes("json") === true;
    const lines = isJson ? text.split("\n").filter((line) => line !== "") : [];
    return { status: reply.status, text, lines: lines.map((line) => JSON.parse(line)) };
  };
  return Object.assign(host, {
    call,
    bytes: async (path: string) => new Uint8Array(await (await ask(path, null)).arrayBuffer()),
    async value<T>(path: string) {
      const { lines, text, status } = await call(path);
      if (status !== 200 || lines.length !== 1) throw new Error(`${path} was answered with ${status}: ${text}`);
      return lines[0] as T;
    },
    async failure(path: string, files?: Files) {
      const { status, lines, text } = await call(path, files);
      const [first] = lines as { Message?: unknown }[];
      return [status, first?.Message ?? text] as const;
    },
  });
}

/** Starts an online host on loopback, with values of the node's configuration by path. */
export function startOnline(
  values: Readonly<Record<string, unknown>> = {},
  config: Record<string, unknown> = {},
): Promise<RpcHost> {
  let repo = "";
  return startRpc(
    {},
    {
      async prepare(folder) {
        repo = join(folder, "repo");
        const made = await openRepo(repo, { profile: "local" });
        for (const [path, value] of Object.entries(values)) await made.config.set(path, () => value);
        await made.close();
      },
      config: () => ({ ...rpcOptions, node_offline: false, node_repo: repo, ...config }),
    },
  );
}

/** A host for the tests of a file, with a client. Both exist from the first test to the last. */
export function clientOfHost(): { readonly host: RpcHost; readonly client: CommandClient } {
  let host: RpcHost;
  let client: CommandClient;
  before(async () => {
    host = await startRpc();
    client = new CommandClient(`http://127.0.0.1:${host.http}`);
  });
  after(async () => {
    client[Symbol.dispose]();
    await host[Symbol.asyncDispose]();
  });
  return {
    get host() {
      return host;
    },
    get client() {
      return client;
    },
  };
}
