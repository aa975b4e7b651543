/**
 * A host with a node in a temporary folder, and calls of its operations through the admin socket.
 */
import { join } from "node:path";
import { after, before } from "node:test";
import type { NodeModule } from "modhost/node";
import { Agent, fetch as fetchBy, type RequestInit as Init } from "undici";
import { createTestHost, type TestHost, type TestHostOptions } from "#core/testing/index.ts";
import type { Job } from "#modules/mod_http_admin_node/types.ts";

export interface Refusal {
  readonly error: { readonly code: string; readonly message: string };
}

export interface NodeHost extends TestHost {
  readonly node: NodeModule;
  /** The admin socket. */
  readonly socketPath: string;
  /** Resolves to any response; `path` begins after `/admin/api`. */
  ask(path: string, init?: RequestInit): Promise<Response>;
  /** Resolves to the body of a GET with status 200. */
  get<T>(path: string, fields?: Fields): Promise<T>;
  /** Resolves to the body of a POST with status 200. */
  post<T>(path: string, fields?: Fields): Promise<T>;
  /** Resolves to the status and code of an error. */
  refusal(method: "GET" | "POST", path: string, fields?: Fields): Promise<string>;
  upload(path: string, content: string | Uint8Array | ReadableStream, more?: Fields): Promise<Response>;
  /** Waits until the job has ended, and resolves to it. */
  over(job: Job): Promise<Job>;
}

type Fields = Readonly<Record<string, string | number | boolean>>;

const query = (fields: Fields = {}) => {
  const text = new URLSearchParams(
    Object.entries(fields).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  return text === "" ? "" : `?${text}`;
};

export async function startNode(options: TestHostOptions = {}): Promise<NodeHost> {
  const config = {
    modules_enabled: ["http", "http_admin", "http_admin_node"],
    node_offline: true,
    unload_grace: 2,
    ...options.config,
  };
  const running = await createTestHost({ modules: [], ...options, config });
  // The server recognizes connections of its own process, and requires a token for them at its
  // ports.
  const socketPath = join(running.folder, "admin.sock");
  const dispatcher = new Agent({ connect: { socketPath } });
  const ask: NodeHost["ask"] = (path, { headers, ...init } = {}) =>
    fetchBy(`http://localhost/admin/api${path}`, {
      ...init,
      headers: { connection: "close", "x-modhost-admin": "1", ...headers },
      dispatcher,
    } as Init) as unknown as Promise<Response>;
  const send = (method: "GET" | "POST", path: string, fields: Fields = {}) =>
    method === "GET"
      ? ask(`${path}${query(fields)}`)
      : ask(path, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(fields) });
  const value = async <T>(method: "GET" | "POST", path: string, fields?: Fields): Promise<T> => {
    const response = await send(method, path, fields);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as T;
  };
  const over = async (job: Job): Promise<Job> => {
    for (;;) {
      const found = (await value<Job[]>("GET", "/node/jobs")).find(({ id }) => id === job.id);
      if (found === undefined) throw new Error(`The job ${job.id} is gone`);
      if (found.state !== "running") return found;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  return {
    ...running,
    socketPath,
    node: running.host.exports<NodeModule>("node"),
    ask,
    get: (path, fields) => value("GET", path, fields),
    post: (path, fields) => value("POST", path, fields),
    async refusal(method, path, fields) {
      const response = await send(method, path, fields);
      const { error } = (await response.json()) as Refusal;
      return `${response.status} ${error.code}: ${error.message}`;
    },
    upload: (path, body, more) =>
      ask(`/node/files/content${query({ path, ...more })}`, { method: "POST", body, duplex: "half" } as RequestInit),
    over,
  };
}

/** Returns a host that the tests of a file share. */
export function sharedNode(options: TestHostOptions = {}): { readonly host: NodeHost } {
  let host: NodeHost;
  before(async () => {
    host = await startNode(options);
  });
  after(() => host?.stop());
  return {
    get host() {
      return host;
    },
  };
}
