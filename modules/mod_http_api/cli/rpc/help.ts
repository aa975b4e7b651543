/** Help on the commands of a server, from the OpenAPI document that the server sends. */
import { columns } from "../../../../core/cli/index.ts";
import { callOptions } from "./parse.ts";
import type { RpcCommand, RpcOption } from "./surface.ts";

/**
 * Returns the list of commands below a group; "" lists all. `program` is what stands in front of
 * command names.
 */
export function rpcGroupHelp(commands: ReadonlyMap<string, RpcCommand>, group: string, program: string): string {
  const inside = [...commands.values()].filter(({ path }) => group === "" || path.startsWith(`${group}/`));
  const rows = inside.map((command) => [command.path.replaceAll("/", " "), command.help]);
  return [
    `Usage: ${program} ${group === "" ? "COMMAND" : `${group.replaceAll("/", " ")} COMMAND`} [ARGUMENTS] [OPTIONS]`,
    "",
    columns(rows, "  "),
    "",
    `${program} COMMAND --help shows the help of a command.`,
  ].join("\n");
}

export function rpcCommandHelp(
  command: RpcCommand,
  commands: ReadonlyMap<string, RpcCommand>,
  program: string,
): string {
  const { path, help, deprecated, options } = command;
  const words = wordsOf(command);
  const own = options.filter(({ shared }) => !shared);
  const below = [...commands.values()].filter((each) => each.path.startsWith(`${path}/`));
  const section = (title: string, rows: readonly (readonly string[])[]) =>
    rows.length === 0 ? [] : ["", `${title}:`, columns(rows, "  ")];
  return [
    `Usage: ${program} ${usageOf(command)} [OPTIONS]`,
    "",
    `${help}${deprecated ? " Deprecated." : ""}`,
    ...section(
      "Arguments",
      words.map(({ name, help }) => [name, help]),
    ),
    ...section("Options", own.map(optionRow)),
    ...section("Options of every command", [...ownRows, ...options.filter(isListed).map(optionRow)]),
    ...section(
      "Further commands",
      below.map((each) => [each.path.replaceAll("/", " "), each.help]),
    ),
  ].join("\n");
}

/** Returns the usage of a command: `cat IPFS-PATH...`, `files ls [PATH]`. */
export function usageOf(command: RpcCommand): string {
  const words = wordsOf(command).map(({ name, required, variadic }) => {
    const word = `${name.toUpperCase().replaceAll(/\W/g, "-")}${variadic === true ? "..." : ""}`;
    return required === true ? word : `[${word}]`;
  });
  return [command.path.replaceAll("/", " "), ...words].join(" ");
}

const wordsOf = ({ arguments: declared, file }: RpcCommand) => [
  ...declared,
  ...(file === undefined ? [] : [{ ...file, variadic: file.many }]),
];

const ownRows = [
  [
    "--api ADDRESS",
    "The server: a URL, HOST:PORT or a multiaddress; default: the address in the file `api` of the repo",
  ],
  ["--token TOKEN", callOptions.token.help],
];

const isListed = ({ shared, name, help }: RpcOption) => shared && name !== "api" && !help.includes("no effect here");

function optionRow({ name, aliases, kind, help, default: preset }: RpcOption): string[] {
  const names = [...aliases, name]
    .sort((one, other) => one.length - other.length)
    .map((each) => `${each.length === 1 ? "-" : "--"}${each}`);
  const value = kind === "flag" ? "" : ` ${name.toUpperCase()}`;
  const defaultText =
    preset === undefined
      ? ""
      : ` (default: ${typeof preset === "string" ? preset.replaceAll("\n", "\\n") : JSON.stringify(preset)})`;
  return [`${names.join(", ")}${value}`, `${help}${defaultText}`];
}
