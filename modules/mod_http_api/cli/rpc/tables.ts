/**
 * Presents responses as tables on a terminal. In a pipe, responses are printed as the server writes
 * them.
 */
import { columns, isColored, painter, printable, size_text } from "../../../../core/cli/index.ts";
import { type Call, isFlagSet } from "./parse.ts";
import { bandwidth, jsonLines, type Presenter, print } from "./presenters.ts";
import { checkEnd, type Session } from "./session.ts";

type Value = Readonly<Record<string, unknown>>;
type Row = readonly string[];

/** A field of a value, and how to format it. */
type Cell = readonly [field: string, form?: (value: unknown) => string | readonly string[]];

/** How the response of a command becomes a table. */
interface Table {
  /** Titles of the columns; undefined for a table of names and values. */
  readonly head?: Row;
  rows(response: Value): readonly Row[];
  /** The option of the command without which there is no table. */
  readonly needs?: string;
  /** Options, in addition to `otherForms`, that request another form than a table. */
  readonly unless?: readonly string[];
  /** Presents the response if it is not shown as a table. Default: `print`. */
  readonly otherwise?: Presenter;
}

/** Number of rows that are aligned and written together. */
const ROWS_OF_BATCH = 1000;
/** Options that request another form than a table, for every command. */
const otherForms = ["encoding", "enc", "quiet", "stream", "size-only", "human", "format", "headers", "verbose"];

const text = (value: unknown) => {
  const link = (value as { readonly "/"?: unknown } | null | undefined)?.["/"];
  return printable(value === undefined || value === null ? "" : String(link ?? value));
};
const size = (value: unknown) => size_text(Number(value ?? 0));
const count = (value: unknown) => (Array.isArray(value) ? value.length : Number(value)).toLocaleString("en");
const each = (value: unknown) => (Array.isArray(value) && value.length > 0 ? value.map(text) : "none");
/**
 * Streamed rows are not aligned with each other, so the status is padded to the longest word,
 * `pinning`.
 */
const pinStatus = (value: unknown) => text(value).padEnd("pinning".length);
/**
 * Names for the numbers that the API uses as types: those of UnixFS, and those of the mutable
 * namespace.
 */
const kindOf = (kinds: Readonly<Record<string, string>>) => (value: unknown) => kinds[String(value)] ?? text(value);
const unixfsKind = kindOf({ 0: "raw", 1: "folder", 2: "file", 4: "link" });
const mfsKind = kindOf({ 0: "file", 1: "folder" });

const listOf = (value: unknown) => (Array.isArray(value) ? (value as Value[]) : []);
const shown = (value: Value, [field, form = text]: Cell) => [form(value[field])].flat();

/** A table with a row for each item. */
const list = (items: (response: Value) => readonly Value[], cells: Readonly<Record<string, Cell>>): Table => ({
  head: Object.keys(cells),
  rows: (response) => items(response).map((item) => Object.values(cells).map((cell) => shown(item, cell).join(" "))),
});

/**
 * A table with a row for each field that is not empty. A field with several values has a row for
 * each.
 */
const nameValueTable = (cells: Readonly<Record<string, Cell>>): Table => ({
  rows: (response) =>
    Object.entries(cells).flatMap(([title, cell]) =>
      response[cell[0]] === undefined || response[cell[0]] === ""
        ? []
        : shown(response, cell).map((line, at) => [at === 0 ? title : "", line]),
    ),
});

/** Flattens an object whose values are objects themselves. */
const byName = (value: unknown, cells: (name: string, value: unknown) => Value | readonly Value[]) =>
  Object.entries((value ?? {}) as Value).flatMap(([name, one]) => cells(name, one));

const pinCounts = (value: unknown) => {
  const { Status, PinCount } = (value ?? {}) as Value;
  const counts = byName(PinCount, (name, number) =>
    Number(number) > 0 ? { text: `${number} ${name.toLowerCase()}` } : [],
  );
  return PinCount === undefined ? text(Status) : counts.map((one) => text(one.text)).join(", ") || "no pins";
};

/** The type of dht events that report a provider. */
const PROVIDER = 4;

const repo = nameValueTable({
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
    ...nameValueTable({
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
  "bitswap/stat": nameValueTable({
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
  "bitswap/ledger": nameValueTable({
    Peer: ["Peer"],
    "Debt ratio": ["Value", (value) => Number(value).toFixed(6)],
    Exchanges: ["Exchanged", count],
    Sent: ["Sent", size],
    Received: ["Recv", size],
  }),
  id: nameValueTable({
    ID: ["ID"],
    Agent: ["AgentVersion"],
    Protocol: ["ProtocolVersion"],
    "Public key": ["PublicKey"],
    Addresses: ["Addresses", each],
    Protocols: ["Protocols", each],
  }),
  version: {
    ...nameValueTable({
      Version: ["Version"],
      Commit: ["Commit"],
      Repo: ["Repo"],
      System: ["System"],
      Golang: ["Golang"],
    }),
    unless: ["number", "commit", "repo"],
  },
  "stats/bw": {
    ...nameValueTable({
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

/** Returns whether stdout is a terminal and the call requests no machine-readable form. */
export function isForPeople({ context }: Session, { options }: Call, unless: readonly string[] = []): boolean {
  return context.stdout.isTTY === true && ![...otherForms, ...unless].some((name) => options.has(name));
}

/** Presents the response as a table on a terminal, and otherwise like `print`. */
export const tabular =
  (table: Table): Presenter =>
  async (session, call) => {
    const { stdout, env } = session.context;
    const { needs, unless, otherwise = print } = table;
    const isPossible = needs === undefined || isFlagSet(call, needs);
    if (!isPossible || !isForPeople(session, call, unless)) return otherwise(session, call);
    const paint = painter(isColored(stdout, env));
    const response = await session.send(call);
    let isFirst = true;
    for await (const value of jsonLines(response.body)) {
      const { head, rows } = withoutEmpty(table, value as Value, call);
      for (let at = 0; at < rows.length; at += ROWS_OF_BATCH) {
        const batch = rows.slice(at, at + ROWS_OF_BATCH);
        const title = isFirst && head !== undefined ? [head.map((cell) => paint("dim", cell))] : [];
        isFirst = false;
        const lines = head === undefined ? batch.map(([name = "", ...cells]) => [paint("dim", name), ...cells]) : batch;
        await session.write(`${columns([...title, ...lines])}\n`);
      }
    }
    if (isFirst) session.context.stderr.write("The list is empty.\n");
    checkEnd(response);
  };

/** Removes empty columns. Streams keep theirs, because later values are still unknown. */
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
