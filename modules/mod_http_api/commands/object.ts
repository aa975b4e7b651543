/** Nodes of the codec dag-pb, as they were handled before `dag`. */

import { putBlocks } from "../../mod_node/content/adder/put_blocks.ts";
import { diff } from "../../mod_node/content/dag/object/diff.ts";
import { type Edited, newObject, withData, withLink, withoutLink } from "../../mod_node/content/dag/object/edit.ts";
import { objectOf, readObjectJson } from "../../mod_node/content/dag/object/json.ts";
import { decodeObject, type ObjectNode, pbBlock, sizeOf } from "../../mod_node/content/dag/object/node.ts";
import { readObjectXml } from "../../mod_node/content/dag/object/xml.ts";
import { dagPb, raw as rawCodec } from "../../mod_node/formats/cid/codecs.ts";
import { parseCid } from "../../mod_node/formats/cid/text.ts";
import { cumulativeSize, decodePb, encodePb, type PbLink, parsePb } from "../../mod_node/formats/dag_pb/dag_pb.ts";
import { linksOf, namedLinks } from "../../mod_node/formats/ipld/links.ts";
import { encodeUnixfs } from "../../mod_node/formats/unixfs/format.ts";
import { readBlockBody } from "../../mod_node/storage/blockstore/make_block.ts";
import { readUpTo } from "../../mod_node/util/async/read_all.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { GoText, printable, quote } from "../../mod_node/util/go/text.ts";
import { sizeText } from "../../mod_node/util/size.ts";
import { columns } from "../rpc/columns.ts";
import {
  type AnyCall,
  bytes,
  type Command,
  type Commands,
  defineCommand,
  defineGroup,
  type Option,
  raw,
  value,
} from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { human, verbose } from "./shapes.ts";

const objectLink = fields("Link", { Name: "string", Hash: "string", Size: "uint64" });
/** `Links` is left out where the reference leaves it out. */
const hashed = fields("Object", { "Hash?": "string", "Links?": [objectLink] });
const object = value(hashed);

const key = [{ name: "key", required: true, stdin: "first", help: "The node." }] as const;
const root = { name: "root", required: true, help: "The node to start from." } as const;
const link = (help: string) => ({ name: "name", required: true, help }) as const;

const dataEncoding = {
  type: "string",
  default: "text",
  help: "How the data is written in JSON: `text` or `base64`.",
} as const satisfies Option;

/** Bytes of an upload that are looked at. */
const mostInput = 2 * 1024 * 1024 + 10;

type ObjectLink = ValueOf<typeof objectLink>;
type HashedObject = ValueOf<typeof hashed>;

type Call = Pick<AnyCall, "lowLevel" | "signal" | "offline" | "cidText">;

const hashLine = ({ Hash }: HashedObject): string => `${Hash}\n`;

/** The block that a path leads to; what is left of the path inside of it does not count. */
async function blockAt(path: string, call: Call) {
  const { cid } = await call.lowLevel.resolve(path, call);
  return { cid, bytes: await call.lowLevel.reader(call)(cid) };
}

async function heldAt(path: string, call: Call): Promise<ObjectNode> {
  const { cid, bytes } = await blockAt(path, call);
  return decodeObject(cid, bytes);
}

const linkLines = (of: readonly PbLink[], write: ReturnType<AnyCall["cidText"]>): ObjectLink[] =>
  of.map(({ name, cid, size }) => ({ Name: name, Hash: write(cid), Size: size }));

/** Stores new blocks, and gives the last of them in both shapes. */
async function stored(
  blocks: Edited,
  call: Call,
  write: ReturnType<AnyCall["cidText"]> = String,
  pin?: boolean,
): Promise<HashedObject> {
  await putBlocks(call.lowLevel, blocks, { pin, signal: call.signal });
  const { cid, bytes } = blocks.at(-1) as Edited[0];
  return { Hash: write(cid), Links: linkLines(decodePb(bytes).links, write) };
}

const emptyDirectory = encodePb({ data: encodeUnixfs({ type: "Directory" }), links: [] });
const templates: ReadonlyMap<string, Uint8Array> = new Map([
  ["empty", new Uint8Array()],
  ["unixfs-dir", emptyDirectory],
]);

/** Bytes of the node that an upload describes. @throws NodeError with the reference's text */
function read(input: Uint8Array, form: string, encoding: string): Uint8Array {
  switch (form) {
    case "json":
      return encodePb(objectOf(readObjectJson(input), encoding));
    case "xml":
      return encodePb(objectOf(readObjectXml(input), encoding));
    case "protobuf":
      parsePb(input);
      return input;
    default:
      throw new NodeError("unknown object encoding");
  }
}

const patchData = (help: string, change: (before: Uint8Array, given: Uint8Array) => Uint8Array): Command =>
  defineCommand({
    help,
    deprecated: true,
    arguments: [root],
    file: { name: "data", required: true, help: "The bytes." },
    returns: object,
    async run(call) {
      const { body } = await call.files.one();
      const node = await heldAt(call.arguments.root, call);
      return stored(await withData(node, change(node.data ?? new Uint8Array(), await readBlockBody(body))), call);
    },
    text: hashLine,
  });

const changeTypes = { added: 0, removed: 1, changed: 2 } as const;

export const commands = {
  object: defineGroup({ help: "Work with dag-pb nodes; `dag` and `files` have taken its place.", deprecated: true }),
  "object/data": defineCommand({
    help: "Gives the data of a node.",
    readOnly: true,
    deprecated: true,
    arguments: key,
    returns: raw,
    async run(call) {
      const { data } = await heldAt(call.arguments.key, call);
      return bytes(data ?? new Uint8Array());
    },
  }),
  "object/diff": defineCommand({
    help: "Tells in which links two trees differ.",
    arguments: [
      { name: "obj_a", required: true, help: "The one." },
      { name: "obj_b", required: true, help: "The other." },
    ],
    options: { verbose: verbose("Print more words.") },
    returns: value(
      fields("Changes", {
        Changes: [fields("Change", { Type: "int", Path: "string", Before: nullable("link"), After: nullable("link") })],
      }),
    ),
    async run(call) {
      const { obj_a, obj_b } = call.arguments;
      const one = await call.lowLevel.resolve(obj_a, call);
      const other = await call.lowLevel.resolve(obj_b, call);
      const changes = await diff(one.cid, other.cid, call.lowLevel.reader(call), call.signal);
      return {
        Changes: changes.map(({ kind, path, before, after }) => ({
          Type: changeTypes[kind],
          Path: path,
          Before: before ?? null,
          After: after ?? null,
        })),
      };
    },
    text({ Changes }, { options: { verbose } }) {
      const lines = Changes.map(({ Type, Path, Before, After }) => {
        const name = quote(Path);
        if (Type === 0) return verbose ? `Added new link ${name} pointing to ${After}.` : `+ ${After} ${name}`;
        if (Type === 1) return verbose ? `Removed link ${name} (was ${Before}).` : `- ${Before} ${name}`;
        return verbose ? `Changed ${name} from ${Before} to ${After}.` : `~ ${Before} ${After} ${name}`;
      });
      return lines.map((line) => `${line}\n`).join("");
    },
  }),
  "object/get": defineCommand({
    help: "Gives a node with its links and data.",
    readOnly: true,
    deprecated: true,
    arguments: key,
    options: { "data-encoding": dataEncoding },
    returns: value(fields("Node", { Links: [objectLink], Data: "bytes" })),
    async run(call) {
      const write = call.cidText("kept");
      const { links, data = new Uint8Array() } = await heldAt(call.arguments.key, call);
      const encoding = call.options["data-encoding"];
      if (encoding !== "text" && encoding !== "base64") throw new NodeError("unknown data field encoding");
      const text = encoding === "text" ? data : Buffer.from(Buffer.from(data).toString("base64"));
      return { Links: linkLines(links, write), Data: new GoText(text) };
    },
    encodings: {
      protobuf: {
        type: "application/protobuf",
        encode: ({ Links, Data }) =>
          encodePb({
            data: Data.bytes,
            links: Links.map(({ Name, Hash, Size }) => ({ name: Name, cid: parseCid(Hash), size: Number(Size) })),
          }),
      },
    },
  }),
  "object/links": defineCommand({
    help: "Lists the links of a node.",
    readOnly: true,
    deprecated: true,
    arguments: key,
    options: { headers: { type: "bool", aliases: ["v"], help: "Print a heading." } },
    returns: object,
    async run(call) {
      const write = call.cidText("kept");
      const { cid, bytes } = await blockAt(call.arguments.key, call);
      const found = namedLinks(cid, bytes);
      return { Hash: write(cid), ...(found.length > 0 && { Links: linkLines(found, write) }) };
    },
    text({ Links = [] }, { options: { headers } }) {
      const lines = Links.map(({ Hash, Size, Name }) => [Hash, String(Size), printable(Name)]);
      return columns(headers === true ? [["Hash", "Size", "Name"], ...lines] : lines, 2);
    },
  }),
  "object/new": defineCommand({
    help: "Makes a node from a template.",
    deprecated: true,
    arguments: [{ name: "template", help: "`unixfs-dir` for an empty directory; by default an empty node." }],
    returns: object,
    async run(call) {
      const write = call.cidText("kept");
      const name = call.given === 1 ? (call.arguments.template ?? "") : "empty";
      const template = templates.get(name);
      if (template === undefined) throw new NodeError(`unknown node type: ${name}`);
      return stored([await pbBlock(template)], call, write);
    },
    text: hashLine,
  }),
  "object/patch": defineGroup({ help: "Make a changed copy of a node.", deprecated: true }),
  "object/patch/add-link": defineCommand({
    help: "Adds or replaces a link.",
    deprecated: true,
    arguments: [
      root,
      link("Name of the link, or a path."),
      { name: "ref", required: true, help: "The node that the link leads to." },
    ],
    options: { create: { type: "bool", aliases: ["p"], help: "Make what is missing on the path." } },
    returns: object,
    async run(call) {
      const base = await blockAt(call.arguments.root, call);
      const { cid, bytes } = await blockAt(call.arguments.ref, call);
      linksOf(cid, bytes);
      const child = { cid, size: sizeOf(cid, bytes) };
      const create = call.options.create === true ? () => newObject(emptyDirectory) : undefined;
      const node = decodeObject(base.cid, base.bytes);
      return stored(await withLink(node, call.arguments.name, child, call.lowLevel.reader(call), create), call);
    },
    text: hashLine,
  }),
  "object/patch/append-data": patchData("Appends to the data.", (before, given) => Buffer.concat([before, given])),
  "object/patch/rm-link": defineCommand({
    help: "Removes a link.",
    deprecated: true,
    arguments: [root, link("Name of the link, or a path.")],
    returns: object,
    async run(call) {
      const node = await heldAt(call.arguments.root, call);
      return stored(await withoutLink(node, call.arguments.name, call.lowLevel.reader(call)), call);
    },
    text: hashLine,
  }),
  "object/patch/set-data": patchData("Replaces the data.", (_, given) => given),
  "object/put": defineCommand({
    help: "Stores a node.",
    deprecated: true,
    options: {
      inputenc: { type: "string", default: "json", help: "Form of the input: `json`, `protobuf` or `xml`." },
      datafieldenc: dataEncoding,
      pin: { type: "bool", help: "Pin the node." },
      quiet: { type: "bool", aliases: ["q"], help: "Print less." },
    },
    file: { name: "data", required: true, help: "The node." },
    returns: object,
    async run(call) {
      const write = call.cidText("kept");
      const { inputenc, datafieldenc, pin } = call.options;
      const { body } = await call.files.one();
      const node = read(await readUpTo(body, mostInput), inputenc, datafieldenc);
      return stored([await pbBlock(node)], call, write, pin);
    },
    text: ({ Hash }, { options: { quiet } }) => (quiet === true ? `${Hash}\n` : `added ${Hash}\n`),
  }),
  "object/stat": defineCommand({
    help: "Tells the sizes of a node.",
    readOnly: true,
    deprecated: true,
    arguments: key,
    options: { human },
    returns: value(
      fields("NodeStat", {
        Hash: "string",
        NumLinks: "int",
        BlockSize: "int",
        LinksSize: "int",
        DataSize: "int",
        CumulativeSize: "int",
      }),
    ),
    async run(call) {
      const write = call.cidText("kept");
      const { cid, bytes } = await blockAt(call.arguments.key, call);
      linksOf(cid, bytes);
      return { Hash: write(cid), ...sizesOf(cid.code, bytes) };
    },
    text({ Hash: _, ...sizes }, { options: { human } }) {
      const lines = Object.entries(sizes).map(([name, size]) => {
        return [`${name}:`, human === true && name === "CumulativeSize" ? sizeText(size) : String(size)];
      });
      return columns(lines, 0);
    },
  }),
} satisfies Commands;

/** Only nodes of dag-pb have all of them. */
function sizesOf(codec: number, bytes: Uint8Array) {
  const none = { NumLinks: 0, BlockSize: 0, LinksSize: 0, DataSize: 0, CumulativeSize: 0 };
  if (codec === rawCodec) return { ...none, DataSize: bytes.length, CumulativeSize: bytes.length };
  if (codec !== dagPb) return none;
  const { data, links } = decodePb(bytes);
  const DataSize = data?.length ?? 0;
  return {
    NumLinks: links.length,
    BlockSize: bytes.length,
    LinksSize: bytes.length - DataSize,
    DataSize,
    CumulativeSize: cumulativeSize({ length: bytes.length, links }),
  };
}
