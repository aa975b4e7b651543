/**
 * Generates `docs/reference/rpc/`: the commands of the RPC API, a page for each group, from their
 * table.
 */
import {
  type Argument,
  type Command,
  type CommandNode,
  type FileArgument,
  isCommand,
  type Option,
} from "#modules/mod_http_api/rpc/command.ts";
import type { SinceLevel } from "#modules/mod_http_api/rpc/levels.ts";
import type { Scalar, Shape } from "#modules/mod_http_api/rpc/shape.ts";
import type { Table } from "#modules/mod_http_api/rpc/table.ts";
import { anchor, code, page, prose, table as rows } from "./markdown.ts";

const source = "the declarations of the commands";

/**
 * Returns the pages: name to text. Commands that came with level 0.43 are served at both levels and
 * are listed with the others. Differences at level 0.43 follow the description of the command at
 * level 0.9.
 */
export function rpcPages(table: Table): Map<string, string> {
  const { root } = table;
  const laterTable = table.at("0.43");
  const tops = [...root.children.values()].sort(byPath);
  const groups = tops.filter(({ children }) => children.size > 0);
  const singles = tops.filter(({ children }) => children.size === 0);
  const pages = new Map<string, string>();
  const index = [...groups.map((top) => [top.name, [top]] as const), ["single", singles] as const];
  pages.set(
    "README.md",
    page("Commands of the RPC API", source, [
      introduction,
      ...index.map(([name, nodes]) => `## ${titleOf(name)}\n\n${commandTable(name, nodes.flatMap(documented))}`),
      `## Options of every command\n\n${optionTable(root.entry.options)}`,
      responses,
    ]),
  );
  for (const [name, nodes] of index) {
    const [first] = nodes;
    const about =
      name === "single" || first === undefined || isCommand(first.entry)
        ? []
        : [first.entry.help, first.entry.about ?? ""];
    pages.set(
      `${name}.md`,
      page(titleOf(name), source, [
        ...about.filter((text) => text !== "").map(prose),
        ...nodes.flatMap(documented).map((each) => section(each, laterTable)),
      ]),
    );
  }
  return pages;
}

const introduction = `For developers of clients: the commands of the RPC API. A call is \`POST /api/v0/<command>\`, or \`modhost rpc <command>\` on the command line.
A running host describes all commands, as OpenAPI 3.1, at \`GET /api/openapi.json\`.

- **Arguments** are \`arg\` in the query, repeated in their order.
- **Options** are query parameters, by any of their names. A flag (\`bool\`) without a value is true. A repeatable option (\`list\`) is
  given once for each value.
- **Files** are the parts of a \`multipart/form-data\` body. The file name of a part is its path, with \`/\` written as \`%2F\`. Parts of the
  type \`application/x-directory\` are folders, and those of \`application/symlink\` are links.
- **Arguments in the body**: if an argument may come from the body, each line of the first part is one value.

The column "Effect" is for the scopes of [tokens](../../guides/operate/tokens.md). \`read\` changes nothing, but may fetch and store the requested
content. \`write\` changes content or settings of the node, acts for others, ends the node, runs a program, or returns a private key.

"Since 0.43" marks what Kubo 0.43 has added. It works at the level 0.9 as well. If a command behaves differently with
\`api_level: "0.43"\`, its section says so at its end.`;

const responses = `## Responses

${rows(
  ["Response", "Form"],
  [
    ["one value", "`application/json`, one JSON value and a line feed"],
    ["values", "`application/json` with `X-Chunked-Output: 1`, a JSON value per line, as they are found"],
    ["bytes", "`text/plain` with `X-Stream-Output: 1`"],
    ["nothing", "an empty body with `X-Chunked-Output: 1`"],
  ],
)}

With \`encoding=text\` values have the form that the command line prints.

A failure is \`{"Message": "…", "Code": 0, "Type": "error"}\` with status 500, or 400 and \`Code\` 1 if the call is invalid. A failure after
the first value ends the response, and its text is in the trailer \`X-Stream-Error\`. A call that cannot be parsed gets 400 and plain
text, and a caller without access gets 403.`;

const byPath = (one: CommandNode, other: CommandNode) => (one.path < other.path ? -1 : 1);
const titleOf = (name: string) => (name === "single" ? "Commands without a group" : `Commands of ${name}`);

interface Documented {
  readonly path: string;
  readonly command: Command;
}

/** Returns the commands at and below a node of the tree. */
function documented(node: CommandNode): Documented[] {
  const own = isCommand(node.entry) ? [{ path: node.path, command: node.entry }] : [];
  const below = [...node.children.values()].sort(byPath);
  return [...own, ...below.flatMap(documented)];
}

function commandTable(name: string, commands: readonly Documented[]): string {
  return rows(
    ["Command", "", "Effect"],
    commands.map(({ path, command }) => [
      `[${code(path)}](${name}.md#${anchor(path)})`,
      `${command.help}${marks(command)}`,
      command.effect,
    ]),
  );
}

const marks = ({ experimental, deprecated, since }: Pick<Option, "experimental" | "deprecated"> & SinceLevel) =>
  `${since === undefined ? "" : ` Since ${since}.`}${experimental === true ? " Experimental." : ""}${deprecated === true ? " Deprecated." : ""}`;

function section({ path, command }: Documented, laterTable: Table): string {
  const { arguments: declared, file } = command;
  const options = optionsOf(command);
  const shown = Object.values(options).some(({ hidden }) => hidden !== true);
  const parts = [
    `## ${path}`,
    `${prose(command.help)}${marks(command)}${command.readOnly === true ? " The read-only port serves it, too." : ""}`,
    ...(command.about === undefined ? [] : [prose(command.about)]),
    ...(command.needs === undefined ? [] : [switchOf(command.needs)]),
    `\`\`\`sh\n${curlLine(path, command)}\n${programLine(path, command)}\n\`\`\``,
    ...(declared.length > 0 ? [argumentTable(declared)] : []),
    ...(shown ? [optionTable(options)] : []),
    ...(file === undefined ? [] : [bodyOf(file)]),
    responseOf(command),
    ...differences(path, command, laterTable),
  ];
  return parts.join("\n\n");
}

const optionsOf = ({ options, group }: Command) => ({ ...options, ...group?.options });

/** Describes how a command differs at level 0.43. */
function differences(path: string, command: Command, laterTable: Table): string[] {
  const { level } = laterTable;
  const gone = Object.entries(level.removed).find(([above]) => path === above || path.startsWith(`${above}/`));
  if (gone !== undefined) {
    const [, text] = gone;
    return [`At the level 0.43 it does not exist: ${text === undefined ? "404" : `the failure ${code(text)}`}.`];
  }
  const entry = laterTable.node(path)?.entry;
  if (entry === undefined || !isCommand(entry)) return [];
  const differs = (part: (of: Command) => string) => part(entry) !== part(command);
  // The level that an option is available since is no difference.
  const [before, after] = [command, entry].map((each) =>
    optionRows(optionsOf(each)).map((row) => row.map((text) => text.replace(/ Since [\d.]+\d\./, ""))),
  );
  const known = new Map(before?.map((row) => [row[0], row.join()]));
  const changed = (after ?? []).filter((row) => known.get(row[0]) !== row.join());
  const left = (before ?? []).filter(([name]) => after?.every((row) => row[0] !== name));
  const parts = [
    ...(differs(({ help }) => help) ? [prose(entry.help)] : []),
    ...(differs(({ arguments: all }) => argumentTable(all)) ? [argumentTable(entry.arguments)] : []),
    ...(changed.length > 0 ? [rows(OPTION_HEAD, changed)] : []),
    ...(left.length > 0 ? [`Without the options ${left.map(([name]) => name).join(", ")}.`] : []),
    ...(differs(bodyText) ? [bodyText(entry)] : []),
    ...(differs(responseOf) ? [responseOf(entry)] : []),
  ];
  return parts.length === 0 ? [] : ["**At level 0.43:**", ...parts];
}

const bodyText = ({ file }: Command) => (file === undefined ? "No body." : bodyOf(file));

const switchOf = (key: string) =>
  `Needs ${code(key)} of [the node's configuration](../node-config.md): ${code(`modhost rpc config --bool ${key} true`)}.`;

/** Returns a curl command with the required arguments only. */
function curlLine(path: string, { arguments: declared, file, returns, example = {} }: Command): string {
  const required = declared.filter(({ required }) => required === true).map(({ name }) => `arg=<${name}>`);
  const given = [...required, ...Object.entries(example).map(([name, value]) => `${name}=${value}`)];
  const upload =
    file === undefined ? "" : ` -F file=@${file.many === true ? "FILE" : file.name.replaceAll(" ", "-").toUpperCase()}`;
  const output = returns.form === "bytes" ? " -o OUTPUT" : "";
  return `curl -X POST${upload}${output} "http://127.0.0.1:5280/api/v0/${path}${given.length === 0 ? "" : `?${given.join("&")}`}"`;
}

function programLine(path: string, { arguments: declared, file, example = {} }: Command): string {
  const words = [...declared, ...(file === undefined ? [] : [{ ...file, variadic: file.many }])];
  const shown = words.map(({ name, required, variadic }) => {
    const word = `${name.toUpperCase().replaceAll(/\W/g, "-")}${variadic === true ? "..." : ""}`;
    return required === true || `<${name}>` === example.arg ? word : `[${word}]`;
  });
  const options = Object.entries(example).filter(([name]) => name !== "arg");
  const flags = options.map(([name, value]) =>
    value === "true" ? `--${name}` : `--${name} ${value.replaceAll(/[<>]/g, "").toUpperCase()}`,
  );
  return ["modhost rpc", ...path.split("/"), ...flags, ...shown].join(" ");
}

function argumentTable(declared: readonly Argument[]): string {
  return rows(
    ["Argument", "", "Meaning"],
    declared.map(({ name, help, required, variadic, stdin, default: preset }) => {
      const body = stdin === "lines" ? "also from the body" : stdin === "first" ? "or from the body" : "";
      const traits = [
        required === true ? "required" : preset === undefined ? "optional" : `default ${code(preset)}`,
        variadic === true ? "repeatable" : "",
        body,
      ];
      return [code(name), traits.filter((trait) => trait !== "").join(", "), prose(help)];
    }),
  );
}

const OPTION_HEAD = ["Option", "Type", "Default", "Meaning"];

const optionTable = (options: Readonly<Record<string, Option>>): string => rows(OPTION_HEAD, optionRows(options));

function optionRows(options: Readonly<Record<string, Option>>): string[][] {
  return Object.entries(options)
    .filter(([, { hidden }]) => hidden !== true)
    .map(([name, option]) => {
      const { aliases = [], type, help, default: preset } = option;
      const text = preset === undefined ? "" : typeof preset === "string" ? preset : JSON.stringify(preset);
      return [
        [name, ...aliases].map(code).join(", "),
        type,
        preset === "" ? "empty" : code(text.replaceAll("\n", "\\n")),
        `${prose(help)}${marks(option)}`,
      ];
    });
}

function bodyOf({ name, help, required, many }: FileArgument): string {
  return `Body: ${code(name)} (${many === true ? "files and folders" : "a file"}, ${required === true ? "required" : "optional"}). ${prose(help)}`;
}

function responseOf({ returns, encodings }: Command): string {
  const more = Object.keys(encodings).map(code).join(", ");
  const encoded = more === "" ? "" : `\n\nOther encodings: ${more}.`;
  return `${resultText(returns)}${encoded}`;
}

function resultText({ form, shape }: Command["returns"]): string {
  if (form === "nothing") return "The response is empty.";
  if (form === "bytes") return "The response is bytes.";
  const value = exampleOf(shape);
  const left = optionalNames(shape, "");
  const optional = left.length === 0 ? "" : `\n\nOmitted when empty: ${left.map(code).join(", ")}.`;
  const block = (text: string) => `\`\`\`json\n${text}\n\`\`\``;
  return form === "stream"
    ? `The response is a sequence of values such as\n\n${block(JSON.stringify(value))}${optional}`
    : `The response is one value such as\n\n${block(JSON.stringify(value, null, 2))}${optional}`;
}

const cid = "QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN";
const peer = "12D3KooWDNUXmH5LKRK2GBsmZ7TDGEXqHTLyjuSEdSgq9pbJWQJp";

/** Example texts by the name of their field. */
const texts: Readonly<Record<string, string>> = {
  ...Object.fromEntries(["Hash", "Cid", "CidStr", "Ref", "Key"].map((name) => [name, cid])),
  ...Object.fromEntries(["Peer", "ID", "Id", "Peers"].map((name) => [name, peer])),
  ...Object.fromEntries(["Addr", "Addrs", "Addresses"].map((name) => [name, "/ip4/127.0.0.1/tcp/4001"])),
  Path: `/ipfs/${cid}`,
  Pins: cid,
  Err: "",
  Error: "",
  ErrorMsg: "",
};

const scalars: Readonly<Record<Scalar, unknown>> = {
  string: "…",
  bool: true,
  int: 1,
  int32: 1,
  int64: 1,
  uint: 1,
  uint64: 1,
  float64: 0.5,
  time: "2026-01-02T03:04:05Z",
  duration: 1_500_000,
  base64: "aGVsbG8=",
  bytes: "…",
  link: { "/": cid },
  any: "…",
};

function exampleOf(shape: Shape, name = ""): unknown {
  if (typeof shape === "string") return shape === "string" ? (texts[name] ?? scalars.string) : scalars[shape];
  if (!("kind" in shape)) return [exampleOf(shape[0], name)];
  if (shape.kind === "map") return { "…": exampleOf(shape.of, name) };
  if (shape.kind === "nullable") return exampleOf(shape.of, name);
  return Object.fromEntries(Object.entries(shape.fields).map(([field, of]) => [field, exampleOf(of, field)]));
}

function optionalNames(shape: Shape, where: string): string[] {
  if (typeof shape === "string") return [];
  if (!("kind" in shape)) return optionalNames(shape[0], where);
  if (shape.kind !== "fields") return optionalNames(shape.of, where);
  return shape.optional
    .map((name) => `${where}${name}`)
    .concat(Object.entries(shape.fields).flatMap(([name, of]) => optionalNames(of, `${where}${name}.`)));
}
