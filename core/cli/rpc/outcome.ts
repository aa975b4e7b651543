/** Outcomes as they are printed: bytes and texts as the server sends them, and the lines of `add`. */

import { printable } from "../../util/text.ts";
import type { Answered } from "./exchange.ts";
import { type Call, isOn } from "./parse.ts";
import { checkEnd, type Session, withOptions } from "./session.ts";
import type { RpcCommand } from "./surface.ts";

/** Does what a call asks for. */
export type Presenter = (session: Session, call: Call) => Promise<void>;

/** In the text form of the server, unless another one is asked for. */
export const print: Presenter = async (session, call) => {
  const answer = await session.send(withOptions(call, { encoding: "text" }));
  const isBytes = call.command.returns === "bytes";
  const { stdout } = session.context;
  const progress = isBytes && stdout.isTTY !== true ? session.progress(lengthOf(answer)) : undefined;
  let done = 0;
  for await (const piece of answer.body) {
    await session.write(piece);
    done += piece.length;
    progress?.show(done);
  }
  progress?.clear();
  tellWaiting(session, answer);
  checkEnd(answer);
};

/** Which keys of the node's configuration are written and not in force, as the answers of `config` tell it. */
export function tellWaiting({ context }: Session, { headers }: Answered): void {
  const waiting = headers["x-modhost-config-waits"];
  if (typeof waiting !== "string") return;
  const keys = waiting.matchAll(/([\w.]+)(?:;reason="((?:[^"\\]|\\.)*)")?/g);
  for (const [, key, reason] of keys) {
    const why =
      reason === undefined ? "waits for the next start" : `is not in force: ${reason.replace(/\\(.)/g, "$1")}`;
    context.stderr.write(`modhost: ${key} ${printable(why)}\n`);
  }
}

/** What the server says is to come. */
export function lengthOf({ headers }: Answered): number | undefined {
  const length = headers["x-content-length"];
  return length === undefined ? undefined : Number(length);
}

interface Added {
  readonly Name: string;
  readonly Hash?: string;
  readonly Bytes?: number;
}

/** The reference leaves these lines, and progress, to the client. */
export const add: Presenter = async (session, call) => {
  if (call.options.has("encoding")) return print(session, call);
  const [silent, quiet, quieter] = ["silent", "quiet", "quieter"].map((name) => isOn(call, name));
  const isWatched = session.context.stderr.isTTY === true && !silent && !quiet && !quieter;
  const answer = await session.send(withOptions(call, { progress: String(isWatched) }), { isTold: true });
  const progress = isWatched ? session.progress(answer.size) : undefined;
  let last = "";
  let done = 0;
  /** Bytes told of the file that is being read. */
  let [current, bytes] = ["", 0];
  for await (const value of jsonLines(answer.body)) {
    const { Name, Hash, Bytes } = value as Added;
    if (Hash === undefined) {
      if (Name !== current) [current, bytes] = [Name, 0];
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
  checkEnd(answer);
};

interface Bandwidth {
  readonly TotalIn: number;
  readonly TotalOut: number;
  readonly RateIn: number;
  readonly RateOut: number;
}

/** The reference leaves the text of these figures to the client: once, or with `poll` as one line that changes. */
export const bandwidth: Presenter = async (session, call) => {
  if (call.options.has("encoding")) return print(session, call);
  const answer = await session.send(call);
  const isPolled = isOn(call, "poll");
  if (isPolled) await session.write("Total Up    Total Down  Rate Up     Rate Down\n");
  for await (const value of jsonLines(answer.body)) {
    const { TotalIn, TotalOut, RateIn, RateOut } = value as Bandwidth;
    const cells = [TotalOut, TotalIn, RateOut, RateIn].map((bytes) => decimalSize(bytes).padStart(8));
    const [up, down, rateUp, rateDown] = cells;
    const text = isPolled
      ? `${up}    ${down}    ${rateUp}/s  ${rateDown}/s      \r`
      : `Bandwidth\nTotalIn: ${decimalSize(TotalIn)}\nTotalOut: ${decimalSize(TotalOut)}\n` +
        `RateIn: ${decimalSize(RateIn)}/s\nRateOut: ${decimalSize(RateOut)}/s\n`;
    await session.write(text);
  }
  checkEnd(answer);
};

/** Bytes as go-humanize writes them: at most three digits, powers of 1000. */
function decimalSize(size: number): string {
  const bytes = Math.trunc(size);
  if (bytes < 10) return `${bytes} B`;
  const units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
  const power = Math.min(Math.floor((String(bytes).length - 1) / 3), units.length - 1);
  const value = Math.floor((bytes / 1000 ** power) * 10 + 0.5) / 10;
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ${units[power]}`;
}

/** Whether topics stand in multibase in calls, as later versions of the reference have it: a message is a file there. */
export const isMultibase = (commands: ReadonlyMap<string, RpcCommand>): boolean =>
  commands.get("pubsub/pub")?.file !== undefined;

/** What people type is the topic itself. */
export const withTopic: Presenter = (session, call) => {
  const [topic, ...more] = call.arguments;
  if (topic === undefined) return print(session, call);
  const encoded = `u${Buffer.from(topic).toString("base64url")}`;
  return print(session, { ...call, arguments: [encoded, ...more] });
};

type Item = Readonly<Record<string, string | undefined>>;

/** Values of which each may have failed: those go to the standard error, and the call has failed at its end. */
const items =
  (line: (item: Item) => string, fault: (item: Item) => string | undefined, end: string): Presenter =>
  async (session, call) => {
    if (call.options.has("encoding")) return print(session, call);
    const answer = await session.send(call);
    let failed = false;
    for await (const value of jsonLines(answer.body)) {
      const why = fault(value as Item);
      if (why === undefined) await session.write(`${printable(line(value as Item))}\n`);
      else {
        failed = true;
        session.context.stderr.write(`${printable(why)}\n`);
      }
    }
    checkEnd(answer);
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

/** One JSON value a line. */
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
