/** Directory listings. */
import { goJson, type LsRow, printable, type WriteCid } from "modhost/node";
import { columns } from "../rpc/columns.ts";
import { type Commands, Listing, readCommand, value } from "../rpc/command.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";

const lsLink = fields("LsLink", { Name: "string", Hash: "string", Size: "uint64", Type: "int32", Target: "string" });
const lsObject = fields("LsObject", { Hash: "string", Links: [lsLink] });

type LsLink = ValueOf<typeof lsLink>;
type LsObject = ValueOf<typeof lsObject>;

const types = { unknown: 0, directory: 1, file: 2, symlink: 4 } as const;

/** An object, or a link of the preceding object. */
type Row = { readonly Hash: string; readonly Links: LsLink[] } | { readonly link: LsLink };

async function* written(rows: AsyncIterable<LsRow>, write: WriteCid): AsyncGenerator<Row> {
  for await (const row of rows) {
    if ("path" in row) {
      yield { Hash: row.path, Links: [] };
      continue;
    }
    const { name, cid, size, type, target } = row.link;
    yield { link: { Name: name, Hash: write(cid), Size: size, Type: types[type], Target: target } };
  }
}

class ObjectListing extends Listing<Row> {
  override whole(rows: readonly Row[]) {
    const objects: { readonly Hash: string; readonly Links: LsLink[] }[] = [];
    for (const row of rows) {
      if ("link" in row) objects.at(-1)?.Links.push(row.link);
      else objects.push(row);
    }
    return { Objects: objects };
  }

  override async *json(rows: AsyncIterable<Row>): AsyncGenerator<string, void, undefined> {
    let before = '{"Objects":[';
    let between = "";
    for await (const row of rows) {
      if ("link" in row) {
        yield between + goJson(row.link);
        between = ",";
      } else {
        yield `${before}{"Hash":${goJson(row.Hash)},"Links":[`;
        before = "]},";
        between = "";
      }
    }
    yield "]}]}";
  }
}

async function* streamed(rows: AsyncIterable<Row>) {
  let path = "";
  for await (const row of rows) {
    if ("link" in row) yield { Objects: [{ Hash: path, Links: [row.link] }] };
    else path = row.Hash;
  }
}

interface Table {
  readonly headings: boolean;
  readonly sizes: boolean;
  readonly titled: boolean;
}

/** Table rows for one object. */
function rows({ Hash, Links }: LsObject, { headings, sizes, titled }: Table): string[][] {
  const row = (hash: string, size: string, name: string) => (sizes ? [hash, size, name] : [hash, name]);
  return [
    ...(titled ? [[`${Hash}:`]] : []),
    ...(headings ? [row("Hash", "Size", "Name")] : []),
    ...Links.map(({ Hash: hash, Size, Type, Name }) =>
      Type === types.directory ? row(hash, "-", `${printable(Name)}/`) : row(hash, String(Size), printable(Name)),
    ),
  ];
}

export const commands = {
  ls: readCommand({
    help: "Lists directories, and the links of other nodes.",
    readOnly: true,
    arguments: [{ name: "ipfs-path", required: true, variadic: true, stdin: "lines", help: "What to list." }],
    options: {
      headers: { type: "bool", aliases: ["v"], help: "Print column headings." },
      "resolve-type": {
        type: "bool",
        default: true,
        help: "Show the type of each entry, which reads the entry's block.",
      },
      size: { type: "bool", default: true, help: "Show the size of each entry, which reads the entry's block." },
      stream: { type: "bool", aliases: ["s"], help: "Return entries as they are found, unsorted." },
    },
    returns: value(fields("LsOutput", { Objects: [lsObject] })),
    run({ node, arguments: { "ipfs-path": given }, options, signal, offline, cidText }) {
      const { stream, size, "resolve-type": resolveType } = options;
      const rows = written(node.ls.rows(given, { stream, size, resolveType, signal, offline }), cidText());
      return stream === true ? streamed(rows) : new ObjectListing("Objects", rows);
    },
    text({ Objects }, { options, given }) {
      const stream = options.stream === true;
      const table = {
        headings: !stream && options.headers === true,
        sizes: options.size,
        titled: !stream && given > 1,
      };
      const lines = Objects.flatMap((object, at) => [
        ...(table.titled && at > 0 ? [[""]] : []),
        ...rows(object, table),
      ]);
      return columns(lines, stream ? 10 : 1);
    },
  }),
} satisfies Commands;
