/** CIDs as text. */
import type { CidFormatResult, CodeAndName as Row } from "modhost/node";
import { type Commands, defineGroup, readCommand, stream, value } from "../rpc/command.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";

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
const numeric = { type: "bool", help: "Also print the numbers." } as const;

/** Names sorted by their codes. */
const numbered = (list: readonly CodeAndName[], numbers: boolean): string =>
  list
    .toSorted((one, other) => one.Code - other.Code)
    .map(({ Code, Name }) => (numbers ? `${String(Code).padStart(5)}  ${Name}\n` : `${Name}\n`))
    .join("");

/** Orders by the code as a letter, ignoring case; the lower-case one of two equal letters comes first. */
const byLetter = (one: CodeAndName, other: CodeAndName): number => {
  const lower = ({ Code }: CodeAndName) => String.fromCharCode(Code).toLowerCase().charCodeAt(0);
  return lower(one) - lower(other) || other.Code - one.Code;
};

export const commands = {
  cid: defineGroup({ help: "Convert CIDs, and list what they are made of." }),
  "cid/base32": readCommand({
    help: "Converts CIDs to version 1 in base32.",
    arguments: cids,
    returns: formatted,
    run: ({ node, arguments: { cid } }) => shown(node.cid.base32(cid)),
    text: formattedText,
  }),
  "cid/bases": readCommand({
    help: "Lists the multibase encodings.",
    options: { prefix: { type: "bool", help: "Also print the prefix letters." }, numeric },
    returns: listed,
    run: async ({ node }) => rows(await node.cid.bases()),
    text: (list, { options }) =>
      list
        .toSorted(byLetter)
        .map(({ Code, Name }) => {
          const letter = options.prefix === true ? `${Code < 32 ? " " : String.fromCharCode(Code)} ` : "";
          const number = options.numeric === true ? `${String(Code).padStart(5)} ` : "";
          return `${letter}${number}${letter + number === "" ? "" : " "}${Name}\n`;
        })
        .join(""),
  }),
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
      f: { type: "string", default: "%s", help: "A format string with directives such as %s, %v, %c, %h." },
      v: { type: "string", help: "The version to convert to: 0 or 1." },
      codec: { type: "string", help: "The codec to convert to, by name." },
      b: { type: "string", help: "The multibase encoding to write in, by name or letter." },
    },
    returns: formatted,
    run: ({ node, arguments: { cid }, options: { f, v, codec, b } }) => shown(node.cid.format(cid, { f, v, codec, b })),
    text: formattedText,
  }),
  "cid/hashes": readCommand({
    help: "Lists the hash functions.",
    options: { numeric },
    returns: listed,
    run: async ({ node }) => rows(await node.cid.hashes()),
    text: (list, { options }) => numbered(list, options.numeric === true),
  }),
} satisfies Commands;
