/** Where a process takes the requests that another one hands over: a socket of the system. */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createServer, type Server, Socket, type SocketConstructorOpts } from "node:net";
import { join } from "node:path";
import { admit } from "../isolation/http.ts";
import type { TakeConnection } from "./link.ts";
import type { DoorFacts } from "./messages.ts";
import type { MemberDeps } from "./role.ts";

export class Door {
  readonly facts: DoorFacts;
  readonly #deps: MemberDeps;
  /** Connections of the other processes. */
  readonly #inner = new WeakSet<object>();
  #server: Server | undefined;

  constructor(deps: MemberDeps) {
    this.#deps = deps;
    const token = randomBytes(16).toString("hex");
    const { folder, number } = deps.begin;
    const isPipe = process.platform === "win32";
    const socket = isPipe ? `\\\\.\\pipe\\modhost-${token}` : join(folder, `${number}-${process.pid}`);
    this.facts = { number, socket, token };
  }

  async open(): Promise<void> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      this.#inner.add(socket);
      this.#connect(socket);
    });
    this.#server = server;
    await new Promise<void>((resolve, reject) => void server.once("error", reject).listen(this.facts.socket, resolve));
    this.#deps.link.channel.tell("door", this.facts);
  }

  close(): void {
    this.#server?.close();
    rmSync(this.facts.socket, { force: true });
  }

  /** The request was handed over by another process. */
  isInner({ socket }: { readonly socket: object }): boolean {
    return this.#inner.has(socket);
  }

  /** Reads who the client of such a request is. */
  arrived(request: IncomingMessage): void {
    if (this.isInner(request)) admit(request, this.facts.token);
  }

  /** A connection of which another process has read this much. */
  readonly passed: TakeConnection = (handle, head) => {
    const socket = new Socket({ handle, allowHalfOpen: true } as SocketConstructorOpts);
    socket.on("error", () => undefined).unshift(head);
    // What it begins with was looked at where it came from.
    this.#inner.add(socket);
    this.#connect(socket);
    this.#inner.delete(socket);
  };

  /** A connection that comes from another process is one like any other, but for what `arrived` reads of its requests. */
  #connect(socket: Socket): void {
    socket.on("error", () => undefined);
    try {
      this.#deps.host()?.connect("http", socket);
    } catch {
      socket.destroy(); // HTTP is not loaded any more.
    }
  }
}
