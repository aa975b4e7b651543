/** Generates `config/modhost.config.sample.yaml`: every option, commented out. */
import { allowedText } from "#core/config/index.ts";
import type { OptionDeclaration } from "#core/types.ts";
import { type OptionSection, optionsNotice } from "./sections.ts";

/**
 * Prose begins with "# " and an option with "#": removing every "#" before a letter sets all
 * options.
 */
export function sample(all: readonly OptionSection[]): string {
  const head = [
    "# yaml-language-server: $schema=./modhost.schema.json",
    "# A modhost.config.yaml with every option of the host and its bundled modules. Remove the # before a name to",
    "# set it. An entry of hosts takes the same options, except for those of the whole server.",
    `# ${optionsNotice}`,
  ];
  const blocks = all.map(({ owner, options }) => {
    const entries = Object.entries(options).map(([name, option]) => {
      const traits = `${option.per_host === false ? "Whole server only. " : ""}${marks(option)}`;
      return `# ${option.describe}\n# ${traits}Takes ${allowedText(option)}. ${defaultText(option)}\n#${name}: ${flow(option.example ?? option.default ?? placeholder(option))}\n`;
    });
    return `# ${`---- ${owner} `.padEnd(110, "-")}\n\n${entries.join("\n")}`;
  });
  return `${head.join("\n")}\n\n${blocks.join("\n")}`;
}

const marks = ({ required, secret }: OptionDeclaration): string =>
  `${required === true ? "Required. " : ""}${secret === undefined ? "" : "Secret: masked in logs and messages. "}`;

function defaultText(option: OptionDeclaration): string {
  return option.default === undefined
    ? "Not set by default; for example:"
    : `Default: ${JSON.stringify(option.default)}.`;
}

/** Returns a value in YAML's flow form, on one line. */
function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const pairs = Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)}: ${flow(inner)}`);
  return pairs.length === 0 ? "{}" : `{ ${pairs.join(", ")} }`;
}

function placeholder({ type, values, min }: OptionDeclaration): unknown {
  switch (type) {
    case "enum":
      return values?.[0];
    case "number":
    case "integer":
      return min ?? 0;
    case "period":
      return "1m";
    case "size":
      return "10MB";
    case "url":
      return "https://www.example.org/";
    case "boolean":
      return true;
    case "object":
      return {};
    case "port":
      return 0;
    case "strings":
    case "ports":
      return [];
    default:
      return "text";
  }
}
