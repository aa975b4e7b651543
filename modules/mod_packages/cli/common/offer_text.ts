/** Describes a fetched module to people, before they agree to it. */
import { counted, size_text } from "../../../../core/cli/index.ts";
import type { Offer } from "../../packages.ts";

export function offerText({ module, description, installed }: Offer): string {
  const { package: id, version, publisher, age, resolved, verified, repository, files, bytes, license } = description;
  const { dependencies, licenses, permissions, options, host, node, warnings } = description;
  const kinds = Object.entries(licenses).map(([name, count]) => `${count} ${name}`);
  const rows: (readonly [string, string])[] = [
    ["package", `${id} ${version}${license === "" ? "" : `, ${license}`}`],
    ["publisher", [publisher ?? "not known", ...(age === undefined ? [] : [`${age} ago`])].join(", ")],
    ["from", `${resolved}${repository === undefined ? "" : `, built from ${repository}`}`],
    ["verified", verified.length === 0 ? "nothing: it does not come from a registry" : verified.join(", ")],
    ["size", `${counted(files, "file")}, ${size_text(bytes)}`],
    ["dependencies", dependencies === 0 ? "none" : `${dependencies} (${kinds.join(", ")})`],
    ...(host === undefined ? [] : [["modhost", host] as const]),
    ...(node === undefined ? [] : [["Node.js", node] as const]),
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return [
    `${module} ${version}${installed === undefined ? "" : `, in the place of ${installed.version}`}`,
    ...rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`),
    ...listed("It asks for these permissions:", permissions),
    ...(permissions.length === 0 ? ["It asks for no permissions: it may read its own files, and nothing else."] : []),
    ...listed(
      "Its options:",
      options.map(({ name, type, describe, default: value }) => {
        const preset = value === undefined ? "" : `; default ${JSON.stringify(value)}`;
        return `${name} (${type}${preset}): ${describe}`;
      }),
    ),
    ...listed(
      "Different from the installed version:",
      (installed?.changes ?? []).map(({ text, needs_consent }) => `${needs_consent ? "! " : "  "}${text}`),
    ),
    ...listed("Warnings:", warnings),
  ].join("\n");
}

const listed = (title: string, texts: readonly string[]): string[] =>
  texts.length === 0 ? [] : [title, ...texts.map((text) => `  ${text}`)];
