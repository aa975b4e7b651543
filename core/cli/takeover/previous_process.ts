/** The channel to the previous server process, for the process that takes over. */
import type { Handed, Host } from "../../host.ts";
import { pauseConnections } from "../../ports/pause.ts";
import { type HandedConnection, IpcChannel, parentProcess, socketOf } from "../../relay/ipc_channel.ts";
import { reasonOf } from "../../util/errors.ts";
import { packageVersion } from "../../util/package.ts";
import { serverOf } from "../../util/patches/node/handles.ts";
import { assertNoneLost, type Checked, type HandedServer, loadedIn, TAKEOVER_VARIABLE } from "./messages.ts";

/** Returns the parent process if it waits for this process to take over. */
export function previousProcess(env: NodeJS.ProcessEnv): PreviousProcess | undefined {
  if (env[TAKEOVER_VARIABLE] === undefined || process.send === undefined) return undefined;
  delete env[TAKEOVER_VARIABLE];
  return new PreviousProcess();
}

/** Returns the failed modules of a host. */
const failedIn = (host: Host): Checked["failed"] =>
  host.modules().flatMap(({ name, host: at, status, note = "" }) => {
    return status === "failed" ? [{ name, host: at, note }] : [];
  });

export class PreviousProcess {
  readonly #checked = Promise.withResolvers<Checked>();
  readonly #handed = Promise.withResolvers<Handed>();
  readonly #serving = Promise.withResolvers<void>();
  /** Resolves when all connections have arrived, or when the previous process has ended. */
  readonly #finished = Promise.withResolvers<void>();
  readonly #channel: IpcChannel;
  #host: Host | undefined;
  /** Names of modules that were loaded in the check. */
  #loaded: ReadonlySet<string> = new Set();

  constructor() {
    const steps = {
      check: () => this.#checked.promise,
      begin: async (server: HandedServer) => {
        this.#handed.resolve(this.#receive(server));
        await this.#handed.promise;
        await this.#serving.promise;
      },
      finish: () => this.#finished.resolve(),
    };
    this.#channel = new IpcChannel(parentProcess(), steps, (connection) => this.#serve(connection));
    process.on("disconnect", () => {
      const error = new Error("the server that hands over has ended");
      this.#channel.end(error);
      this.#handed.reject(error);
      this.#finished.resolve();
    });
    this.#handed.promise.catch(() => undefined);
  }

  /** Reports the result of loading everything once without opening a port. */
  checked(host: Host): void {
    this.#loaded = loadedIn(host);
    const data = String(host.config.value("data_path"));
    const { isEmpty, file } = host.config;
    this.#checked.resolve({ version: packageVersion(), data, config: { isEmpty, file }, failed: failedIn(host) });
  }

  /**
   * @throws {Error} names a module that was loaded in the check, and fails now that this process is
   * to serve
   */
  assertNothingLost(host: Host): void {
    assertNoneLost(failedIn(host), this.#loaded);
  }

  /**
   * Resolves to the ports and states of the previous process once it has stopped. @throws {Error}
   * when that process has ended without handing them over
   */
  begun(): Promise<Handed> {
    return this.#handed.promise;
  }

  failed(error: unknown): void {
    this.#channel.notify("failed", reasonOf(error));
  }

  /**
   * Called when this process serves: takes the connections that came in the meantime. Resolves when
   * all have arrived.
   */
  async running(host: Host): Promise<void> {
    this.#host = host;
    this.#serving.resolve();
    await this.#finished.promise;
  }

  /** Takes the ports. They accept connections from now on, and the connections wait. */
  async #receive({ ports, states }: HandedServer): Promise<Handed> {
    const taken = this.#channel.takeAll(ports).map(async ({ name, requested, handle }) => {
      return { name, requested, ...(await pauseConnections(serverOf(handle))) };
    });
    return { ports: await Promise.all(taken), states };
  }

  #serve(connection: HandedConnection): void {
    const socket = socketOf(connection).setNoDelay(true);
    try {
      this.#host?.connect(connection.service, socket);
    } catch {
      // The configuration no longer has this service.
      socket.destroy();
    }
  }
}
