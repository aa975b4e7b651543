/**
 * Reads large request bodies in large pieces. Node reads 64 KiB of a connection at a time. Here the
 * system reads 256 KiB at a time into reused buffers, which saves a quarter of the CPU time of
 * receiving a body. Node's parser gets every byte, finds the contents and passes copies of them to
 * the request, as it always does.
 */
import { randomBytes } from "node:crypto";
import { Socket } from "node:net";
import { createServer, IncomingMessage } from "../../../util/node_http.ts";
import { keepsOnread, onreadFields } from "../../../util/patches/node/onread.ts";
import { BufferPool } from "./buffer_pool.ts";

/** Smaller bodies are left to Node: starting would cost as much as it saves. */
const MIN_BODY_BYTES = 1024 * 1024;
/**
 * After a read of at least this size another one is likely. After a smaller one the connection
 * waits without a buffer of its own.
 */
const LARGE_BYTES = 32 * 1024;
const BUFFER_BYTES = 256 * 1024;
/** Maximum number of buffers in use, over all connections. */
const MAX_IN_USE = 64;
/** Maximum number of free buffers that are kept. */
const MAX_FREE = 16;

const pool = new BufferPool(BUFFER_BYTES, MAX_FREE, MAX_IN_USE);

/** Returns the number of buffers in use, over all connections. */
export const readBuffersInUse = (): number => pool.leased;

let shared: Buffer | undefined;

/** Returns the buffer that connections share. Its contents must be copied at once. */
const sharedBuffer = (): Buffer => (shared ??= Buffer.allocUnsafeSlow(BUFFER_BYTES));

/** Each buffer begins with these bytes until the system has read into it. */
const unread = randomBytes(8);

interface Parser {
  _consumed?: boolean;
  consume?(handle: object): void;
}

interface Handle {
  useUserBuffer?(buffer: Buffer): void;
}

type Insides = Socket & {
  readonly _handle: Handle | null;
  readonly _paused?: boolean;
  readonly parser?: Parser | null;
};

const [kBuffer, kBufferCb, kBufferGen] = onreadFields;

const NOTICE = "this version of Node.js reads from connections in another way: uploads take more CPU time";

/** The parts of Node that the host relies on. */
export interface NodeParts {
  readonly Socket: typeof Socket;
  createServer(): { emit(event: string, socket: Socket): unknown; on: ReturnType<typeof createServer>["on"] };
}

/**
 * Returns why bodies arrive in Node's own pieces, in a sentence; undefined when they arrive in
 * large pieces.
 */
export function whyBodiesAreInSmallPieces(node?: NodeParts): string | undefined {
  if (node !== undefined) return fits(node) ? undefined : NOTICE;
  isSupported ??= fits({ Socket, createServer });
  return isSupported ? undefined : NOTICE;
}

/** Undefined until Node was probed. */
let isSupported: boolean | undefined;

const fits = (node: NodeParts): boolean => keepsOnread(node.Socket) && copiesContents(node);

/** Whether a parser takes bytes by `data` events, and the contents do not share their memory. */
function copiesContents({ Socket, createServer }: NodeParts): boolean {
  const server = createServer();
  const socket = new Socket();
  let request: IncomingMessage | undefined;
  server.on("request", (received) => (request = received));
  server.emit("connection", socket);
  for (const text of ["POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nab", "cd\r\n0\r\n\r\n"]) {
    const bytes = Buffer.from(text);
    socket.emit("data", bytes);
    bytes.fill(0);
  }
  let contents = "";
  for (let piece = request?.read(); piece != null; piece = request?.read()) contents += piece;
  socket.destroy();
  return request?.complete === true && contents === "abcd";
}

/** Connections that have had a large body. */
const connections = new WeakMap<Socket, Connection>();

/** Makes the connection of a request read the rest of its body in large pieces. */
export class LargeBody {
  readonly #request: IncomingMessage;
  #connection: Connection | undefined;
  #isEnded = false;

  private constructor(request: IncomingMessage) {
    this.#request = request;
    // Node still delivers the bytes that it is parsing now.
    request.socket.pause();
    setImmediate(() => this.#begin());
  }

  /**
   * Begins after `received` bytes of the body; undefined when the body is small so far, or the
   * connection is not plain HTTP/1.
   */
  static of(request: object, received: number): LargeBody | undefined {
    if (!(request instanceof IncomingMessage) || request.complete) return undefined;
    const bytes = statedLength(request) ?? received + request.readableLength;
    return bytes >= MIN_BODY_BYTES && canBeTaken(request) ? new LargeBody(request) : undefined;
  }

  /** Must be called when the reader stops. */
  end(): void {
    this.#isEnded = true;
    this.#connection?.end(this.#request);
  }

  #begin(): void {
    const socket = this.#request.socket as Insides;
    if (!this.#isEnded && !this.#request.complete && canBeTaken(this.#request)) {
      let connection = connections.get(socket);
      if (connection === undefined) connections.set(socket, (connection = new Connection(socket)));
      this.#connection = connection;
      connection.begin(this.#request);
    }
    if (!socket.destroyed && socket._paused === false) socket.resume();
  }
}

/** Returns the length of the whole body; undefined for a chunked body. */
function statedLength({ headers }: IncomingMessage): number | undefined {
  const { "content-length": length, "transfer-encoding": encoding } = headers;
  return length === undefined || encoding !== undefined ? undefined : Number(length);
}

function canBeTaken({ socket }: IncomingMessage): boolean {
  const { _handle: handle, parser, _paused: isPaused } = socket as Insides;
  return (
    whyBodiesAreInSmallPieces() === undefined &&
    Object.getPrototypeOf(socket) === Socket.prototype &&
    typeof handle?.useUserBuffer === "function" &&
    typeof parser?.consume === "function" &&
    typeof parser._consumed === "boolean" &&
    isPaused === false
  );
}

/** A connection while a large body arrives on it. At other times Node's parser reads it. */
class Connection {
  readonly #socket: Insides;
  #isPrepared = false;
  #isParsing = false;
  /** The connection's own buffer for the next read; undefined for the shared one. */
  #own: Buffer | undefined;
  #request: IncomingMessage | undefined;

  constructor(socket: Insides) {
    this.#socket = socket;
    socket.once("close", () => this.#stopUsingOwn());
  }

  begin(request: IncomingMessage): void {
    if (!this.#detachParser()) return;
    this.#request = request;
    if (this.#isPrepared) return;
    this.#isPrepared = true;
    Object.assign(this.#socket, { [kBufferCb]: this.#received, [kBufferGen]: this.#next });
    this.#readIntoNext();
  }

  end(request: IncomingMessage): void {
    if (request !== this.#request) return;
    this.#request = undefined;
    if (!this.#isParsing) this.#leave();
  }

  /**
   * Detaches the parser, which stops reading a connection with another listener and then gets bytes
   * by `data` events.
   */
  #detachParser(): boolean {
    const listener = () => {};
    this.#socket.on("data", listener).removeListener("data", listener);
    return this.#socket.parser?._consumed === false;
  }

  /** Sets the buffer for the next read. The system uses no buffer between reads. */
  #readIntoNext(): void {
    const buffer = this.#next();
    Object.assign(this.#socket, { [kBuffer]: buffer });
    this.#socket._handle?.useUserBuffer?.(buffer);
  }

  /**
   * Releases the connection's own buffer between reads. The handle knows only the address of its
   * buffer: it first gets another one, or it would read into memory that is used elsewhere. That
   * costs a few bytes until the handle is closed.
   */
  #stopUsingOwn(): void {
    const own = this.#own;
    if (own === undefined) return;
    this.#own = undefined;
    this.#readIntoNext();
    pool.release(own, this);
  }

  /** Makes Node's parser read the connection again. */
  #leave(): void {
    this.#request = undefined;
    this.#stopUsingOwn();
    const { parser, _handle: handle } = this.#socket;
    if (handle === null || parser == null) return;
    parser.consume?.(handle);
    parser._consumed = true;
  }

  readonly #next = (): Buffer => {
    const buffer = this.#own ?? sharedBuffer();
    unread.copy(buffer);
    return buffer;
  };

  readonly #received = (length: number, buffer: Buffer): boolean => {
    if (length >= unread.length && buffer.subarray(0, unread.length).equals(unread)) return this.#giveUp();
    const bytes = buffer.subarray(0, length);
    if (this.#request === undefined) return this.#socket.push(buffer === this.#own ? bytes : Buffer.from(bytes));
    this.#parse(bytes);
    // Code that has taken the connection from the parser may still use bytes of the read.
    if (buffer === shared && this.#socket.parser == null) shared = undefined;
    if (this.#request === undefined || this.#request.complete || this.#socket.parser == null) {
      this.#releaseOwn();
      this.#leave();
    } else if (length < LARGE_BYTES) this.#releaseOwn();
    else this.#own ??= pool.lease(this);
    return true;
  };

  #parse(read: Buffer): void {
    this.#isParsing = true;
    try {
      this.#socket.emit("data", read);
    } finally {
      this.#isParsing = false;
    }
  }

  /**
   * Releases the connection's own buffer after a read: Node then asks for the next one. Code that
   * has taken the connection from the parser may still use bytes of the read.
   */
  #releaseOwn(): void {
    const own = this.#own;
    if (own === undefined) return;
    this.#own = undefined;
    if (this.#socket.parser == null) pool.keep(own, this);
    else pool.release(own, this);
  }

  /** Ends the connection and leaves later bodies to Node: the system has read into other memory. */
  #giveUp(): boolean {
    isSupported = false;
    this.#socket.destroy(new Error("Node.js did not read into the buffer that it was given"));
    return false;
  }
}
