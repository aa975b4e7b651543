/** The process in whose place this one goes on, as this one sees it. */
import type { Server, Socket } from "node:net";
import type { Handed, Host } from "../../host.ts";
import { holdConnections } from "../../ports/hold.ts";
import type { HeldPort } from "../../ports/inherited.ts";
import { reasonOf } from "../../util/errors.ts";
import { packageVersion } from "../../util/package.ts";
import { type FromFormer, type FromSuccessor, type PortMessage, SUCCESSOR } from "./messages.ts";

/** The way to the parent process, where it waits for this one to go on in its place. */
export function formerProcess(env: NodeJS.ProcessEnv): Former | undefined {
  if (env[SUCCESSOR] === undefined || process.send === undefined) return undefined;
  delete env[SUCCESSOR];
  return new Former();
}

/** It accepts connections from the moment on at which it comes. */
async function portOf({ name, asked }: PortMessage, server: Server): Promise<HeldPort> {
  return { name, asked, ...(await holdConnections(server)) };
}

export class Former {
  readonly #ports: Promise<HeldPort>[] = [];
  readonly #begun = Promise.withResolvers<Handed>();
  readonly #over = Promise.withResolvers<void>();
  #host: Host | undefined;

  constructor() {
    process.on("message", (message, handle) => this.#hear(message as FromFormer, handle as Server | Socket));
    // Before anything was handed over there is nothing to go on with.
    process.on("disconnect", () => {
      this.#begun.reject(new Error("the server that was to be followed has gone"));
      this.#over.resolve();
    });
    this.#begun.promise.catch(() => undefined);
  }

  /** Tells what came of loading everything once, without a port. */
  checked(host: Host): void {
    const failed = host.modules().flatMap(({ name, host: at, status, note = "" }) => {
      return status === "failed" ? [{ name, host: at, note }] : [];
    });
    const data = String(host.config.value("data_path"));
    this.#tell({ type: "checked", version: packageVersion(), data, failed });
  }

  /** What the other process leaves, once it has stopped. @throws {Error} when it goes on itself */
  begun(): Promise<Handed> {
    return this.#begun.promise;
  }

  failed(error: unknown): void {
    this.#tell({ type: "failed", reason: reasonOf(error) });
  }

  /** This process serves: takes the connections that came meanwhile. Resolves when the other one has none left. */
  async running(host: Host): Promise<void> {
    this.#host = host;
    this.#tell({ type: "running" });
    await this.#over.promise;
  }

  #hear(message: FromFormer, handle: Server | Socket | undefined): void {
    switch (message.type) {
      case "port":
        this.#ports.push(portOf(message, handle as Server));
        break;
      case "begin":
        this.#begun.resolve(Promise.all(this.#ports).then((ports) => ({ ports, states: message.states })));
        break;
      case "connection":
        if (handle !== undefined) this.#connect(message.service, handle as Socket);
        break;
      case "over":
        this.#tell({ type: "taken" });
        this.#over.resolve();
    }
  }

  #connect(service: string, socket: Socket): void {
    socket.on("error", () => undefined);
    socket.setNoDelay(true);
    try {
      this.#host?.connect(service, socket);
    } catch {
      // The configuration has no such service any more.
      socket.destroy();
    }
  }

  #tell(message: FromSuccessor): void {
    // Without a channel the other process has gone, and nobody asks.
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
  }
}
