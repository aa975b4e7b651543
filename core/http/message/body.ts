import type { IncomingMessage } from "node:http";
import { ModhostError } from "../../util/errors.ts";
import type { NodeRequest } from "../../util/node_messages.ts";
import type { Flow, ProgressWatch, Watched } from "../connection/progress.ts";
import { LargeBody } from "../patches/node/large_body.ts";
import { ReadBudget } from "./read_budget.ts";

/**
 * Limits in bytes and milliseconds for reading an unread body after an early response, so that the
 * client reads the response.
 */
const MAX_LINGER_BYTES = 1024 * 1024;
const MAX_LINGER_TIME = 2000;

const readTwice = () => new TypeError("The request body has been read already: it can be read once");

/** Bytes that may wait for a busy reader before reading from the network pauses. */
const MAX_QUEUED_BYTES = 256 * 1024;

/** Smaller pieces are left to the garbage collector. */
const MIN_FREED_BYTES = 16 * 1024;

/**
 * A request body as it arrives. Bytes are counted, the client must make progress, and each kind of
 * failure has its own error code. The body can be read once.
 */
export class IncomingBody {
  readonly #request: NodeRequest;
  readonly #watch: ProgressWatch;
  readonly #invite: () => void;
  readonly #pause: number;
  #received = 0;
  #taken = false;
  #lingering = false;
  #large: LargeBody | undefined;

  /**
   * `invite` is called before the first read, because the client may be waiting for `100 Continue`.
   * `pause`: seconds for which the client may send nothing to a handler that reads piece by piece,
   * when that is longer than the general timeout.
   */
  constructor(request: NodeRequest, watch: ProgressWatch, invite: () => void, pause = 0) {
    this.#request = request;
    this.#invite = invite;
    this.#pause = pause;
    this.#watch = watch;
  }

  /** Called whenever bytes have arrived. */
  moved: (() => void) | undefined;

  #count(bytes: number): void {
    this.#received += bytes;
    this.moved?.();
  }

  /** Number of bytes read so far. */
  get received(): number {
    return this.#received;
  }

  /** Whether somebody has begun to read. */
  get taken(): boolean {
    return this.#taken;
  }

  /**
   * Lets middleware read the request itself. Bytes are counted, and must arrive in time while the
   * reader waits. `failed` is called once with BODY_TOO_LARGE (over `limit` bytes) or BODY_TIMEOUT.
   * The returned function ends this.
   */
  expose(limit: number, failed: (error: ModhostError) => void): () => void {
    const request = this.#request as IncomingMessage;
    const { _read: read, push } = request;
    let hasFailed = false;
    let isWanted = false;
    let watched: Watched | undefined;
    const stop = () => this.#watch.delete(watched);
    const fail = (error: ModhostError) => {
      stop();
      if (hasFailed || this.#lingering) return;
      hasFailed = true;
      failed(error);
    };
    const flow = this.#flow(
      () => fail(new ModhostError("BODY_TIMEOUT")),
      () => isWanted,
    );
    this.#received ||= request.readableLength;
    // Node calls `_read` when a reader wants more, and `push` with the data that has arrived.
    request._read = (size) => {
      isWanted = true;
      if (!this.#taken) {
        this.#taken = true;
        this.#invite();
        if (!request.readableEnded) watched = this.#watch.add(flow);
      }
      read.call(request, size);
    };
    request.push = (chunk: Buffer | null, encoding) => {
      isWanted = false;
      if (chunk === null) stop();
      else this.#count(chunk.length);
      if (this.#received > limit) fail(new ModhostError("BODY_TOO_LARGE", { limit }));
      return push.call(request, chunk, encoding);
    };
    request.once("close", stop);
    return () => {
      stop();
      // Deleting the fields would make each later access to the request slower.
      Object.assign(request, { _read: read, push });
    };
  }

  /** Reads the whole body. Rejects with BODY_TOO_LARGE as soon as it exceeds `limit` bytes. */
  async read(limit: number): Promise<Buffer> {
    if (this.#taken) throw readTwice();
    this.#taken = true;
    this.#invite();
    const request = this.#request;
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      const settle = (error: ModhostError | undefined) => {
        this.#watch.delete(watched);
        request.removeListener("data", onData).removeListener("end", onEnd).removeListener("close", onClose);
        if (error === undefined) resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
        else reject(error);
      };
      const flow = this.#flow(() => settle(new ModhostError("BODY_TIMEOUT")));
      const onData = (chunk: Buffer) => {
        this.#count(chunk.length);
        chunks.push(chunk);
        if (this.#received <= limit) return;
        request.pause();
        settle(new ModhostError("BODY_TOO_LARGE", { limit }));
      };
      const onEnd = () => settle(undefined);
      const onClose = () => settle(new ModhostError("BODY_ABORTED"));
      const watched = this.#watch.add(flow);
      request.on("data", onData).on("end", onEnd).on("close", onClose);
      request.on("error", onClose);
    });
  }

  /** Reads the body piece by piece. Reading from the network pauses while the reader is busy. */
  [Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    return this.#pieces(false);
  }

  /**
   * Reads the body piece by piece. Each piece is valid only until the next one is requested: its
   * memory is then reused or freed.
   */
  passing(): AsyncGenerator<Buffer, void, undefined> {
    return this.#pieces(true);
  }

  async *#pieces(isPassing: boolean): AsyncGenerator<Buffer, void, undefined> {
    if (this.#taken) throw readTwice();
    this.#taken = true;
    this.#invite();
    const request = this.#request;
    const queue: Buffer[] = [];
    let queued = 0;
    let end: "complete" | "BODY_ABORTED" | "BODY_TIMEOUT" | undefined;
    let wake: (() => void) | undefined;
    let isLeft = false;
    const goOn = () => {
      if (isLeft || budget.isOver || queued >= MAX_QUEUED_BYTES) return;
      if (request.isPaused()) request.resume();
    };
    const budget = new ReadBudget(goOn);
    const finish = (how: NonNullable<typeof end>) => () => {
      end ??= how;
      wake?.();
    };
    /** Queues a chunk. Returns true when reading is to pause. */
    const take = (chunk: Buffer): boolean => {
      this.#count(chunk.length);
      queue.push(chunk);
      queued += chunk.length;
      wake?.();
      return budget.took(chunk.length) || queued >= MAX_QUEUED_BYTES;
    };
    const onData = (chunk: Buffer) => {
      // Bytes that are read after the response have their own limit, and then no reader would
      // resume the request.
      if (take(chunk) && !this.#lingering) request.pause();
      if (isPassing) this.#large ??= LargeBody.of(request, this.#received);
    };
    const onEnd = finish("complete");
    const onClose = finish("BODY_ABORTED");
    const patience = () => this.#pause * 1000;
    const flow = { ...this.#flow(finish("BODY_TIMEOUT"), () => wake !== undefined), patience };
    const watched = this.#watch.add(flow);
    request.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose);
    if (isPassing) this.#large = LargeBody.of(request, this.#received);
    try {
      for (;;) {
        const chunk = queue.shift();
        if (chunk !== undefined) {
          queued -= chunk.length;
          goOn();
          yield chunk;
          if (isPassing) release(chunk);
        } else if (end === "complete") {
          return;
        } else if (end !== undefined) {
          throw new ModhostError(end);
        } else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
          wake = undefined;
        }
      }
    } finally {
      isLeft = true;
      this.#large?.end();
      this.#watch.delete(watched);
      request.removeListener("data", onData).removeListener("end", onEnd).removeListener("close", onClose);
      if (!this.#lingering) request.pause();
    }
  }

  /**
   * Reads and drops what a client still sends after its response, up to a number of bytes:
   * `briefly` for a limited time, `patiently` as long as the client makes progress. Resolves when
   * the body is complete, a limit is reached or the client has left.
   */
  linger(how: "patiently" | "briefly"): Promise<void> {
    const request = this.#request;
    this.#lingering = true;
    this.#large?.end();
    return new Promise((resolve) => {
      let left = MAX_LINGER_BYTES;
      const finish = () => {
        clearTimeout(timer);
        this.#watch.delete(watched);
        request.removeListener("data", onData);
        resolve();
      };
      const timer = how === "briefly" ? setTimeout(finish, MAX_LINGER_TIME) : undefined;
      const flow = this.#flow(finish, () => true);
      const watched = this.#watch.add(flow);
      const onData = (chunk: Buffer) => {
        this.#count(chunk.length);
        left -= chunk.length;
        if (left < 0) finish();
      };
      request.on("data", onData).once("end", finish).once("close", finish).once("error", finish);
      request.resume();
    });
  }

  #flow(expired: () => void, waiting: () => boolean = () => !this.#request.isPaused()): Flow {
    return { moved: () => this.#received, waiting, expired };
  }
}

/**
 * Frees the memory of a piece. Large pieces cost the garbage collector as much work as
 * the rest of an upload.
 */
function release(piece: Buffer): void {
  const { buffer, length } = piece;
  if (length >= MIN_FREED_BYTES && length === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0);
}
