/** Generates `docs/reference/options.md`: a table for each owner of options. */
import { allowedText } from "#core/config/index.ts";
import type { OptionDeclaration } from "#core/types.ts";
import { code, page, table } from "./markdown.ts";
import type { OptionSection } from "./sections.ts";

export function optionsPage(all: readonly OptionSection[]): string {
  const tables = all.map(({ owner, options }) => {
    const rows = Object.entries(options).map(([name, option]) => [
      code(name),
      option.describe + marks(option),
      allowedText(option),
      option.default === undefined ? "" : code(JSON.stringify(option.default)),
      option.per_host === false ? "" : "yes",
      owner === "core" && option.applies === undefined ? "applies from then on" : changes[option.applies ?? "exchange"],
    ]);
    const own = `## ${owner}\n\n${table(["Option", "Meaning", "Values", "Default", "Per host", "A change"], rows)}`;
    return [own, ...Object.entries(options).flatMap(([name, option]) => fieldsTables(name, option))].join("\n\n");
  });
  return page("Options", "the declarations of the options", [introduction, ...tables]);
}

/**
 * Returns tables with the fields of an option that is an object: its own fields, or those of its
 * entries.
 */
function fieldsTables(name: string, { fields: own, entries }: OptionDeclaration): readonly string[] {
  const fields = own ?? entries;
  if (fields === undefined) return [];
  const path = own === undefined ? `${name}.NAME` : name;
  const rows = Object.entries(fields).map(([field, option]) => [
    code(field),
    option.describe + marks({ ...option, required: option.required !== false && option.default === undefined }),
    allowedText(option),
    option.default === undefined ? "" : code(JSON.stringify(option.default)),
  ]);
  return [
    `Fields of \`${path}\`:`,
    table(["Field", "Meaning", "Values", "Default"], rows),
    ...Object.entries(fields).flatMap(([field, option]) => fieldsTables(`${path}.${field}`, option)),
  ];
}

/** The effect of a change while the server runs. */
const changes = { live: "applies at once", start: "waits for the next start", exchange: "reloads the module" };

const marks = ({ required, secret }: OptionDeclaration): string =>
  `${required === true ? " Required." : ""}${secret === undefined ? "" : " Secret: masked in logs and messages."}`;

const introduction = `For operators: every option of the host and its bundled modules. [Configure](../guides/operate/configure.md) is the introduction.

## The config file

The configuration is the file named with \`--config\`. Without that option it is the first of these in the current folder and its
parents, up to the nearest one with a \`package.json\`: \`modhost.config.{ts,js,mjs,cjs,json,yaml,yml}\`, \`.modhostrc\`,
\`.modhostrc.{ts,js,mjs,cjs,json,yaml,yml}\`, and the key \`modhost\` of \`package.json\`. Without any, the host serves \`./data/modules\` and \`./data/www\`.

A script exports an object, a function that returns one, or a promise of one.

## The environment

A variable \`MODHOST_<OPTION IN CAPITALS>\` overrides the file: \`MODHOST_HTTP_PORTS=8080,8081\`,
\`MODHOST_HTTP_PATHS='{"hello":"/"}'\`. Objects are written as JSON, and lists as JSON or separated by commas.

## Values

- Paths are relative to the folder of the config file.
- Periods are seconds or text: \`500ms\`, \`90s\`, \`10m\`, \`2h\`, \`1d\`, \`1w\`.
- Sizes are bytes or text: \`500kB\`, \`10MB\` (powers of 1000), \`64KiB\`, \`1GiB\` (powers of 1024).
- A single value may replace a list of one value. \`null\` is the same as not set.
- An option marked "Per host" may also be in an entry of \`hosts\`, where it takes precedence over the server's.
- Values of secret options are masked in messages, in the log and in the output of \`modhost check\`.

## Mistakes

An invalid value prevents the start, and the message has its path. An unknown name causes a warning with the nearest known name, and
prevents the start if that name controls access. Names that begin with \`$\` are yours. If a required option has no value, its module is
not loaded; the others are. \`modhost check\` says whether a configuration is valid, and tries its paths and ports.

## Changes while the server runs

The column "A change" says what a [reload of the configuration](../guides/operate/configure.md#change-the-configuration-while-it-runs)
does with a changed value. "Reloads the module" means all modules that have read the option, and those that depend on them. "Applies from
then on" means everything that the host itself loads, starts or counts after the change.`;
