/** Answers as tables for people at a terminal; in a pipe they are what the server writes. */
import { isColored, painter } from "../../util/terminal.ts";
import { printable, size_text } from "../../util/text.ts";
import { columns } from "../output.ts";
import { jsonLines, type Presenter, print } from "./outcome.ts";
import { checkEnd } from "./session.ts";

type Value = Readonly<Record<string, unknown>>;
type Row = readonly string[];

/** How the answer of a command becomes a table. */
interface Table {
  /** Titles of the columns; none for a table of names and values. */
  readonly head?: Row;
  rows(answer: Value): readonly Row[];
}

/** Rows that are aligned with each other, and written together. */
const ROWS_OF_BATCH = 1000;
/** Whoever gives these wants another form than a table. */
const otherForms = ["encoding", "enc", "quiet", "stream", "size-only", "human", "format", "headers"];

const text = (value: unknown) => printable(value === undefined || value === null ? "" : String(value));
const size = (value: unknown) => size_text(Number(value ?? 0));
const listOf = (value: unknown) => (Array.isArray(value) ? (value as Value[]) : []);

/** Names that the API has numbers for. */
const kinds: Readonly<Record<string, string>> = { 0: "raw", 1: "folder", 2: "file", 4: "link" };

const entries = (value: unknown): Row[] =>
  listOf(value).map(({ Name, Type, Size, Hash }) => [
    text(Hash),
    size(Size),
    kinds[String(Type)] ?? text(Type),
    text(Name),
  ]);

const figures = (names: Readonly<Record<string, (value: unknown) => string>>): Table => ({
  rows: (answer) =>
    Object.entries(names).flatMap(([name, form]) => (answer[name] === undefined ? [] : [[name, form(answer[name])]])),
});

export const tables: Readonly<Record<string, Table>> = {
  ls: {
    head: ["CID", "SIZE", "TYPE", "NAME"],
    rows: ({ Objects }) => listOf(Objects).flatMap(({ Links }) => entries(Links)),
  },
  "pin/ls": {
    head: ["CID", "TYPE", "NAME"],
    rows: ({ Keys }) =>
      Object.entries((Keys ?? {}) as Record<string, Value>).map(([cid, { Type, Name }]) => [
        cid,
        text(Type),
        text(Name),
      ]),
  },
  "key/list": {
    head: ["NAME", "ID"],
    rows: ({ Keys }) => listOf(Keys).map(({ Name, Id }) => [text(Name), text(Id)]),
  },
  "swarm/peers": {
    head: ["PEER", "ADDRESS", "LATENCY"],
    rows: ({ Peers }) => listOf(Peers).map(({ Peer, Addr, Latency }) => [text(Peer), text(Addr), text(Latency)]),
  },
  "repo/stat": figures({
    RepoPath: text,
    Version: text,
    NumObjects: (value) => Number(value).toLocaleString("en"),
    RepoSize: size,
    StorageMax: size,
  }),
};

/** The table of a command where people look at it; else as `print` has it. */
export const tabular =
  (table: Table): Presenter =>
  async (session, call) => {
    const { stdout, env } = session.context;
    if (stdout.isTTY !== true || otherForms.some((name) => call.options.has(name))) return print(session, call);
    const paint = painter(isColored(stdout, env));
    const answer = await session.send(call);
    let isFirst = true;
    for await (const value of jsonLines(answer.body)) {
      const rows = table.rows(value as Value);
      for (let at = 0; at < rows.length; at += ROWS_OF_BATCH) {
        const batch = rows.slice(at, at + ROWS_OF_BATCH);
        const head = isFirst && table.head !== undefined ? [table.head.map((cell) => paint("dim", cell))] : [];
        isFirst = false;
        await session.write(`${columns([...head, ...batch])}\n`);
      }
    }
    if (isFirst) session.context.stderr.write("There is nothing to list.\n");
    checkEnd(answer);
  };
