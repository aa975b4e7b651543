/**
 * Clients that must ask nobody but the server of the test: they have public servers of their own by
 * default.
 */
import dgram from "node:dgram";
import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";

type Method = (this: unknown, ...args: unknown[]) => unknown;

/**
 * While it is there, this process connects and sends to the loopback alone, and asks for no name:
 * what is tried otherwise fails, and is kept.
 */
export class LoopbackOnly implements Disposable {
  /** What was tried, as texts. */
  readonly tried: string[] = [];
  readonly #undo: (() => void)[] = [];

  constructor() {
    this.#replace(net.Socket.prototype, "connect", (...args) => {
      // As `net.connect` hands it on, or as it is documented.
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
        this.#replace(room, name, (asked) => String(asked));
      }
    }
    syncBuiltinESMExports();
  }

  /** @throws Error that names what was tried */
  check(): void {
    if (this.tried.length > 0) throw new Error(`Something other than this machine was asked: ${this.tried.join(", ")}`);
  }

  [Symbol.dispose](): void {
    for (const undo of this.#undo) undo();
    syncBuiltinESMExports();
  }

  /** `target`: where a call leads; undefined: nowhere outside. */
  #replace(room: object, name: string, target: (...args: unknown[]) => string | undefined): void {
    const owner = room as Record<string, Method>;
    const original = owner[name];
    if (original === undefined) return;
    const note = (told: string) => {
      this.tried.push(told);
      return new Error(`${told} is not on this machine`);
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
