/** Hosts on one store, each a process of its own. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { StoreSettings } from "#test/support/engines/shared_store.ts";
import { eventually } from "#test/support/eventually.ts";
import { apiOffline, RpcServer } from "#test/support/rpc_server.ts";
import type { Host } from "./works.ts";

export interface HostsOptions {
  /** Of Node. */
  readonly flags?: readonly string[];
  /** More of the environment of a host. */
  readonly env?: (name: string) => NodeJS.ProcessEnv;
}

/** They end with the process that started them. */
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

  /** Those that run. */
  get all(): readonly Host[] {
    return [...this.#hosts.values()].sort((one, other) => one.name.localeCompare(other.name));
  }

  folderOf(name: string): string {
    return join(this.#folder, name);
  }

  async startAll(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, (_, at) => this.start(`host${at + 1}`)));
  }

  /** In a folder that has its name: that of a new one is made. */
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
 * A host that begins while it cannot reach the store serves without its node, and tries again by
 * itself.
 */
async function idOf(server: RpcServer): Promise<{ readonly ID: string }> {
  const told = Promise.withResolvers<{ readonly ID: string }>();
  await eventually("a host that was started has its node", async () => {
    const answer = await server.call("id");
    const text = await answer.text();
    if (answer.ok) told.resolve(JSON.parse(text));
    else if (answer.status !== 503) throw new Error(`a host that was started answers ${answer.status}: ${text}`);
    return answer.ok;
  });
  return told.promise;
}
