/** `docs/reference/options.md`: a table for each owner of options. */
import { allowedText } from "#core/config/index.ts";
import type { OptionDeclaration } from "#core/types.ts";
import { code, page, table } from "./markdown.ts";
import type { Section } from "./sections.ts";

export function optionsPage(all: readonly Section[]): string {
  const tables = all.map(({ owner, options }) => {
    const rows = Object.entries(options).map(([name, option]) => [
      code(name),
      option.describe + marks(option),
      allowedText(option),
      option.default === undefined ? "" : code(JSON.stringify(option.default)),
      option.per_host === false ? "" : "yes",
      owner === "core" && option.applies === undefined ? "applies from then on" : changes[option.applies ?? "exchange"],
    ]);
    const own = `## ${owner}\n\n${table(["Option", "Meaning", "Takes", "Default", "Per host", "A change"], rows)}`;
    return [own, ...Object.entries(options).flatMap(fieldsTable)].join("\n\n");
  });
  return page("Options", "the declarations of the options", [introduction, ...tables]);
}

/** The fields of an option that is an object with fields of its own. */
function fieldsTable([name, { fields }]: readonly [string, OptionDeclaration]): readonly string[] {
  if (fields === undefined) return [];
  const rows = Object.entries(fields).map(([field, option]) => [
    code(field),
    option.describe + marks({ ...option, required: option.required !== false && option.default === undefined }),
    allowedText(option),
    option.default === undefined ? "" : code(JSON.stringify(option.default)),
  ]);
  return [`Fields of \`${name}\`:`, table(["Field", "Meaning", "Takes", "Default"], rows)];
}

/** What becomes of a change while the server runs. */
const changes = { live: "applies at once", start: "waits for the next start", exchange: "exchanges the module" };

const marks = ({ required, secret }: OptionDeclaration): string =>
  `${required === true ? " Required." : ""}${secret === undefined ? "" : " Secret: shown in no log and no message."}`;

const introduction = `The configuration is the file named with \`--config\`, or the first one found of
\`modhost.config.{ts,js,mjs,cjs,json,yaml,yml}\`, \`.modhostrc\`, \`.modhostrc.{ts,js,mjs,cjs,json,yaml,yml}\` and the key
\`modhost\` of \`package.json\`, in the current folder and those above it up to the nearest one with a \`package.json\`.
Without any, the host serves \`./data/modules\` and \`./data/www\`. A script exports an object, a function that returns
one, or a promise of one.

A variable \`MODHOST_<OPTION IN CAPITALS>\` wins over the file: \`MODHOST_HTTP_PORTS=8080,8081\`,
\`MODHOST_HTTP_PATHS='{"hello":"/"}'\`. Objects are written as JSON, lists as JSON or separated by commas.

Paths count from the folder of the config file. Periods are seconds or text: \`500ms\`, \`90s\`, \`10m\`, \`2h\`, \`1d\`, \`1w\`.
Sizes are bytes or text: \`500kB\`, \`10MB\` (powers of 1000), \`64KiB\`, \`1GiB\` (powers of 1024).
A single value stands for a list of one. \`null\` is the same as not set. A wrong value stops the start with its path; an
unknown name is a warning with the nearest known one, and stops the start where that decides who gets in; names that begin
with \`$\` are yours. An option marked "per host" may also stand in an entry of \`hosts\`,
where it wins over the server's. \`modhost check\` tells whether a configuration is valid, and tries its paths and ports.

The last column tells what a [reload of the configuration](../guides/operate/configure.md#change-the-configuration-while-it-runs)
makes of another value. Where it exchanges the module, those are all modules that have read the option, as in a reload of
each, and those that depend on them. What applies from then on concerns what the host itself loads, starts or counts after it.

A required option without a value keeps its module from loading; the others go on. The values of secret options are
masked in messages, in the log and in what \`modhost check\` prints.
`;
