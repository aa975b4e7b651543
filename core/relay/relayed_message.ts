/** Node's incoming messages whose head and body come from frames. */
import type { Socket } from "node:net";
import { IncomingMessage } from "../util/node_http.ts";
import { CREDIT_STEP_BYTES } from "./request_frames.ts";

/** Fields of which Node.js keeps the first line only (documentation of `message.headers`). */
const singular: ReadonlySet<string> = new Set([
  ...["age", "authorization", "content-length", "content-type", "etag", "expires", "from", "host"],
  ...["if-modified-since", "if-unmodified-since", "last-modified", "location", "max-forwards"],
  ...["proxy-authorization", "referer", "retry-after", "server", "user-agent"],
]);

/** Returns the table of header fields that Node.js makes of their lines. */
export function headersOf(rawHeaders: readonly string[]): NodeJS.Dict<string | string[]> {
  const table: NodeJS.Dict<string | string[]> = {};
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase();
    const value = rawHeaders[at + 1] as string;
    const before = Object.hasOwn(table, name) ? table[name] : undefined;
    if (name === "set-cookie") table[name] = [...((before as string[] | undefined) ?? []), value];
    else if (before === undefined) setOwn(table, name, value);
    else if (!singular.has(name)) setOwn(table, name, `${before}${name === "cookie" ? "; " : ", "}${value}`);
  }
  return table;
}

function distinctHeadersOf(rawHeaders: readonly string[]): NodeJS.Dict<string[]> {
  const table: NodeJS.Dict<string[]> = Object.create(null);
  for (let at = 0; at < rawHeaders.length; at += 2)
    (table[(rawHeaders[at] as string).toLowerCase()] ??= []).push(rawHeaders[at + 1] as string);
  return table;
}

/** Assigning `__proto__` would replace the prototype of the table. */
function setOwn(table: NodeJS.Dict<string | string[]>, name: string, value: string): void {
  if (name === "__proto__") Object.defineProperty(table, name, { value, enumerable: true, configurable: true });
  else table[name] = value;
}

/** Returns the credit that the reader's other end gets back: called with a number of bytes. */
export type Credit = (bytes: number) => void;

/**
 * A message whose body is pushed as it arrives. The other end gets credit for further bytes as the
 * reader takes them.
 */
export class RelayedMessage extends IncomingMessage {
  readonly #credit: Credit;
  #owed = 0;
  #headers: NodeJS.Dict<string | string[]> | undefined;
  #distinct: NodeJS.Dict<string[]> | undefined;
  /** Whether anybody has begun to read. */
  isRead = false;

  static {
    // Node's own accessors use fields that only its parser sets. TypeScript does not allow
    // accessors for members that are declared as fields.
    Object.defineProperties(RelayedMessage.prototype, {
      headers: {
        get(this: RelayedMessage) {
          return (this.#headers ??= headersOf(this.rawHeaders));
        },
        set(this: RelayedMessage, headers: NodeJS.Dict<string | string[]>) {
          this.#headers = headers;
        },
        configurable: true,
      },
      headersDistinct: {
        get(this: RelayedMessage) {
          return (this.#distinct ??= distinctHeadersOf(this.rawHeaders));
        },
        set(this: RelayedMessage, headers: NodeJS.Dict<string[]>) {
          this.#distinct = headers;
        },
        configurable: true,
      },
    });
  }

  constructor(socket: Socket, rawHeaders: string[], credit: Credit) {
    super(socket);
    this.httpVersion = "1.1";
    this.httpVersionMajor = 1;
    this.httpVersionMinor = 1;
    this.rawHeaders = rawHeaders;
    this.#credit = credit;
  }

  /** Adds a piece of the body. */
  give(piece: Buffer): void {
    this.#owed += piece.length;
    if (this.push(piece)) this.#pay();
  }

  /** The body is complete. */
  finish(rawTrailers: string[]): void {
    if (rawTrailers.length > 0) {
      this.rawTrailers = rawTrailers;
      this.trailers = headersOf(rawTrailers) as NodeJS.Dict<string>;
      this.trailersDistinct = distinctHeadersOf(rawTrailers);
    }
    this.complete = true;
    this.push(null);
  }

  override _read(): void {
    this.isRead = true;
    if (this.#owed > 0) this.#pay();
  }

  #pay(): void {
    if (this.#owed < CREDIT_STEP_BYTES) return;
    this.#credit(this.#owed);
    this.#owed = 0;
  }
}
