/** Confines clients to the server of the test: many of them contact public servers by default. */
import dgram from "node:dgram";
import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";

type Method = (this: unknown, ...args: unknown[]) => unknown;

/**
 * While an instance exists, this process can connect and send only to the loopback, and cannot look
 * up names. Other attempts fail and are recorded.
 */
export class LoopbackOnly implements Disposable {
  /** Descriptions of the recorded attempts. */
  readonly tried: string[] = [];
  readonly #undo: (() => void)[] = [];

  constructor() {
    this.#replace(net.Socket.prototype, "connect", (...args) => {
      // The arguments as `net.connect` passes them on, or as they are documented.
      const [first, second] = Array.isArray(args[0]) ? (args[0] as unknown[]) : args;
      if (typeof first === "object") {
        const { host, path } = first as net.TcpNetConnectOpts & { readonly path?: string };
        return path === undefined ? (host ?? "localhost") : undefined;
      }
      return typeof second === "string" ? second : "localhost";
    });
    const destination = (...args: unknown[]) => args.findLast((each) => typeof each === "string") as string | undefined;
    for (const method of ["send", "connect"]) this.#replace(dgram.Socket.prototype, method, destination);
    for (const room of [dns, dns.promises, dns.Resolver.prototype, dns.promises.Resolver.prototype]) {
      const names = Object.keys(Object.getOwnPropertyDescriptors(room));
      for (const name of names.filter((each) => /^(resolve|reverse|lookup)/.test(each))) {
        this.#replace(room, name, (first) => String(first));
      }
    }
    syncBuiltinESMExports();
  }

  /** @throws Error that lists the recorded attempts */
  check(): void {
    if (this.tried.length > 0)
      throw new Error(`Something contacted other machines than this one: ${this.tried.join(", ")}`);
  }

  [Symbol.dispose](): void {
    for (const undo of this.#undo) undo();
    syncBuiltinESMExports();
  }

  /**
   * `target`: returns the host that a call would reach, or undefined if it stays on this machine.
   */
  #replace(room: object, name: string, target: (...args: unknown[]) => string | undefined): void {
    const owner = room as Record<string, Method>;
    const original = owner[name];
    if (original === undefined) return;
    const note = (attempt: string) => {
      this.tried.push(attempt);
      return new Error(`${attempt} would leave this machine`);
    };
    owner[name] = function guarded(...args) {
      const host = target(...args);
      if (host === undefined || isLoopback(host)) return original.apply(this, args);
      throw note(`${name} ${host}`);
    };
    this.#undo.push(() => {
      owner[name] = original;
    });
  }
}

const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || host.endsWith(".localhost") || /^(::ffff:)?127\./.test(host);
