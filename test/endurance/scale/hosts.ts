/** Hosts on one store, each in a process of its own. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { StoreSettings } from "#test/support/engines/shared_store.ts";
import { eventually } from "#test/support/eventually.ts";
import { apiOffline, RpcServer } from "#test/support/rpc_server.ts";
import type { Host } from "./works.ts";

export interface HostsOptions {
  /** Flags for Node. */
  readonly flags?: readonly string[];
  /** Further environment variables of a host. */
  readonly env?: (name: string) => NodeJS.ProcessEnv;
}

/** The hosts end with the process that started them. */
export class Hosts implements AsyncDisposable {
  readonly #folder: string;
  readonly #store: StoreSettings;
  readonly #options: HostsOptions;
  readonly #hosts = new Map<string, Host>();
  readonly #end = () => {
    for (const { server } of this.#hosts.values()) void server.kill();
  };

  constructor(folder: string, store: StoreSettings, options: HostsOptions = {}) {
    this.#folder = folder;
    this.#store = store;
    this.#options = options;
    process.once("exit", this.#end);
  }

  /** Returns the running hosts. */
  get all(): readonly Host[] {
    return [...this.#hosts.values()].sort((one, other) => one.name.localeCompare(other.name));
  }

  folderOf(name: string): string {
    return join(this.#folder, name);
  }

  async startAll(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, (_, at) => this.start(`host${at + 1}`)));
  }

  /** Starts a host in a folder with its name, which is created if it is new. */
  async start(name: string): Promise<Host> {
    const folder = this.folderOf(name);
    await mkdir(folder, { recursive: true });
    const { flags = [], env: more = () => ({}) } = this.#options;
    const env = { ...apiOffline, MODHOST_NODE_STORE: JSON.stringify(this.#store), ...more(name) };
    const server = await RpcServer.start({ folder, env, nodeFlags: flags });
    try {
      const { ID: id } = await idOf(server);
      const host = { name, id, server };
      this.#hosts.set(name, host);
      return host;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  async kill({ name, server }: Host): Promise<void> {
    this.#hosts.delete(name);
    await server.kill("SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.all.map(({ server }) => server.stop()));
    process.off("exit", this.#end);
  }
}

/**
 * A host that starts while it cannot reach the store serves without its node, and retries by
 * itself.
 */
async function idOf(server: RpcServer): Promise<{ readonly ID: string }> {
  const identity = Promise.withResolvers<{ readonly ID: string }>();
  await eventually("the started host has its node", async () => {
    const response = await server.call("id");
    const text = await response.text();
    if (response.ok) identity.resolve(JSON.parse(text));
    else if (response.status !== 503) throw new Error(`the started host responds with ${response.status}: ${text}`);
    return response.ok;
  });
  return identity.promise;
}
