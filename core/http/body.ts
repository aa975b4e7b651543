import type { IncomingMessage } from "node:http";
import { ModhostError } from "../util/errors.ts";
import { BodyTurns } from "./body_turns.ts";
import type { NodeRequest } from "./node_messages.ts";
import { LargeBody } from "./patches/node/large_body.ts";
import { keepReadBuffer, releaseReadBuffer } from "./patches/node/read_buffers.ts";
import type { Flow, ProgressWatch, Watched } from "./progress.ts";

/** Bytes and milliseconds for which an unread body is taken in after an early answer, so that the client reads it. */
const MAX_LINGER_BYTES = 1024 * 1024;
const MAX_LINGER_TIME = 2000;

const readTwice = () => new TypeError("The request body has been read already: it can be read once");

/** Bytes that wait for a busy reader before the network is held back. */
const MAX_QUEUED_BYTES = 256 * 1024;

/** Pieces of less are left to the garbage collector. */
const MIN_FREED_BYTES = 16 * 1024;

/** A request body as it arrives: counted, watched for progress, with its errors told apart. One reader. */
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
   * `invite` is called before the first read: the client may be waiting to be asked for the body. `pause` is for how many
   * seconds it may send nothing to one who reads piece by piece, where that is longer than for all.
   */
  constructor(request: NodeRequest, watch: ProgressWatch, invite: () => void, pause = 0) {
    this.#request = request;
    this.#invite = invite;
    this.#pause = pause;
    this.#watch = watch;
  }

  /** Bytes that were read. */
  get received(): number {
    return this.#received;
  }

  /** True when somebody has begun to read. */
  get taken(): boolean {
    return this.#taken;
  }

  /**
   * Lets middleware read the request itself: what arrives is counted, and must make progress while it is waited for.
   * `failed` hears of BODY_TOO_LARGE (over `limit` bytes) or BODY_TIMEOUT, once. The function given back ends that.
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
    // What every stream does of its own: called when a reader wants more, and with what has come.
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
      else this.#received += chunk.length;
      if (this.#received > limit) fail(new ModhostError("BODY_TOO_LARGE", { limit }));
      return push.call(request, chunk, encoding);
    };
    request.once("close", stop);
    return () => {
      stop();
      // Not deleted: that would make each access to any field of the request slower.
      Object.assign(request, { _read: read, push });
    };
  }

  /** Reads it all; rejects with BODY_TOO_LARGE as soon as it is over `limit` bytes. */
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
        this.#received += chunk.length;
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

  /** Reads it piece by piece; the network is held back while the reader is busy. */
  [Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    return this.#pieces(false);
  }

  /** The same, but a piece is valid until the next one is asked for: its memory serves again, or is freed. */
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
    let given: Buffer | undefined;
    const goOn = () => {
      if (isLeft || turns.isOver || queued >= MAX_QUEUED_BYTES) return;
      if (request.isPaused()) request.resume();
      this.#large?.resume();
    };
    const turns = new BodyTurns(goOn);
    const finish = (how: NonNullable<typeof end>) => () => {
      end ??= how;
      wake?.();
    };
    /** True when that was enough for now. */
    const take = (chunk: Buffer): boolean => {
      this.#received += chunk.length;
      queue.push(chunk);
      queued += chunk.length;
      wake?.();
      return turns.took(chunk.length) || queued >= MAX_QUEUED_BYTES;
    };
    const reader = { received: () => this.#received, take: (chunk: Buffer) => !take(chunk) };
    const onData = (chunk: Buffer) => {
      // What is taken in after the answer has a bound of its own, and nobody may wait for it any more.
      if (take(chunk) && !this.#lingering) request.pause();
      if (isPassing) this.#large ??= LargeBody.of(request, reader);
    };
    const onEnd = finish("complete");
    const onClose = finish("BODY_ABORTED");
    const patience = () => this.#pause * 1000;
    const flow = { ...this.#flow(finish("BODY_TIMEOUT"), () => wake !== undefined), patience };
    const watched = this.#watch.add(flow);
    request.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose);
    if (isPassing) this.#large = LargeBody.of(request, reader);
    try {
      for (;;) {
        const chunk = queue.shift();
        if (chunk !== undefined) {
          queued -= chunk.length;
          goOn();
          given = chunk;
          yield chunk;
          given = undefined;
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
      for (const chunk of queue) releaseReadBuffer(chunk);
      if (given !== undefined) keepReadBuffer(given);
      this.#watch.delete(watched);
      request.removeListener("data", onData).removeListener("end", onEnd).removeListener("close", onClose);
      if (!this.#lingering) request.pause();
    }
  }

  /**
   * Takes in and forgets what a client still sends after its answer, within a bound of bytes, and of time or, `patiently`,
   * as long as it makes progress; resolves when the body is complete, that is over or the client is gone.
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
        this.#received += chunk.length;
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

/** Has its memory serve again, or frees it: pieces that are large are as much work for the garbage collector as all else of an upload. */
function release(piece: Buffer): void {
  const { buffer, length } = piece;
  if (releaseReadBuffer(piece) || length < MIN_FREED_BYTES) return;
  if (length === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0);
}
