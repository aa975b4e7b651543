/** Answers as tables for people at a terminal; in a pipe they are what the server writes. */
import { isColored, painter } from "../../util/terminal.ts";
import { printable, size_text } from "../../util/text.ts";
import { columns } from "../output.ts";
import { bandwidth, jsonLines, type Presenter, print } from "./outcome.ts";
import { type Call, isOn } from "./parse.ts";
import { checkEnd, type Session } from "./session.ts";

type Value = Readonly<Record<string, unknown>>;
type Row = readonly string[];

/** A field of a value, and how it is shown. */
type Cell = readonly [field: string, form?: (value: unknown) => string | readonly string[]];

/** How the answer of a command becomes a table. */
interface Table {
  /** Titles of the columns; none for a table of names and values. */
  readonly head?: Row;
  rows(answer: Value): readonly Row[];
  /** Options of the command without which there is nothing for a table. */
  readonly needs?: string;
  /** Options of the command by which people want another form, beside those of all. */
  readonly unless?: readonly string[];
  /** What shows the answer where there is no table; default: `print`. */
  readonly otherwise?: Presenter;
}

/** Rows that are aligned with each other, and written together. */
const ROWS_OF_BATCH = 1000;
/** Whoever gives these wants another form than a table. */
const otherForms = ["encoding", "enc", "quiet", "stream", "size-only", "human", "format", "headers", "verbose"];

const text = (value: unknown) => {
  const link = (value as { readonly "/"?: unknown } | null | undefined)?.["/"];
  return printable(value === undefined || value === null ? "" : String(link ?? value));
};
const size = (value: unknown) => size_text(Number(value ?? 0));
const count = (value: unknown) => (Array.isArray(value) ? value.length : Number(value)).toLocaleString("en");
const each = (value: unknown) => (Array.isArray(value) && value.length > 0 ? value.map(text) : "none");
/** Rows of a stream are not aligned with each other: the longest of its words is `pinning`. */
const pinStatus = (value: unknown) => text(value).padEnd("pinning".length);
/** Names that the API has numbers for: those of UnixFS, and those of the mutable namespace. */
const kindOf = (kinds: Readonly<Record<string, string>>) => (value: unknown) => kinds[String(value)] ?? text(value);
const unixfsKind = kindOf({ 0: "raw", 1: "folder", 2: "file", 4: "link" });
const mfsKind = kindOf({ 0: "file", 1: "folder" });

const listOf = (value: unknown) => (Array.isArray(value) ? (value as Value[]) : []);
const shown = (value: Value, [field, form = text]: Cell) => [form(value[field])].flat();

/** A row for each item. */
const list = (items: (answer: Value) => readonly Value[], cells: Readonly<Record<string, Cell>>): Table => ({
  head: Object.keys(cells),
  rows: (answer) => items(answer).map((item) => Object.values(cells).map((cell) => shown(item, cell).join(" "))),
});

/** A row for each field in which the answer has something; one that has several values has a row for each of them. */
const figures = (cells: Readonly<Record<string, Cell>>): Table => ({
  rows: (answer) =>
    Object.entries(cells).flatMap(([title, cell]) =>
      answer[cell[0]] === undefined || answer[cell[0]] === ""
        ? []
        : shown(answer, cell).map((line, at) => [at === 0 ? title : "", line]),
    ),
});

/** The fields of a table of names that have tables themselves. */
const byName = (value: unknown, cells: (name: string, value: unknown) => Value | readonly Value[]) =>
  Object.entries((value ?? {}) as Value).flatMap(([name, one]) => cells(name, one));

const pinCounts = (value: unknown) => {
  const { Status, PinCount } = (value ?? {}) as Value;
  const counts = byName(PinCount, (name, number) =>
    Number(number) > 0 ? { text: `${number} ${name.toLowerCase()}` } : [],
  );
  return PinCount === undefined ? text(Status) : counts.map((one) => text(one.text)).join(", ") || "no pins";
};

/** dht/events: a provider was found. */
const PROVIDER = 4;

const repo = figures({
  RepoPath: ["RepoPath"],
  Version: ["Version"],
  NumObjects: ["NumObjects", count],
  RepoSize: ["RepoSize", size],
  StorageMax: ["StorageMax", size],
});

const keys = list(({ Keys }) => listOf(Keys), { NAME: ["Name"], ID: ["Id"] });
const providers = list(({ Type, Responses }) => (Type === PROVIDER ? listOf(Responses) : []), {
  PEER: ["ID"],
  ADDRESSES: ["Addrs", each],
});

export const tables: Readonly<Record<string, Table>> = {
  ls: list(({ Objects }) => listOf(Objects).flatMap(({ Links }) => listOf(Links)), {
    CID: ["Hash"],
    SIZE: ["Size", size],
    TYPE: ["Type", unixfsKind],
    NAME: ["Name"],
  }),
  "files/ls": {
    ...list(({ Entries }) => listOf(Entries), {
      CID: ["Hash"],
      SIZE: ["Size", size],
      TYPE: ["Type", mfsKind],
      NAME: ["Name"],
    }),
    needs: "long",
  },
  "files/stat": {
    ...figures({
      CID: ["Hash"],
      Type: ["Type"],
      Size: ["Size", size],
      "Size with links": ["CumulativeSize", size],
      "Child blocks": ["Blocks", count],
      "Stored here": ["SizeLocal", size],
    }),
    unless: ["hash", "size"],
  },
  "pin/ls": list(({ Keys }) => byName(Keys, (Cid, pin) => ({ Cid, ...(pin as Value) })), {
    CID: ["Cid"],
    TYPE: ["Type"],
    NAME: ["Name"],
  }),
  "pin/remote/ls": list((pin) => [pin], { CID: ["Cid"], STATUS: ["Status", pinStatus], NAME: ["Name"] }),
  "pin/remote/service/ls": list(({ RemoteServices }) => listOf(RemoteServices), {
    SERVICE: ["Service"],
    ENDPOINT: ["ApiEndpoint"],
    PINS: ["Stat", pinCounts],
  }),
  "key/list": keys,
  "key/ls": keys,
  "swarm/peers": list(({ Peers }) => listOf(Peers), { PEER: ["Peer"], ADDRESS: ["Addr"], LATENCY: ["Latency"] }),
  "swarm/addrs": list(
    ({ Addrs }) => byName(Addrs, (Peer, known) => listOf(known).map((Address) => ({ Peer, Address }))),
    { PEER: ["Peer"], ADDRESS: ["Address"] },
  ),
  "dht/findprovs": providers,
  "routing/findprovs": providers,
  "bitswap/stat": figures({
    "Blocks received": ["BlocksReceived", count],
    "Data received": ["DataReceived", size],
    "Blocks sent": ["BlocksSent", count],
    "Data sent": ["DataSent", size],
    "Duplicate blocks": ["DupBlksReceived", count],
    "Duplicate data": ["DupDataReceived", size],
    "Messages received": ["MessagesReceived", count],
    "To be announced": ["ProvideBufLen", count],
    Partners: ["Peers", count],
    Wanted: ["Wantlist", each],
  }),
  "bitswap/ledger": figures({
    Peer: ["Peer"],
    "Debt ratio": ["Value", (value) => Number(value).toFixed(6)],
    Exchanges: ["Exchanged", count],
    Sent: ["Sent", size],
    Received: ["Recv", size],
  }),
  id: figures({
    ID: ["ID"],
    Agent: ["AgentVersion"],
    Protocol: ["ProtocolVersion"],
    "Public key": ["PublicKey"],
    Addresses: ["Addresses", each],
    Protocols: ["Protocols", each],
  }),
  version: {
    ...figures({ Version: ["Version"], Commit: ["Commit"], Repo: ["Repo"], System: ["System"], Golang: ["Golang"] }),
    unless: ["number", "commit", "repo"],
  },
  "stats/bw": {
    ...figures({
      Received: ["TotalIn", size],
      Sent: ["TotalOut", size],
      Receiving: ["RateIn", (value) => `${size(value)}/s`],
      Sending: ["RateOut", (value) => `${size(value)}/s`],
    }),
    unless: ["poll"],
    otherwise: bandwidth,
  },
  "repo/stat": repo,
  "stats/repo": repo,
};

/** True where people look at the answer, and have asked for no form that programs read. */
export function isForPeople({ context }: Session, { options }: Call, unless: readonly string[] = []): boolean {
  return context.stdout.isTTY === true && ![...otherForms, ...unless].some((name) => options.has(name));
}

/** The table of a command where people look at it; else as `print` has it. */
export const tabular =
  (table: Table): Presenter =>
  async (session, call) => {
    const { stdout, env } = session.context;
    const { needs, unless, otherwise = print } = table;
    const isPossible = needs === undefined || isOn(call, needs);
    if (!isPossible || !isForPeople(session, call, unless)) return otherwise(session, call);
    const paint = painter(isColored(stdout, env));
    const answer = await session.send(call);
    let isFirst = true;
    for await (const value of jsonLines(answer.body)) {
      const { head, rows } = withoutEmpty(table, value as Value, call);
      for (let at = 0; at < rows.length; at += ROWS_OF_BATCH) {
        const batch = rows.slice(at, at + ROWS_OF_BATCH);
        const title = isFirst && head !== undefined ? [head.map((cell) => paint("dim", cell))] : [];
        isFirst = false;
        const lines = head === undefined ? batch.map(([name = "", ...cells]) => [paint("dim", name), ...cells]) : batch;
        await session.write(`${columns([...title, ...lines])}\n`);
      }
    }
    if (isFirst) session.context.stderr.write("There is nothing to list.\n");
    checkEnd(answer);
  };

/** Without columns that nothing stands in: of a stream nobody knows yet what comes. */
function withoutEmpty(
  { head, rows }: Table,
  value: Value,
  { command }: Call,
): Pick<Table, "head"> & { rows: readonly Row[] } {
  const all = rows(value);
  if (head === undefined || command.returns !== "value") return { ...(head && { head }), rows: all };
  const isUsed = head.map((_, at) => all.some((row) => row[at] !== ""));
  const used = (row: Row) => row.filter((_, at) => isUsed[at]);
  return { head: used(head), rows: all.map(used) };
}
