import { isIPv6, Socket } from "node:net";

type Done = (error?: Error | null) => void;

/** The properties of one end of a connection. */
export interface SocketFacts {
  readonly local: SocketAddress;
  readonly remote: SocketAddress;
  /** Whether the end counts as encrypted. */
  readonly encrypted: boolean;
}

export interface SocketAddress {
  readonly address: string;
  readonly port: number;
}

/**
 * Creates a connection within the process: bytes that are written to one end are read from the
 * other, as fast as that is read.
 */
export function socketPair(first: SocketFacts, second: SocketFacts): [Socket, Socket] {
  const pair = [new MemorySocket(first), new MemorySocket(second)] as const;
  pair[0].join(pair[1]);
  pair[1].join(pair[0]);
  return [...pair];
}

class MemorySocket extends Socket {
  #peer: MemorySocket = this;
  /** The callback of the peer's write, which waits until this end is read. */
  #pendingWrite: Done | undefined;

  constructor({ local, remote, encrypted }: SocketFacts) {
    super();
    const facts = {
      localAddress: local.address,
      localPort: local.port,
      localFamily: family(local.address),
      remoteAddress: remote.address,
      remotePort: remote.port,
      remoteFamily: family(remote.address),
      encrypted,
    };
    // Node's own properties are accessors that query the system.
    for (const [name, value] of Object.entries(facts)) Object.defineProperty(this, name, { value });
  }

  join(peer: MemorySocket): void {
    this.#peer = peer;
  }

  override _read(): void {
    this.#letGo();
  }

  override _write(chunk: Uint8Array | string, encoding: BufferEncoding, done: Done): void {
    this.#give(bytesOf(chunk, encoding), done);
  }

  override _writev(chunks: { chunk: Uint8Array | string; encoding: BufferEncoding }[], done: Done): void {
    this.#give(Buffer.concat(chunks.map(({ chunk, encoding }) => bytesOf(chunk, encoding))), done);
  }

  override _final(done: Done): void {
    setImmediate(() => {
      if (!this.#peer.destroyed) this.#peer.push(null);
      done();
    });
  }

  override _destroy(error: Error | null, done: Done): void {
    const isOver = this.writableFinished && this.readableEnded;
    super._destroy(error, done);
    this.#letGo(broken("write", "EPIPE"));
    setImmediate(() => {
      if (!isOver) this.#peer.#reset();
    });
  }

  /** Delivers bytes later, as a network does: neither end runs inside the other's calls. */
  #give(bytes: Buffer, done: Done): void {
    setImmediate(() => {
      const peer = this.#peer;
      if (peer.destroyed) done(broken("write", "EPIPE"));
      else if (peer.push(bytes)) done();
      else peer.#pendingWrite = done;
    });
  }

  #letGo(error?: Error): void {
    const pendingWrite = this.#pendingWrite;
    this.#pendingWrite = undefined;
    pendingWrite?.(error);
  }

  /** The peer was destroyed too early: bytes that have arrived can still be read. */
  #reset(): void {
    if (this.destroyed) return;
    if (this.readableLength === 0) {
      this.destroy(broken("read", "ECONNRESET"));
      return;
    }
    this.once("end", () => this.destroy(broken("read", "ECONNRESET")));
    this.push(null);
  }
}

function family(address: string): string {
  return isIPv6(address) ? "IPv6" : "IPv4";
}

function bytesOf(chunk: Uint8Array | string, encoding: BufferEncoding): Buffer {
  return typeof chunk === "string" ? Buffer.from(chunk, encoding) : Buffer.from(chunk);
}

function broken(syscall: string, code: string): Error {
  return Object.assign(new Error(`${syscall} ${code}`), { code, syscall });
}
