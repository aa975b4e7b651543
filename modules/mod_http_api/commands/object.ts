/** Nodes of the codec dag-pb, as they were handled before `dag`. */
import { type Argument, defineGroup, type Option, raw, value } from "../command.ts";
import { fields } from "../shape.ts";
import { type Later, later } from "./later.ts";
import { human, verbose } from "./shapes.ts";

const links = [fields("Link", { Name: "string", Hash: "string", Size: "uint64" })] as const;
/** `Links` is left out where the reference leaves it out. */
const object = value(fields("Object", { "Hash?": "string", "Links?": links }));

const key: readonly Argument[] = [{ name: "key", required: true, stdin: "first", help: "The node." }];
const root: Argument = { name: "root", required: true, help: "The node to start from." };
const link = (help: string): Argument => ({ name: "name", required: true, help });

const dataEncoding: Option = {
  type: "string",
  default: "text",
  help: "How the data is written in JSON: `text` or `base64`.",
};

const patch = (help: string): Later => ({
  help,
  deprecated: true,
  arguments: [root],
  file: { name: "data", required: true, help: "The bytes." },
  returns: object,
});

export const commands = later({
  object: defineGroup({ help: "Work with dag-pb nodes; `dag` and `files` have taken its place.", deprecated: true }),
  "object/data": {
    help: "Gives the data of a node.",
    readOnly: true,
    deprecated: true,
    arguments: key,
    returns: raw,
  },
  "object/diff": {
    help: "Tells in which links two trees differ.",
    arguments: [
      { name: "obj_a", required: true, help: "The one." },
      { name: "obj_b", required: true, help: "The other." },
    ],
    options: { verbose: verbose("Print more words.") },
    returns: value(
      fields("Changes", {
        Changes: [fields("Change", { Type: "int", Path: "string", Before: "link", After: "link" })],
      }),
    ),
  },
  "object/get": {
    help: "Gives a node with its links and data.",
    readOnly: true,
    deprecated: true,
    arguments: key,
    options: { "data-encoding": dataEncoding },
    returns: value(fields("Node", { Links: links, Data: "string" })),
  },
  "object/links": {
    help: "Lists the links of a node.",
    readOnly: true,
    deprecated: true,
    arguments: key,
    options: { headers: { type: "bool", aliases: ["v"], help: "Print a heading." } },
    returns: object,
  },
  "object/new": {
    help: "Makes a node from a template.",
    deprecated: true,
    arguments: [{ name: "template", help: "`unixfs-dir` for an empty directory; by default an empty node." }],
    returns: object,
  },
  "object/patch": defineGroup({ help: "Make a changed copy of a node.", deprecated: true }),
  "object/patch/add-link": {
    help: "Adds or replaces a link.",
    deprecated: true,
    arguments: [
      root,
      link("Name of the link, or a path."),
      { name: "ref", required: true, help: "The node that the link leads to." },
    ],
    options: { create: { type: "bool", aliases: ["p"], help: "Make what is missing on the path." } },
    returns: object,
  },
  "object/patch/append-data": patch("Appends to the data."),
  "object/patch/rm-link": {
    help: "Removes a link.",
    deprecated: true,
    arguments: [root, link("Name of the link, or a path.")],
    returns: object,
  },
  "object/patch/set-data": patch("Replaces the data."),
  "object/put": {
    help: "Stores a node.",
    deprecated: true,
    options: {
      inputenc: { type: "string", default: "json", help: "Form of the input: `json` or `protobuf`." },
      datafieldenc: dataEncoding,
      pin: { type: "bool", help: "Pin the node." },
      quiet: { type: "bool", aliases: ["q"], help: "Print less." },
    },
    file: { name: "data", required: true, help: "The node." },
    returns: object,
  },
  "object/stat": {
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
  },
});
