/** `ls`: directory listings. */
import { goJsonText, type LsPage, printable, type UnixTime, type WriteCid } from "modhost/node";
import { columns } from "../rpc/columns.ts";
import {
  type AnyCall,
  type ArgumentValues,
  type Commands,
  Listing,
  type OptionValues,
  readCommand,
  value,
} from "../rpc/command.ts";
import { goMode, listMode, listTime, rfc3339 } from "../rpc/file_facts.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";

const linkFields = { Name: "string", Hash: "string", Size: "uint64", Type: "int32", Target: "string" } as const;
const lsLink = fields("LsLink", linkFields);
const lsObject = fields("LsObject", { Hash: "string", Links: [lsLink] });
/** At the level 0.43, links also have mode and time. */
const lsLinkKubo043 = fields("LsLink", { ...linkFields, Mode: "uint", ModTime: "time" });
const lsObjectKubo043 = fields("LsObject", { Hash: "string", Links: [lsLinkKubo043] });

type LsLink = ValueOf<typeof lsLink>;
type LsLinkKubo043 = ValueOf<typeof lsLinkKubo043>;
type LsObject<L = LsLink> = { readonly Hash: string; readonly Links: readonly L[] };

const types = { unknown: 0, directory: 1, file: 2, symlink: 4 } as const;

type NodeLink = Extract<LsPage, { readonly links: unknown }>["links"][number];

/** A row is an object, or a link of the preceding object. */
type Row = { readonly Hash: string } | NodeLink;

/** Names each object by the argument that was given for it. */
async function* named(pages: AsyncIterable<LsPage>, given: readonly string[]): AsyncGenerator<readonly Row[]> {
  let objects = 0;
  for await (const page of pages) yield "path" in page ? [{ Hash: given[objects++] ?? page.path }] : page.links;
}

/** How to show a link: as a value, and the same as JSON. */
interface Shown<L> {
  value(link: NodeLink): L;
  json(link: NodeLink): string;
}

const shownLink = (write: WriteCid): Shown<LsLink> => ({
  value: ({ name, cid, size, type, target }) => ({
    Name: name,
    Hash: write(cid),
    Size: size,
    Type: types[type],
    Target: target,
  }),
  json: (link) => `{${membersOf(link, write)}}`,
});

/** Writes JSON directly, without building a value for each link, because lists can be long. */
const membersOf = ({ name, cid, size, type, target }: NodeLink, write: WriteCid): string =>
  `"Name":${goJsonText(name)},"Hash":${goJsonText(write(cid))},"Size":${size},"Type":${types[type]},"Target":${goJsonText(target)}`;

/** Shows links as the level 0.43 does. */
const shownKubo043 = (write: WriteCid): Shown<LsLinkKubo043> => ({
  value: (link) => ({ ...shownLink(write).value(link), ...factsOf(link) }),
  json(link) {
    const { Mode, ModTime } = factsOf(link);
    return `{${membersOf(link, write)},"Mode":${Mode},"ModTime":${goJsonText(ModTime)}}`;
  },
});

const NO_TIME = "0001-01-01T00:00:00Z";

/** Like Kubo, gives a node that has a mode but no time the time 1970. */
function factsOf({ type, mode, mtime }: NodeLink): Pick<LsLinkKubo043, "Mode" | "ModTime"> {
  const time = mtime ?? (mode === undefined ? undefined : { seconds: 0, nanoseconds: 0 });
  return {
    Mode: goMode(mode, type === "unknown" ? "file" : type),
    ModTime: time === undefined ? NO_TIME : rfc3339(time),
  };
}

class ObjectListing<L> extends Listing<Row> {
  readonly #shown: Shown<L>;

  constructor(pages: AsyncIterable<readonly Row[]>, shown: Shown<L>) {
    super("Objects", pages);
    this.#shown = shown;
  }

  override whole(rows: readonly Row[]) {
    const objects: { readonly Hash: string; readonly Links: L[] }[] = [];
    for (const row of rows) {
      if ("cid" in row) objects.at(-1)?.Links.push(this.#shown.value(row));
      else objects.push({ ...row, Links: [] });
    }
    return { Objects: objects };
  }

  override async *json(pages: AsyncIterable<readonly Row[]>): AsyncGenerator<string, void, undefined> {
    let before = '{"Objects":[';
    let between = "";
    for await (const page of pages) {
      let text = "";
      for (const row of page) {
        if ("cid" in row) {
          text += between + this.#shown.json(row);
          between = ",";
        } else {
          text += `${before}{"Hash":${goJsonText(row.Hash)},"Links":[`;
          before = "]},";
          between = "";
        }
      }
      yield text;
    }
    yield "]}]}";
  }
}

async function* streamed<L>(pages: AsyncIterable<readonly Row[]>, shown: Shown<L>) {
  let path = "";
  for await (const page of pages) {
    for (const row of page) {
      if ("cid" in row) yield { Objects: [{ Hash: path, Links: [shown.value(row)] }] };
      else path = row.Hash;
    }
  }
}

interface Table {
  readonly headings: boolean;
  readonly sizes: boolean;
  readonly titled: boolean;
}

/** The columns that `long` adds around hash and size. */
interface LongColumns {
  readonly mode: string;
  readonly time: string;
}

/** Returns the table rows for one object. */
function rows<L extends LsLink>(
  { Hash, Links }: LsObject<L>,
  { headings, sizes, titled }: Table,
  more?: (link: L) => LongColumns,
): string[][] {
  const row = (hash: string, size: string, name: string, long: LongColumns | undefined) => [
    ...(long === undefined ? [] : [long.mode]),
    hash,
    ...(sizes ? [size] : []),
    ...(long === undefined ? [] : [long.time]),
    name,
  ];
  return [
    ...(titled ? [[`${Hash}:`]] : []),
    ...(headings ? [row("Hash", "Size", "Name", more && { mode: "Mode", time: "ModTime" })] : []),
    ...Links.map((link) => {
      const { Hash: hash, Size, Type, Name } = link;
      return Type === types.directory
        ? row(hash, "-", `${printable(Name)}/`, more?.(link))
        : row(hash, String(Size), printable(Name), more?.(link));
    }),
  ];
}

/** Formats mode and time like `ls -l`; a dash stands for a missing value. */
const longColumns = ({ Mode, ModTime }: LsLinkKubo043): LongColumns => ({
  mode: Mode === 0 ? "-" : listMode(Mode),
  time: ModTime === NO_TIME ? "-" : listTime(timeOf(ModTime)),
});

const timeOf = (text: string): UnixTime => ({ seconds: Math.floor(Date.parse(text) / 1000), nanoseconds: 0 });

const about = {
  help: "Lists directories, and the links of other nodes.",
  readOnly: true,
  arguments: [{ name: "ipfs-path", path: true, required: true, variadic: true, stdin: "lines", help: "What to list." }],
} as const;

const options = {
  headers: { type: "bool", aliases: ["v"], help: "Print column headings." },
  "resolve-type": {
    type: "bool",
    default: true,
    help: "Show the type of each entry, which reads the entry's block.",
  },
  size: { type: "bool", default: true, help: "Show the size of each entry, which reads the entry's block." },
  stream: { type: "bool", aliases: ["s"], help: "Return entries as they are found, unsorted." },
  long: { type: "bool", aliases: ["l"], since: "0.43", help: "Print mode and time, at the level 0.43." },
} as const;

type LsCall = Pick<AnyCall, "node" | "signal" | "offline" | "given"> & {
  readonly arguments: ArgumentValues<typeof about.arguments>;
  readonly options: OptionValues<typeof options>;
};

function listing<L>({ node, arguments: args, options, given, signal, offline }: LsCall, shown: Shown<L>) {
  const { stream, size, "resolve-type": resolveType } = options;
  const found = node.ls.pages(args["ipfs-path"], { stream, size, resolveType, signal, offline });
  const pages = named(found, given);
  return stream === true ? streamed(pages, shown) : new ObjectListing(pages, shown);
}

function textOf<L extends LsLink>(
  objects: readonly LsObject<L>[],
  { options, given }: Pick<LsCall, "options" | "given">,
  more?: (link: L) => LongColumns,
): string {
  const stream = options.stream === true;
  const table = {
    headings: !stream && options.headers === true,
    sizes: options.size,
    titled: !stream && given.length > 1,
  };
  const lines = objects.flatMap((object, at) => [
    ...(table.titled && at > 0 ? [[""]] : []),
    ...rows(object, table, more),
  ]);
  return columns(lines, stream ? 10 : 1);
}

export const commands = {
  ls: readCommand({
    ...about,
    options,
    returns: value(fields("LsOutput", { Objects: [lsObject] })),
    run: (call) => listing(call, shownLink(call.cidText())),
    text: ({ Objects }, call) => textOf(Objects, call),
  }),
} satisfies Commands;

export const kubo043 = {
  ls: readCommand({
    ...about,
    options,
    returns: value(fields("LsOutput", { Objects: [lsObjectKubo043] })),
    run: (call) => listing(call, shownKubo043(call.cidText())),
    text: ({ Objects }, call) => textOf(Objects, call, call.options.long === true ? longColumns : undefined),
  }),
} satisfies Commands;
