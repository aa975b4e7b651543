/** Lists of directories. */

import { inSession, type ReadBlock } from "../../mod_node/content/dag/reader.ts";
import { entries } from "../../mod_node/content/unixfs/list.ts";
import { fileSize, isDirectory } from "../../mod_node/content/unixfs/node.ts";
import { openNode } from "../../mod_node/content/unixfs/open.ts";
import { dagPb, raw } from "../../mod_node/formats/cid/codecs.ts";
import { compareNames, type PbLink } from "../../mod_node/formats/dag_pb/dag_pb.ts";
import { namedLinks } from "../../mod_node/formats/ipld/links.ts";
import { ExternalSortedMap, jsonCodec } from "../../mod_node/storage/external_sorted_map.ts";
import { mapConcurrent } from "../../mod_node/util/async/map_concurrent.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { goJson, printable } from "../../mod_node/util/go/text.ts";
import { columns } from "../rpc/columns.ts";
import { type AnyCall, type Commands, defineCommand, defineGroup, Listing, value } from "../rpc/command.ts";
import { fields, map, nullable, type ValueOf } from "../rpc/shape.ts";

const lsLink = fields("LsLink", { Name: "string", Hash: "string", Size: "uint64", Type: "int32", Target: "string" });
const lsObject = fields("LsObject", { Hash: "string", Links: [lsLink] });

type LsLink = ValueOf<typeof lsLink>;
type LsObject = ValueOf<typeof lsObject>;

const paths = [{ name: "ipfs-path", required: true, variadic: true, stdin: "lines", help: "What to list." }] as const;

/** Children that are looked at at the same time. */
const atOnce = 16;

const unknown = 0;
const directory = 1;
const file = 2;
const symlink = 4;

type Kind = Pick<LsLink, "Type" | "Size" | "Target">;

/** What a link leads to; children that say so by their CID are not read. */
async function kindOf({ cid, size }: PbLink, read: ReadBlock | undefined): Promise<Kind> {
  if (cid.code === raw) return { Type: file, Size: size, Target: "" };
  if (cid.code !== dagPb || read === undefined) return { Type: unknown, Size: 0, Target: "" };
  const node = openNode(cid, await read(cid));
  const { type, data } = node.unixfs;
  if (type === "Symlink") return { Type: symlink, Size: fileSize(node), Target: Buffer.from(data ?? []).toString() };
  if (type === "File" || type === "Raw") return { Type: file, Size: fileSize(node), Target: "" };
  return { Type: directory, Size: 0, Target: "" };
}

/** Links of one object, in its order; children are read ahead, so many at a time. */
async function* linksOf(path: string, resolved: boolean, call: AnyCall): AsyncGenerator<LsLink> {
  const write = call.cidText();
  const read = call.lowLevel.reader(inSession(call));
  const { cid } = await call.lowLevel.resolve(path, inSession(call));
  const bytes = await read(cid);
  const node = cid.code === dagPb ? openNode(cid, bytes) : undefined;
  const links = node !== undefined && isDirectory(node) ? entries(node, read) : namedLinks(cid, bytes);
  yield* mapConcurrent(links, atOnce, async (link) => {
    const { Size, Type, Target } = await kindOf(link, resolved ? read : undefined);
    return { Name: link.name, Hash: write(link.cid), Size, Type, Target };
  });
}

/** An object, or a link of the object before it. */
type Row = { readonly Hash: string; readonly Links: LsLink[] } | { readonly link: LsLink };

/** Objects, each with its links behind it in order of their names. */
async function* rowsOf(given: readonly string[], resolved: boolean, call: AnyCall): AsyncGenerator<Row> {
  for (const path of given) {
    const links = new ExternalSortedMap<LsLink>(call.lowLevel.scratch, jsonCodec());
    try {
      let count = 0;
      for await (const link of linksOf(path, resolved, call)) {
        // Links of one name keep their order.
        const stored = links.set(0, `${link.Name}\0${String(count).padStart(10, "0")}`, link);
        if (stored !== undefined) await stored;
        count += 1;
      }
      yield { Hash: path, Links: [] };
      for await (const page of links.pages(0)) for (const [, link] of page) yield { link };
    } finally {
      await links.clear();
    }
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

async function* streamed(given: readonly string[], resolved: boolean, call: AnyCall) {
  for (const path of given) {
    for await (const link of linksOf(path, resolved, call)) yield { Objects: [{ Hash: path, Links: [link] }] };
  }
}

interface Table {
  readonly headings: boolean;
  readonly sizes: boolean;
  readonly titled: boolean;
}

/** Lines of cells for one object. */
function rows({ Hash, Links }: LsObject, { headings, sizes, titled }: Table): string[][] {
  const row = (hash: string, size: string, name: string) => (sizes ? [hash, size, name] : [hash, name]);
  return [
    ...(titled ? [[`${Hash}:`]] : []),
    ...(headings ? [row("Hash", "Size", "Name")] : []),
    ...Links.map(({ Hash: hash, Size, Type, Name }) =>
      Type === directory ? row(hash, "-", `${printable(Name)}/`) : row(hash, String(Size), printable(Name)),
    ),
  ];
}

const fileLink = fields("LsLink", { Name: "string", Hash: "string", Size: "uint64", Type: "string" });
const fileObject = fields("LsObject", { Hash: "string", Size: "uint64", Type: "string", Links: nullable([fileLink]) });
type FileObject = ValueOf<typeof fileObject>;

/** A node of a tree, but no raw leaf: this command is older than those. */
async function oldNode(cid: PbLink["cid"], read: ReadBlock) {
  const bytes = await read(cid);
  if (cid.code !== dagPb) throw new NodeError("expected protobuf dag node");
  return openNode(cid, bytes);
}

async function fileObjectOf(cid: PbLink["cid"], read: ReadBlock): Promise<FileObject> {
  const node = await oldNode(cid, read);
  const { type } = node.unixfs;
  const facts = { Hash: cid.toString(), Size: type === "Directory" ? 0 : fileSize(node), Type: type };
  if (type === "File") return { ...facts, Links: null };
  if (type === "HAMTShard") throw new NodeError("cannot list large directories yet");
  if (type === "Symlink") throw new NodeError("cannot list symlinks yet");
  if (type !== "Directory") throw new NodeError(`unrecognized type: ${type}`);
  const links = mapConcurrent(node.links, atOnce, async ({ name, cid: child, size }) => {
    const inner = await oldNode(child, read);
    const { type: Type } = inner.unixfs;
    return { Name: name, Hash: child.toString(), Size: Type === "File" ? fileSize(inner) : size, Type };
  });
  return { ...facts, Links: await Array.fromAsync(links) };
}

const sorted = <T>(found: ReadonlyMap<string, T>): Record<string, T> =>
  Object.fromEntries([...found].sort(([one], [other]) => compareNames(one, other)));

export const commands = {
  ls: defineCommand({
    help: "Lists directories, and the links of other nodes.",
    readOnly: true,
    arguments: paths,
    options: {
      headers: { type: "bool", aliases: ["v"], help: "Print headings." },
      "resolve-type": { type: "bool", default: true, help: "Look at each entry to tell what it is." },
      size: { type: "bool", default: true, help: "Look at each entry to tell its size." },
      stream: { type: "bool", aliases: ["s"], help: "Send entries as they are found, in the directory's order." },
    },
    returns: value(fields("LsOutput", { Objects: [lsObject] })),
    async run(call) {
      const { options } = call;
      const given = call.arguments["ipfs-path"];
      const resolved = options["resolve-type"] || options.size;
      if (options.stream === true) return streamed(given, resolved, call);
      return new ObjectListing("Objects", rowsOf(given, resolved, call));
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
  file: defineGroup({ help: "Older names of commands on files." }),
  "file/ls": defineCommand({
    help: "Lists directories; `ls` does more.",
    deprecated: true,
    arguments: paths,
    returns: value(fields("LsOutput", { Arguments: map("string"), Objects: map(fileObject) })),
    async run(call) {
      const read = call.lowLevel.reader(call);
      const given = new Map<string, string>();
      const objects = new Map<string, FileObject>();
      for (const path of call.arguments["ipfs-path"]) {
        const { cid } = await call.lowLevel.resolve(path, call);
        const hash = cid.toString();
        given.set(path, hash);
        if (!objects.has(hash)) objects.set(hash, await fileObjectOf(cid, read));
      }
      return { Arguments: sorted(given), Objects: sorted(objects) };
    },
    text({ Arguments, Objects }) {
      const isFolder = (path: string) => Objects[Arguments[path] as string]?.Type === "Directory";
      const [folders, files] = [
        Object.keys(Arguments).filter(isFolder),
        Object.keys(Arguments).filter((path) => !isFolder(path)),
      ];
      const parts = [...new Set(folders.map((path) => Arguments[path] as string))].map((hash) => {
        const names = folders.filter((path) => Arguments[path] === hash).map((path) => `${printable(path)}:\n`);
        const links = Objects[hash]?.Links ?? [];
        return [
          ...(folders.length + files.length > 1 ? names : []),
          ...links.map(({ Name }) => `${printable(Name)}\n`),
        ];
      });
      const head = files.map((path) => `${path}\n`);
      return [...(head.length > 0 ? [head] : []), ...parts].map((lines) => lines.join("")).join("\n");
    },
  }),
} satisfies Commands;
