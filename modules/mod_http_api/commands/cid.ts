/** Conversion and inspection of CIDs. */
import { type CidFormatResult, NodeError, type CodeAndName as Row } from "modhost/node";
import { type Commands, defineGroup, type Option, readCommand, stream, value } from "../rpc/command.ts";
import type { SinceLevel } from "../rpc/levels.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";
import { lines } from "./shapes.ts";

const result = fields("CidFormatRes", { CidStr: "string", Formatted: "string", ErrorMsg: "string" });
type Formatted = ValueOf<typeof result>;
const formatted = stream(result);
const formattedText = ({ CidStr, Formatted, ErrorMsg }: Formatted) =>
  ErrorMsg === "" ? `${Formatted}\n` : `${CidStr}: ${ErrorMsg}\n`;

const cids = [{ name: "cid", required: true, variadic: true, stdin: "lines", help: "The CIDs." }] as const;

async function* shown(results: AsyncIterable<CidFormatResult>): AsyncGenerator<Formatted> {
  for await (const { cidStr, formatted, errorMsg } of results) {
    yield { CidStr: cidStr, Formatted: formatted, ErrorMsg: errorMsg };
  }
}

const codeAndName = fields("CodeAndName", { Code: "int", Name: "string" });
type CodeAndName = ValueOf<typeof codeAndName>;
const listed = value([codeAndName]);
const rows = (list: readonly Row[]) => list.map(({ code, name }) => ({ Code: code, Name: name }));
const tables = { names: "multicodec" } as const;
const supported = {
  type: "bool",
  aliases: ["s"],
  help: "List only those that can be used to make blocks.",
} as const satisfies Option;
const numeric = { type: "bool", help: "Also print the codes." } as const;
const numericKubo043 = { ...numeric, aliases: ["n"] } as const;

/** Returns the names, sorted by their codes. */
const numbered = (list: readonly CodeAndName[], numbers: boolean): string =>
  list
    .toSorted((one, other) => one.Code - other.Code)
    .map(({ Code, Name }) => (numbers ? `${String(Code).padStart(5)}  ${Name}\n` : `${Name}\n`))
    .join("");

/**
 * Orders by the code as a letter, ignoring case; lower case comes before upper case.
 */
const byLetter = (one: CodeAndName, other: CodeAndName): number => {
  const lower = ({ Code }: CodeAndName) => String.fromCharCode(Code).toLowerCase().charCodeAt(0);
  return lower(one) - lower(other) || other.Code - one.Code;
};

/** @param width width of the column of numbers */
const basesText = (list: readonly CodeAndName[], letters: boolean, numbers: boolean, width: number): string =>
  list
    .toSorted(byLetter)
    .map(({ Code, Name }) => {
      const letter = letters ? `${Code < 32 ? " " : String.fromCodePoint(Code)} ` : "";
      const number = numbers ? `${String(Code).padStart(width)} ` : "";
      return `${letter}${number}${letter + number === "" ? "" : " "}${Name}\n`;
    })
    .join("");

export const basesCommand = (
  help: string,
  { later = false, ...dated }: SinceLevel & { readonly later?: boolean } = {},
) =>
  readCommand({
    ...dated,
    help,
    options: { prefix: { type: "bool", help: "Also print the prefix letters." }, numeric },
    returns: listed,
    run: async ({ node }) => rows(await node.cid.bases({ later })),
    text: (list, { options: { prefix, numeric } }) => basesText(list, prefix === true, numeric === true, later ? 7 : 5),
  });

const formatOptions = {
  f: { type: "string", default: "%s", help: "A format string with directives such as %s, %v, %c, %h." },
  v: { type: "string", help: "The version to convert to: 0 or 1." },
  b: { type: "string", help: "The multibase encoding to write in, by name or letter." },
} as const;

/** Returns the facts, one per line. */
function inspectionText(found: ValueOf<typeof inspection>): string {
  const { cid, version, multibase, multicodec, multihash, cidV0, cidV1, errorMsg } = found;
  if (errorMsg !== undefined) throw new NodeError("INVALID_CID", errorMsg);
  const mark = version === 0 ? ", implicit" : "";
  const hex = (code: number) => `0x${code.toString(16)}`;
  const impossible =
    multicodec.name === "dag-pb"
      ? `requires sha2-256 (0x12), got ${multihash.name} (${hex(multihash.code)})`
      : `requires dag-pb (0x70), got ${multicodec.name} (${hex(multicodec.code)})`;
  return lines([
    `CID:        ${cid}`,
    `Version:    ${version}`,
    `Multibase:  ${multibase.name} (${version === 0 ? "implicit" : multibase.prefix})`,
    `Multicodec: ${multicodec.name} (${hex(multicodec.code)}${mark})`,
    `Multihash:  ${multihash.name} (${hex(multihash.code)}${mark})`,
    `  Length:   ${multihash.length} bytes`,
    `  Digest:   ${multihash.digest}`,
    `CIDv0:      ${cidV0 ?? `not possible, ${impossible}`}`,
    `CIDv1:      ${cidV1}`,
  ]);
}

const inspection = fields("CidInspectRes", {
  cid: "string",
  version: "int",
  multibase: fields("Multibase", { prefix: "string", name: "string" }),
  multicodec: fields("Multicodec", { code: "int", name: "string" }),
  multihash: fields("Multihash", { code: "int", name: "string", length: "int", digest: "string" }),
  "cidV0?": "string",
  cidV1: "string",
  "errorMsg?": "string",
});

export const commands = {
  cid: defineGroup({ help: "Convert CIDs, and list encodings, codecs and hash functions." }),
  "cid/base32": readCommand({
    help: "Converts CIDs to version 1 in base32.",
    arguments: cids,
    returns: formatted,
    run: ({ node, arguments: { cid } }) => shown(node.cid.base32(cid)),
    text: formattedText,
  }),
  "cid/bases": basesCommand("Lists the multibase encodings."),
  "cid/codecs": readCommand({
    help: "Lists the content codecs.",
    options: { numeric },
    returns: listed,
    run: async ({ node }) => rows(await node.cid.codecs()),
    text: (list, { options }) => numbered(list, options.numeric === true),
  }),
  "cid/format": readCommand({
    help: "Converts CIDs to another version, codec, multibase or format.",
    arguments: cids,
    options: {
      ...formatOptions,
      codec: { type: "string", help: "The codec to convert to, by name." },
    },
    returns: formatted,
    run: ({ node, arguments: { cid }, options: { f, v, codec, b } }) => shown(node.cid.format(cid, { f, v, codec, b })),
    text: formattedText,
  }),
  "cid/inspect": readCommand({
    help: "Shows the parts of a CID.",
    since: "0.43",
    arguments: [{ name: "cid", required: true, stdin: "first", help: "The CID." }],
    returns: value(inspection),
    run: ({ node, arguments: { cid } }) => node.cid.inspect(cid),
    text: inspectionText,
  }),
  "cid/hashes": readCommand({
    help: "Lists the hash functions.",
    options: { numeric },
    returns: listed,
    run: async ({ node }) => rows(await node.cid.hashes()),
    text: (list, { options }) => numbered(list, options.numeric === true),
  }),
} satisfies Commands;

export const kubo043 = {
  "cid/bases": basesCommand("Lists the multibase encodings.", { later: true }),
  "cid/codecs": readCommand({
    help: "Lists the content codecs.",
    options: { numeric: numericKubo043, supported },
    returns: listed,
    run: async ({ node, options }) => rows(await node.cid.codecs({ ...tables, supported: options.supported })),
    text: (list, { options }) => numbered(list, options.numeric === true),
  }),
  "cid/format": readCommand({
    help: "Converts CIDs to another version, codec, multibase or format.",
    arguments: cids,
    options: {
      ...formatOptions,
      mc: { type: "string", help: "The codec to convert to, by its name in the multicodec table or its number." },
    },
    returns: formatted,
    run: ({ node, arguments: { cid }, options: { f, v, mc: codec, b } }) =>
      shown(node.cid.format(cid, { f, v, codec, b, ...tables })),
    text: formattedText,
  }),
  "cid/hashes": readCommand({
    help: "Lists the hash functions.",
    options: { numeric: numericKubo043, supported },
    returns: listed,
    run: async ({ node }) => rows(await node.cid.hashes(tables)),
    text: (list, { options }) => numbered(list, options.numeric === true),
  }),
} satisfies Commands;
