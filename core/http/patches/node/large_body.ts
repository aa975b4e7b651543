/**
 * Bodies of requests in large pieces. Node reads 64 KiB of a connection at a time and copies what it finds into fresh memory, which costs an
 * upload a fifth of its CPU time. Here the system reads into buffers that serve again; the parser still gets every byte, but is
 * not asked for the contents.
 */
import { Socket } from "node:net";
import { IncomingMessage } from "../../../util/node_http.ts";
import { ChunkedFraming, CountedFraming, type Framing, statedLength } from "./framing.ts";
import { readBuffer, releaseReadBuffer, sharedReadBuffer } from "./read_buffers.ts";

/** Bodies of less are left to Node: what it takes to begin is no less than what it saves. */
const MIN_BODY_BYTES = 1024 * 1024;
/** A read of so many bytes is likely to be followed by another; behind a smaller one a connection waits without a buffer of its own. */
const LARGE_BYTES = 32 * 1024;
/** Place of the function that Node's parser tells of contents; where there is none it does not copy them. */
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

/** What a reader of a body asks for, and is told. */
export interface BodyReader {
  /** Bytes that it has had. */
  received(): number;
  /** Takes a piece, which is valid until it is released; says whether to go on. */
  take(piece: Buffer): boolean;
}

/** Where a socket keeps the buffer to read into, who is told of each read, and who gives the next buffer. */
const [kBuffer, kBufferCb, kBufferGen] = ["kBuffer", "kBufferCb", "kBufferGen"].map((name) =>
  Object.getOwnPropertySymbols(new Socket()).find(({ description }) => description === name),
) as (symbol | undefined)[] as [symbol, symbol, symbol];

/** Why bodies come in the pieces that Node makes, in a sentence; undefined when they do not. */
export function whyBodiesAreInSmallPieces(
  symbols: readonly unknown[] = [kBuffer, kBufferCb, kBufferGen],
): string | undefined {
  if (symbols.every((symbol) => symbol !== undefined)) return undefined;
  return "this version of Node.js reads from connections in another way: uploads take more CPU time";
}

/** Those that have had a large body. */
const connections = new WeakMap<Socket, Connection>();

/** Reads what is left of a body, as soon as that can begin; what comes before, and after its end, comes from the request itself. */
export class LargeBody {
  readonly #request: IncomingMessage;
  readonly #reader: BodyReader;
  #connection: Connection | undefined;
  #isEnded = false;

  private constructor(request: IncomingMessage, reader: BodyReader) {
    this.#request = request;
    this.#reader = reader;
    // What Node is parsing at this moment is still its own.
    request.socket.pause();
    setImmediate(() => this.#begin());
  }

  /** Undefined where the body is small so far, or the connection is no plain one of HTTP/1. */
  static of(request: object, reader: BodyReader): LargeBody | undefined {
    if (!(request instanceof IncomingMessage) || request.complete) return undefined;
    const bytes = statedLength(request) ?? reader.received() + request.readableLength;
    return bytes >= MIN_BODY_BYTES && canBeTaken(request) ? new LargeBody(request, reader) : undefined;
  }

  /** Goes on after a piece for which the reader said no. */
  resume(): void {
    this.#connection?.resume();
  }

  /** The reader has left. */
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
    // Otherwise somebody watches what comes.
    push === IncomingMessage.prototype.push
  );
}

/** A connection while a large body comes on it. Otherwise it is Node's parser that reads. */
class Connection {
  readonly #socket: Insides;
  #isTaken = false;
  /** A buffer of its own that is read into next; undefined: the one for all. */
  #own: Buffer | undefined;
  #request: IncomingMessage | undefined;
  #reader: BodyReader | undefined;
  /** Undefined while it is not known where in a chunk the parser is. */
  #framing: Framing | undefined;

  constructor(socket: Socket) {
    this.#socket = socket as Insides;
    socket.once("close", () => this.#releaseOwn());
  }

  begin(request: IncomingMessage, reader: BodyReader): void {
    this.#takeFromParser();
    // The reader hears of what Node has parsed before it hears of more.
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

  /** The parser lets go of a connection that somebody else listens to, and takes what comes as `data`. */
  #takeFromParser(): void {
    const listener = () => {};
    this.#socket.on("data", listener).removeListener("data", listener);
    if (this.#isTaken) return;
    this.#isTaken = true;
    Object.assign(this.#socket, { [kBufferCb]: this.#received, [kBufferGen]: this.#next });
    this.#readIntoNext();
  }

  /** The system has no buffer of the connection between its reads, nor while Node tells of one. */
  #readIntoNext(): void {
    const buffer = this.#next();
    Object.assign(this.#socket, { [kBuffer]: buffer });
    this.#socket._handle?.useUserBuffer?.(buffer);
  }

  /**
   * The handle knows its buffer by the address alone: it gets another one first, or would read into what serves somebody
   * else. That costs it a few bytes until it is closed.
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

  /** Gives the contents of a read to the reader, and what is behind the body to Node. */
  #give(read: Buffer, own: Buffer | undefined, framing: Framing): boolean {
    const reader = this.#reader as BodyReader;
    const used = framing.scan(read);
    const rest = used < read.length ? Buffer.from(read.subarray(used)) : undefined;
    this.#parse(read.subarray(0, used), undefined);
    if (!framing.isOver && this.#request?.complete === true) {
      // What is behind the body would be taken for a part of it.
      if (own !== undefined) releaseReadBuffer(own);
      this.#socket.destroy(new Error("The body ended where its framing does not"));
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

  /** Lets Node have a read, its first byte alone, and looks where in a chunk it ends. */
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

  /** Lets Node have bytes, and gives the lengths of the contents that it finds in them. */
  #lengthsIn(bytes: Buffer): readonly number[] {
    const onBody = this.#socket.parser?.[ON_BODY];
    const lengths: number[] = [];
    this.#parse(bytes, function (found) {
      lengths.push(found.length);
      onBody?.call(this, found);
    });
    return lengths;
  }

  /** Parsers serve many connections one after the other: each is as it was when it has parsed. */
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

/** In memory that serves again, where there is some. */
function copied(bytes: Buffer): Buffer {
  const buffer = bytes.length < LARGE_BYTES ? undefined : readBuffer();
  if (buffer === undefined) return Buffer.from(bytes);
  bytes.copy(buffer);
  return buffer.subarray(0, bytes.length);
}
