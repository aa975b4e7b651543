/**
 * Reads `test/fixtures/surface*.json`: the endpoints of the contract as data, and the names on the
 * reference's command line.
 */
import { readFileSync } from "node:fs";
import type { LevelName } from "#modules/mod_http_api/rpc/levels.ts";

/** A type, `{field: type}`, `[type]`, or `{"<string>": type}` for a map. */
export type ShapeForm = string | readonly [ShapeForm] | { readonly [field: string]: ShapeForm };

export interface Parameter {
  readonly name: string;
  /** For `arg`: its position, from 1. */
  readonly at?: number;
  readonly type: string;
  readonly required?: boolean;
  readonly repeatable?: boolean;
  readonly experimental?: boolean;
  readonly deprecated?: boolean;
  readonly default?: boolean | number | string | readonly string[];
}

export interface Endpoint {
  readonly parameters: readonly Parameter[];
  readonly body?: { readonly name?: string; readonly many?: boolean };
  readonly stream?: boolean;
  readonly deprecated?: boolean;
  readonly returns: ShapeForm;
}

/**
 * Arguments in the form of the reference's help, `[<path>]...`. Names of each option, the long one
 * first.
 */
export interface ReferenceCommand {
  readonly arguments: readonly string[];
  readonly options: readonly (readonly string[])[];
  /** Further names that may be accepted: those of an earlier level. */
  readonly also?: readonly string[];
}

export interface Surface {
  readonly level: LevelName;
  readonly endpoints: Readonly<Record<string, Endpoint>>;
  readonly reference: Readonly<Record<string, ReferenceCommand>>;
}

/** Returns the endpoints of go-ipfs 0.9.0, or those that Kubo 0.43.0 serves. */
export function readSurface(level: LevelName = "0.9"): Surface {
  const then = { ...(read("surface.json") as Surface), level: "0.9" } as const;
  return level === "0.9" ? then : later(then, read("surface-0.43.json") as Listed);
}

const read = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../fixtures/${name}`, import.meta.url), "utf8"));

/** `test/fixtures/surface-0.43.json`: what a server of that level reports about its commands. */
interface Listed {
  readonly endpoints: Readonly<Record<string, ListedEndpoint>>;
}

interface ListedEndpoint {
  readonly arguments: readonly string[];
  readonly options: readonly (Pick<Parameter, "type" | "default"> & {
    readonly names: readonly [string, ...string[]];
  })[];
  /** The last argument is a file of the body. Without this field, it is as at the earlier level. */
  readonly file?: boolean;
  readonly stream?: boolean;
  /** Without this field, it is as at the earlier level. */
  readonly returns?: ShapeForm;
  /** The endpoint is listed, but gets 404. */
  readonly unserved?: boolean;
  /** The endpoint is a group without a result. Its options are those of all commands below it. */
  readonly group?: boolean;
}

function later(then: Surface, { endpoints }: Listed): Surface {
  const served = Object.entries(endpoints).filter(([, { unserved, group }]) => unserved !== true && group !== true);
  const optionsAbove = (path: string) =>
    Object.entries(endpoints).flatMap(([above, { options }]) => (path.startsWith(`${above}/`) ? options : []));
  return {
    level: "0.43",
    endpoints: Object.fromEntries(served.map(([path, listed]) => [path, laterEndpoint(listed, then.endpoints[path])])),
    reference: Object.fromEntries(
      served.map(([path, { arguments: args, options }]) => {
        const names = [...options, ...optionsAbove(path)].map((option) => option.names);
        const also = [
          ...(then.endpoints[path]?.parameters ?? []).map(({ name }) => name),
          ...(then.reference[path]?.options ?? []).flat(),
        ];
        return [path, { arguments: args, options: names, also }];
      }),
    ),
  };
}

function laterEndpoint(listed: ListedEndpoint, before: Endpoint | undefined): Endpoint {
  const { arguments: args, options, stream } = listed;
  const hasFile = args.length > 0 && (listed.file ?? before?.body !== undefined);
  const words = hasFile ? args.slice(0, -1) : args;
  const file = args.at(-1) ?? "";
  const returns = listed.returns ?? before?.returns;
  if (returns === undefined) throw new Error(`The fixture lacks what an endpoint returns: ${JSON.stringify(listed)}`);
  const defaults = before?.parameters.filter(({ at }) => at !== undefined).map((parameter) => parameter.default) ?? [];
  return {
    parameters: [
      ...words.map((text, at) => ({
        name: "arg",
        at: at + 1,
        type: "string",
        required: text.startsWith("<"),
        // The help states no default.
        ...(defaults[at] !== undefined && { default: defaults[at] }),
      })),
      ...options.map(({ names: [name], ...rest }) => ({ ...rest, name, repeatable: rest.type === "list" })),
    ],
    ...(hasFile && { body: { name: file.replace(/^\[?<|>.*$/g, ""), many: file.endsWith("...") } }),
    stream: stream ?? (listed.returns === undefined && before?.stream === true),
    returns,
  };
}
