/** A host with a config file that tests write repeatedly. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { createHost, type Host, type InlineModule } from "#core/index.ts";

export interface Reconfigured extends AsyncDisposable {
  readonly host: Host;
  readonly folder: string;
  /** Lines of the log, as they were written. */
  log(): string;
  /** Writes the file and applies it. */
  apply(values: Record<string, unknown>): ReturnType<Host["apply"]>;
  write(values: Record<string, unknown>): Promise<void>;
  /** Returns the response of the root of an app at the first HTTP port. */
  get(path: string, headers?: Record<string, string>): Promise<string>;
  port(): number;
}

export async function reconfigured(
  values: Record<string, unknown>,
  modules: readonly InlineModule[] = [],
  files: Readonly<Record<string, string>> = {},
  /** Called before the host is started. */
  made: (host: Host) => void = () => undefined,
): Promise<Reconfigured> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-reconfigured-"));
  const configPath = join(folder, "modhost.config.json");
  const common = { modules_enabled: ["http"], http_ports: [0], https_ports: [], http_interfaces: ["127.0.0.1"] };
  const write = (changed: Record<string, unknown>) => writeFile(configPath, JSON.stringify({ ...common, ...changed }));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  await write(values);
  let log = "";
  const destination = { write: (line: string) => void (log += line) };
  const host = createHost({ configPath, env: {}, modules, log: { destination, format: "json" } });
  const dispose = async () => {
    await host.stop({ timeout: 2 });
    await rm(folder, { recursive: true, force: true });
  };
  made(host);
  try {
    await host.start();
  } catch (error) {
    await dispose();
    throw error;
  }
  const port = () => host.listening().find(({ service }) => service === "http")?.port ?? 0;
  return {
    host,
    folder,
    log: () => log,
    write,
    async apply(changed) {
      await write(changed);
      return host.apply();
    },
    async get(path, headers = {}) {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      const options = { host: "127.0.0.1", port: port(), path: `${path}/`, headers, agent: false };
      get(options, (response) => text(response).then(resolve, reject)).once("error", reject);
      return promise;
    },
    port,
    [Symbol.asyncDispose]: dispose,
  };
}
