/**
 * Presenters print responses. Most print bytes and texts as the server sends them; some compose the
 * lines that go-ipfs leaves to the client, such as those of `add`.
 */

import { printable } from "../../../../core/cli/index.ts";
import type { RpcResponse } from "./exchange.ts";
import { type Call, isFlagSet } from "./parse.ts";
import { checkEnd, type Session, withOptions } from "./session.ts";
import type { RpcCommand } from "./surface.ts";

/** Sends a call and presents its response. */
export type Presenter = (session: Session, call: Call) => Promise<void>;

/** Prints the server's text form, unless the call requests another encoding. */
export const print: Presenter = async (session, call) => {
  const response = await session.send(withOptions(call, { encoding: "text" }));
  const isBytes = call.command.returns === "bytes";
  const { stdout } = session.context;
  const progress = isBytes && stdout.isTTY !== true ? session.progress(lengthOf(response)) : undefined;
  let done = 0;
  for await (const piece of response.body) {
    await session.write(piece);
    done += piece.length;
    progress?.show(done);
  }
  progress?.clear();
  reportPendingKeys(session, response);
  checkEnd(response);
};

/**
 * Reports the configuration keys that are written but not in force, as listed in the response
 * header of the `config` commands.
 */
export function reportPendingKeys({ context }: Session, { headers }: RpcResponse): void {
  const waiting = headers["x-modhost-config-waits"];
  if (typeof waiting !== "string") return;
  const keys = waiting.matchAll(/([\w.]+)(?:;reason="((?:[^"\\]|\\.)*)")?/g);
  for (const [, key, reason] of keys) {
    const why =
      reason === undefined ? "waits for the next start" : `is not in force: ${reason.replace(/\\(.)/g, "$1")}`;
    context.stderr.write(`modhost: ${key} ${printable(why)}\n`);
  }
}

/** Returns the length of the body that the server announces. */
export function lengthOf({ headers }: RpcResponse): number | undefined {
  const length = headers["x-content-length"];
  return length === undefined ? undefined : Number(length);
}

interface Added {
  readonly Name: string;
  readonly Hash?: string;
  readonly Bytes?: number;
}

/** go-ipfs leaves these lines and the progress to the client. */
export const add: Presenter = async (session, call) => {
  if (call.options.has("encoding")) return print(session, call);
  const [silent, quiet, quieter] = ["silent", "quiet", "quieter"].map((name) => isFlagSet(call, name));
  const isWatched = session.context.stderr.isTTY === true && !silent && !quiet && !quieter;
  const response = await session.send(withOptions(call, { progress: String(isWatched) }), { showsOwnProgress: true });
  const progress = isWatched ? session.progress(response.size) : undefined;
  let last = "";
  let done = 0;
  /** The file whose progress arrives now, and its bytes so far. */
  let current = "";
  let bytes = 0;
  for await (const value of jsonLines(response.body)) {
    const { Name, Hash, Bytes } = value as Added;
    if (Hash === undefined) {
      if (Name !== current) {
        current = Name;
        bytes = 0;
      }
      done += (Bytes ?? 0) - bytes;
      bytes = Bytes ?? 0;
      progress?.show(done);
      continue;
    }
    last = Hash;
    if (quieter || silent) continue;
    progress?.clear();
    await session.write(quiet ? `${Hash}\n` : `added ${Hash} ${printable(Name)}\n`);
    progress?.show(done);
  }
  progress?.clear();
  if (quieter && !silent && last !== "") await session.write(`${last}\n`);
  checkEnd(response);
};

interface Bandwidth {
  readonly TotalIn: number;
  readonly TotalOut: number;
  readonly RateIn: number;
  readonly RateOut: number;
}

/**
 * go-ipfs leaves the text of these numbers to the client: they are printed once, or with `poll` as
 * one line that changes.
 */
export const bandwidth: Presenter = async (session, call) => {
  if (call.options.has("encoding")) return print(session, call);
  const response = await session.send(call);
  const isPolled = isFlagSet(call, "poll");
  if (isPolled) await session.write("Total Up    Total Down  Rate Up     Rate Down\n");
  for await (const value of jsonLines(response.body)) {
    const { TotalIn, TotalOut, RateIn, RateOut } = value as Bandwidth;
    const cells = [TotalOut, TotalIn, RateOut, RateIn].map((bytes) => decimalSize(bytes).padStart(8));
    const [up, down, rateUp, rateDown] = cells;
    const text = isPolled
      ? `${up}    ${down}    ${rateUp}/s  ${rateDown}/s      \r`
      : `Bandwidth\nTotalIn: ${decimalSize(TotalIn)}\nTotalOut: ${decimalSize(TotalOut)}\n` +
        `RateIn: ${decimalSize(RateIn)}/s\nRateOut: ${decimalSize(RateOut)}/s\n`;
    await session.write(text);
  }
  checkEnd(response);
};

/** Formats bytes as go-humanize does: at most three digits, with powers of 1000. */
function decimalSize(size: number): string {
  const bytes = Math.trunc(size);
  if (bytes < 10) return `${bytes} B`;
  const units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
  const power = Math.min(Math.floor((String(bytes).length - 1) / 3), units.length - 1);
  const value = Math.floor((bytes / 1000 ** power) * 10 + 0.5) / 10;
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ${units[power]}`;
}

/**
 * Returns whether topics of calls are in multibase, as in Kubo. There, a message is a file of the
 * body.
 */
export const isMultibase = (commands: ReadonlyMap<string, RpcCommand>): boolean =>
  commands.get("pubsub/pub")?.file !== undefined;

/** Users type the plain topic; the call carries it encoded. */
export const withTopic: Presenter = (session, call) => {
  const [topic, ...more] = call.arguments;
  if (topic === undefined) return print(session, call);
  const encoded = `u${Buffer.from(topic).toString("base64url")}`;
  return print(session, { ...call, arguments: [encoded, ...more] });
};

type Item = Readonly<Record<string, string | undefined>>;

/**
 * Prints values that may each have failed. Failures go to stderr, and the call fails at its end.
 */
const items =
  (line: (item: Item) => string, fault: (item: Item) => string | undefined, end: string): Presenter =>
  async (session, call) => {
    if (call.options.has("encoding")) return print(session, call);
    const response = await session.send(call);
    let failed = false;
    for await (const value of jsonLines(response.body)) {
      const why = fault(value as Item);
      if (why === undefined) await session.write(`${printable(line(value as Item))}\n`);
      else {
        failed = true;
        session.context.stderr.write(`${printable(why)}\n`);
      }
    }
    checkEnd(response);
    if (failed) throw new Error(end);
  };

export const removeBlocks: Presenter = items(
  ({ Hash }) => `removed ${Hash}`,
  ({ Hash = "", Error: why }) => (why === undefined || why === "" ? undefined : `cannot remove ${Hash}: ${why}`),
  "some blocks not removed",
);

export const convertCids: Presenter = items(
  ({ Formatted = "" }) => Formatted,
  ({ CidStr = "", ErrorMsg }) => (ErrorMsg === undefined || ErrorMsg === "" ? undefined : `${CidStr}: ${ErrorMsg}`),
  "some CIDs could not be converted",
);

/** Parses a body that has one JSON value per line. */
export async function* jsonLines(body: AsyncIterable<Buffer>): AsyncGenerator<unknown> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of body) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") yield JSON.parse(line);
  }
  if (rest.trim() !== "") yield JSON.parse(rest);
}
