/**
 * Reads request bodies in large pieces. Node reads 64 KiB of a connection at a time and copies the
 * contents into new memory, which takes a fifth of the CPU time of an upload. Here the system reads
 * into reused buffers. The parser still gets every byte, but does not deliver the contents.
 */
import { Socket } from "node:net";
import { IncomingMessage } from "../../../util/node_http.ts";
import { ChunkedFraming, CountedFraming, type Framing, statedLength } from "./framing.ts";
import { readBuffer, releaseReadBuffer, sharedReadBuffer } from "./read_buffers.ts";

/** Smaller bodies are left to Node: starting would cost as much as it saves. */
const MIN_BODY_BYTES = 1024 * 1024;
/**
 * After a read of at least this size another one is likely. After a smaller one the connection
 * waits without a buffer of its own.
 */
const LARGE_BYTES = 32 * 1024;
/**
 * Index of the function to which Node's parser passes contents. Without the function the parser
 * does not copy them.
 */
const ON_BODY = 3;

interface Parser {
  [ON_BODY]?: ((this: Parser, bytes: Buffer) => void) | undefined;
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

/** The reader of a body. */
export interface BodyReader {
  /** Number of bytes that it has received. */
  received(): number;
  /** Receives a piece, which is valid until it is released. Returns whether to continue. */
  take(piece: Buffer): boolean;
}

/**
 * Fields of a socket: the buffer to read into, the function called after each read, and the
 * function that returns the next buffer.
 */
const [kBuffer, kBufferCb, kBufferGen] = ["kBuffer", "kBufferCb", "kBufferGen"].map((name) =>
  Object.getOwnPropertySymbols(new Socket()).find(({ description }) => description === name),
) as (symbol | undefined)[] as [symbol, symbol, symbol];

/**
 * Returns why bodies arrive in Node's own pieces, in a sentence; undefined when they arrive in
 * large pieces.
 */
export function whyBodiesAreInSmallPieces(
  symbols: readonly unknown[] = [kBuffer, kBufferCb, kBufferGen],
): string | undefined {
  if (symbols.every((symbol) => symbol !== undefined)) return undefined;
  return "this version of Node.js reads from connections in another way: uploads take more CPU time";
}

/** Connections that have had a large body. */
const connections = new WeakMap<Socket, Connection>();

/**
 * Reads the rest of a body as soon as possible. Earlier bytes, and bytes after its end, come from
 * the request itself.
 */
export class LargeBody {
  readonly #request: IncomingMessage;
  readonly #reader: BodyReader;
  #connection: Connection | undefined;
  #isEnded = false;

  private constructor(request: IncomingMessage, reader: BodyReader) {
    this.#request = request;
    this.#reader = reader;
    // Node still delivers the bytes that it is parsing now.
    request.socket.pause();
    setImmediate(() => this.#begin());
  }

  /**
   * Starts to read; undefined when the body is small so far, or the connection is not plain HTTP/1.
   */
  static of(request: object, reader: BodyReader): LargeBody | undefined {
    if (!(request instanceof IncomingMessage) || request.complete) return undefined;
    const bytes = statedLength(request) ?? reader.received() + request.readableLength;
    return bytes >= MIN_BODY_BYTES && canBeTaken(request) ? new LargeBody(request, reader) : undefined;
  }

  /** Continues after the reader has paused. */
  resume(): void {
    this.#connection?.resume();
  }

  /** Must be called when the reader stops. */
  end(): void {
    this.#isEnded = true;
    this.#connection?.end(this.#request);
  }

  #begin(): void {
    const { socket } = this.#request;
    if (!this.#isEnded && !this.#request.complete && canBeTaken(this.#request)) {
      let connection = connections.get(socket);
      if (connection === undefined) connections.set(socket, (connection = new Connection(socket)));
      this.#connection = connection;
      connection.begin(this.#request, this.#reader);
    } else if ((socket as Insides)._paused === false) {
      socket.resume();
    }
  }
}

function canBeTaken({ socket, push }: IncomingMessage): boolean {
  const { _handle: handle, parser, _paused: isPaused } = socket as Insides;
  return (
    whyBodiesAreInSmallPieces() === undefined &&
    Object.getPrototypeOf(socket) === Socket.prototype &&
    typeof handle?.useUserBuffer === "function" &&
    typeof parser?.[ON_BODY] === "function" &&
    typeof parser.consume === "function" &&
    isPaused === false &&
    // Code that replaced `push` watches the data.
    push === IncomingMessage.prototype.push
  );
}

/** A connection while a large body arrives on it. At other times Node's parser reads it. */
class Connection {
  readonly #socket: Insides;
  #isTaken = false;
  /** The connection's own buffer for the next read; undefined for the shared one. */
  #own: Buffer | undefined;
  #request: IncomingMessage | undefined;
  #reader: BodyReader | undefined;
  /** Undefined while the parser's position in a chunk is unknown. */
  #framing: Framing | undefined;

  constructor(socket: Socket) {
    this.#socket = socket as Insides;
    socket.once("close", () => this.#releaseOwn());
  }

  begin(request: IncomingMessage, reader: BodyReader): void {
    this.#takeFromParser();
    // The reader gets the data that Node has parsed before it gets more.
    while (request.read() !== null);
    const length = statedLength(request);
    this.#request = request;
    this.#reader = reader;
    this.#framing = length === undefined ? undefined : new CountedFraming(length - reader.received());
    this.resume();
  }

  resume(): void {
    if (this.#request !== undefined && !this.#socket.destroyed && this.#socket._paused === false) this.#socket.resume();
  }

  end(request: IncomingMessage): void {
    if (request !== this.#request) return;
    this.resume();
    this.#leave();
  }

  /**
   * Detaches the parser, which stops reading a connection with another listener and then gets bytes
   * by `data` events.
   */
  #takeFromParser(): void {
    const listener = () => {};
    this.#socket.on("data", listener).removeListener("data", listener);
    if (this.#isTaken) return;
    this.#isTaken = true;
    Object.assign(this.#socket, { [kBufferCb]: this.#received, [kBufferGen]: this.#next });
    this.#readIntoNext();
  }

  /**
   * Sets the buffer for the next read. The system uses no buffer of the connection between reads,
   * nor while Node reports one.
   */
  #readIntoNext(): void {
    const buffer = this.#next();
    Object.assign(this.#socket, { [kBuffer]: buffer });
    this.#socket._handle?.useUserBuffer?.(buffer);
  }

  /**
   * Releases the connection's own buffer. The handle knows only the address of its buffer: it first
   * gets another one, or it would read into memory that is used elsewhere. That costs a few bytes
   * until the handle is closed.
   */
  #releaseOwn(): void {
    const own = this.#own;
    if (own === undefined) return;
    this.#own = undefined;
    this.#readIntoNext();
    releaseReadBuffer(own);
  }

  #leave(): void {
    this.#request = undefined;
    this.#reader = undefined;
    this.#framing = undefined;
    this.#releaseOwn();
    const { parser, _handle: handle } = this.#socket;
    if (handle === null || parser == null) return;
    parser.consume?.(handle);
    parser._consumed = true;
  }

  readonly #next = (): Buffer => this.#own ?? sharedReadBuffer();

  readonly #received = (length: number, buffer: Buffer): boolean => {
    const read = buffer.subarray(0, length);
    const own = this.#own;
    this.#own = undefined;
    if (this.#framing !== undefined) return this.#give(read, own, this.#framing);
    if (own !== undefined) releaseReadBuffer(own);
    if (this.#request === undefined) return this.#socket.push(Buffer.from(read));
    this.#seek(read, this.#request);
    return true;
  };

  /** Passes the contents of a read to the reader, and the bytes after the body to Node. */
  #give(read: Buffer, own: Buffer | undefined, framing: Framing): boolean {
    const reader = this.#reader as BodyReader;
    const used = framing.scan(read);
    const rest = used < read.length ? Buffer.from(read.subarray(used)) : undefined;
    this.#parse(read.subarray(0, used), undefined);
    if (!framing.isOver && this.#request?.complete === true) {
      // Bytes after the body would be taken for a part of it.
      if (own !== undefined) releaseReadBuffer(own);
      this.#socket.destroy(new Error("The body ended at another byte than its framing says"));
      return false;
    }
    const found = framing.contents(read);
    const contents = own === undefined ? copied(found) : found;
    const isOver = framing.isOver || this.#socket.parser == null;
    if (!isOver && read.length >= LARGE_BYTES) this.#own = readBuffer();
    if (contents.length === 0) releaseReadBuffer(contents);
    const isGoingOn = contents.length === 0 || reader.take(contents);
    if (rest !== undefined) this.#parse(rest, this.#socket.parser?.[ON_BODY]);
    if (isOver) this.#leave();
    return isGoingOn || isOver;
  }

  /** Passes a read to Node, its first byte separately, and finds out where in a chunk it ends. */
  #seek(read: Buffer, request: IncomingMessage): void {
    const first = this.#lengthsIn(read.subarray(0, 1));
    const rest = this.#lengthsIn(read.subarray(1));
    if (request.complete || this.#socket.parser == null) {
      this.#leave();
      return;
    }
    this.#framing = ChunkedFraming.behind(read, first, rest);
    if (this.#framing === undefined) return;
    while (request.read() !== null);
    this.#own = readBuffer();
  }

  /** Passes bytes to Node, and returns the lengths of the contents that it finds in them. */
  #lengthsIn(bytes: Buffer): readonly number[] {
    const onBody = this.#socket.parser?.[ON_BODY];
    const lengths: number[] = [];
    this.#parse(bytes, function (found) {
      lengths.push(found.length);
      onBody?.call(this, found);
    });
    return lengths;
  }

  /**
   * Parses bytes with another function for contents. Other connections use the parser later, so its
   * own function is restored.
   */
  #parse(bytes: Buffer, onBody: Parser[typeof ON_BODY]): void {
    const { parser } = this.#socket;
    if (parser == null || bytes.length === 0) return;
    const own = parser[ON_BODY];
    parser[ON_BODY] = onBody;
    try {
      this.#socket.emit("data", bytes);
    } finally {
      parser[ON_BODY] = own;
    }
  }
}

/** Copies bytes into a reusable buffer, if one is free. */
function copied(bytes: Buffer): Buffer {
  const buffer = bytes.length < LARGE_BYTES ? undefined : readBuffer();
  if (buffer === undefined) return Buffer.from(bytes);
  bytes.copy(buffer);
  return buffer.subarray(0, bytes.length);
}
