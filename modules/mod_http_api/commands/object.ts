/** `object`: dag-pb nodes. `dag` has replaced these commands. */
import {
  type ByteSource,
  type DagPbLink,
  encodeDagPb,
  failure,
  GoText,
  type ObjectEdit,
  parseCid,
  printable,
  quote,
  type StoredObject,
  sizeText,
  type WriteCid,
} from "modhost/node";
import { columns } from "../rpc/columns.ts";
import {
  type AnyCall,
  type Argument,
  type ArgumentValues,
  bytes,
  type Command,
  type Commands,
  defineGroup,
  type Option,
  type Options,
  type OptionValues,
  raw,
  readCommand,
  value,
  writeCommand,
} from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { human, verbose } from "./shapes.ts";

const objectLink = fields("Link", { Name: "string", Hash: "string", Size: "uint64" });
/** `Links` is omitted where go-ipfs omits it. */
const hashed = fields("Object", { "Hash?": "string", "Links?": [objectLink] });
const object = value(hashed);

const key = [{ name: "key", path: true, required: true, stdin: "first", help: "The node." }] as const;
const root = { name: "root", path: true, required: true, help: "The node to start from." } as const;
const link = (help: string) => ({ name: "name", required: true, help }) as const;

const dataEncoding = {
  type: "string",
  default: "text",
  help: "Encoding of the data in JSON: `text` or `base64`.",
} as const satisfies Option;

type HashedObject = ValueOf<typeof hashed>;

const hashLine = ({ Hash }: HashedObject): string => `${Hash}\n`;

const linkLines = (links: readonly DagPbLink[], write: WriteCid): ValueOf<typeof objectLink>[] =>
  links.map(({ Name = "", Hash, Tsize = 0 }) => ({ Name, Hash: write(Hash), Size: Tsize }));

const shapeOf = ({ cid, links }: StoredObject, write: WriteCid = String): HashedObject => ({
  Hash: write(cid),
  Links: linkLines(links, write),
});

const patch = defineGroup({
  help: "Create a changed copy of a node.",
  deprecated: true,
  options: {
    "allow-big-block": { type: "bool", since: "0.43", help: "Allow nodes that are too big to exchange with peers." },
  },
});

type PatchCall = Pick<AnyCall, "node" | "signal" | "offline" | "level"> & {
  readonly options: OptionValues<typeof patch.options>;
};

const patching = ({ options, level, signal, offline }: Omit<PatchCall, "node">) => ({
  maxBlock: options["allow-big-block"] === true ? undefined : level.maxBlock,
  signal,
  offline,
});

const patchData = (help: string, change: (data: ByteSource) => ObjectEdit): Command =>
  writeCommand({
    group: patch,
    help,
    deprecated: true,
    arguments: [root],
    file: { name: "data", required: true, help: "The bytes." },
    returns: object,
    async run(call) {
      const { body } = await call.files.one();
      return shapeOf(await call.node.object.edit(call.arguments.root, change(body), patching(call)));
    },
    text: hashLine,
  });

const addLink = {
  group: patch,
  help: "Adds or replaces a link.",
  deprecated: true,
  arguments: [
    root,
    link("Name of the link, or a path."),
    { name: "ref", path: true, required: true, help: "The node that the link leads to." },
  ],
  options: { create: { type: "bool", aliases: ["p"], help: "Create missing directories on the path." } },
  returns: object,
  text: hashLine,
} as const;

const rmLink = {
  group: patch,
  help: "Removes a link.",
  deprecated: true,
  arguments: [root, link("Name of the link, or a path.")],
  returns: object,
  text: hashLine,
} as const;

type EditCall<A extends readonly Argument[]> = PatchCall & {
  readonly arguments: ArgumentValues<A>;
};

async function linked(
  call: EditCall<typeof addLink.arguments> & { readonly options: OptionValues<typeof addLink.options> },
  onlyDirectories = false,
): Promise<StoredObject> {
  const { root, name, ref } = call.arguments;
  const change = { addLink: name, target: ref, create: call.options.create };
  return call.node.object.edit(root, change, { ...patching(call), onlyDirectories });
}

async function unlinked(call: EditCall<typeof rmLink.arguments>, onlyDirectories = false): Promise<StoredObject> {
  const { root, name } = call.arguments;
  return call.node.object.edit(root, { rmLink: name }, { ...patching(call), onlyDirectories });
}

const anyNode = {
  "allow-non-unixfs": { type: "bool", help: "Also change nodes that are not plain UnixFS directories." },
} as const satisfies Options;

const changeTypes = { added: 0, removed: 1, changed: 2 } as const;

export const commands = {
  object: defineGroup({ help: "Work with dag-pb nodes; use `dag` and `files` instead.", deprecated: true }),
  "object/data": readCommand({
    help: "Returns the data of a node.",
    readOnly: true,
    deprecated: true,
    arguments: key,
    returns: raw,
    async run({ node, arguments: { key }, signal, offline }) {
      return bytes(await node.object.data(key, { signal, offline }));
    },
  }),
  "object/diff": readCommand({
    help: "Shows the links in which two DAGs differ.",
    arguments: [
      { name: "obj_a", path: true, required: true, help: "The first object." },
      { name: "obj_b", path: true, required: true, help: "The second object." },
    ],
    options: { verbose: verbose("Print more words.") },
    returns: value(
      fields("Changes", {
        Changes: [fields("Change", { Type: "int", Path: "string", Before: nullable("link"), After: nullable("link") })],
      }),
    ),
    async run({ node, arguments: { obj_a, obj_b }, signal, offline }) {
      const changes = await node.object.diff(obj_a, obj_b, { signal, offline });
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
  "object/get": readCommand({
    help: "Returns a node with its links and data.",
    readOnly: true,
    deprecated: true,
    arguments: key,
    options: { "data-encoding": dataEncoding },
    returns: value(fields("Node", { Links: [objectLink], Data: "bytes" })),
    async run({ node, arguments: { key }, options: { "data-encoding": encoding }, signal, offline, cidText }) {
      const write = cidText("kept");
      const { Links, Data } = await node.object.get(key, { signal, offline });
      if (encoding !== "text" && encoding !== "base64")
        throw failure("OPTION_INVALID", { reason: "unknown data field encoding" });
      const text = encoding === "text" ? Data : Buffer.from(Buffer.from(Data).toString("base64"));
      return { Links: linkLines(Links, write), Data: new GoText(text) };
    },
    encodings: {
      protobuf: {
        type: "application/protobuf",
        encode: ({ Links, Data: { bytes } }) =>
          encodeDagPb({
            ...(bytes.length > 0 && { Data: bytes }),
            Links: Links.map(({ Name, Hash, Size }) => ({ Name, Hash: parseCid(Hash), Tsize: Number(Size) })),
          }),
      },
    },
  }),
  "object/links": readCommand({
    help: "Lists the links of a node.",
    readOnly: true,
    deprecated: true,
    arguments: key,
    options: { headers: { type: "bool", aliases: ["v"], help: "Print column headings." } },
    returns: object,
    async run({ node, arguments: { key }, signal, offline, cidText }) {
      const { cid, links } = await node.object.linksOf(key, { signal, offline });
      const { Links, Hash } = shapeOf({ cid, links }, cidText("kept"));
      return links.length === 0 ? { Hash } : { Hash, Links };
    },
    text({ Links = [] }, { options: { headers } }) {
      const lines = Links.map(({ Hash, Size, Name }) => [Hash, String(Size), printable(Name)]);
      return columns(headers === true ? [["Hash", "Size", "Name"], ...lines] : lines, 2);
    },
  }),
  "object/new": writeCommand({
    help: "Creates a node from a template.",
    deprecated: true,
    arguments: [{ name: "template", help: "`unixfs-dir` for an empty directory; by default an empty node." }],
    returns: object,
    async run({ node, arguments: { template = "" }, given, signal, offline, cidText }) {
      const write = cidText("kept");
      const cid = await node.object.new({ template: given.length === 1 ? template : "empty", signal, offline });
      return shapeOf({ cid, links: [] }, write);
    },
    text: hashLine,
  }),
  "object/patch": patch,
  "object/patch/add-link": writeCommand({ ...addLink, run: async (call) => shapeOf(await linked(call)) }),
  "object/patch/append-data": patchData("Appends to the data.", (data) => ({ appendData: data })),
  "object/patch/rm-link": writeCommand({ ...rmLink, run: async (call) => shapeOf(await unlinked(call)) }),
  "object/patch/set-data": patchData("Replaces the data.", (data) => ({ setData: data })),
  "object/put": writeCommand({
    help: "Stores a node.",
    deprecated: true,
    options: {
      inputenc: { type: "string", default: "json", help: "Encoding of the input: `json`, `protobuf` or `xml`." },
      datafieldenc: dataEncoding,
      pin: { type: "bool", help: "Pin the node." },
      quiet: { type: "bool", aliases: ["q"], help: "Print less." },
    },
    file: { name: "data", required: true, help: "The node." },
    returns: object,
    async run({ node, files, options: { inputenc, datafieldenc, pin }, signal, offline, cidText }) {
      const write = cidText("kept");
      const { body } = await files.one();
      return shapeOf(await node.object.import(body, { inputenc, datafieldenc, pin, signal, offline }), write);
    },
    text: ({ Hash }, { options: { quiet } }) => (quiet === true ? `${Hash}\n` : `added ${Hash}\n`),
  }),
  "object/stat": readCommand({
    help: "Shows the sizes of a node.",
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
    async run({ node, arguments: { key }, signal, offline, cidText }) {
      const write = cidText("kept");
      const { Hash, ...sizes } = await node.object.stat(key, { signal, offline });
      return { Hash: write(Hash), ...sizes };
    },
    text({ Hash: _, ...sizes }, { options: { human } }) {
      const lines = Object.entries(sizes).map(([name, size]) => {
        return [`${name}:`, human === true && name === "CumulativeSize" ? sizeText(size) : String(size)];
      });
      return columns(lines, 0);
    },
  }),
} satisfies Commands;

export const kubo043 = {
  "object/patch/add-link": writeCommand({
    ...addLink,
    options: { ...addLink.options, ...anyNode },
    async run(call) {
      const write = call.cidText();
      return { Hash: write((await linked(call, call.options["allow-non-unixfs"] !== true)).cid) };
    },
  }),
  "object/patch/rm-link": writeCommand({
    ...rmLink,
    options: anyNode,
    async run(call) {
      const write = call.cidText();
      return { Hash: write((await unlinked(call, call.options["allow-non-unixfs"] !== true)).cid) };
    },
  }),
} satisfies Commands;
