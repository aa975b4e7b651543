import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Module, ModuleDefinition, ModuleFunction, OptionDeclarations, StickyBy } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { withoutVersions } from "../util/stack.ts";
import { syntaxErrorLine } from "../util/syntax.ts";
import type { Usage } from "../util/usage.ts";
import { Deadline } from "./deadline.ts";
import { importFresh } from "./fresh_import.ts";
import { declarationHints, exportHints } from "./hints.ts";
import type { Effect, Entry } from "./ledger.ts";
import type { ModuleSource } from "./locate.ts";

/** The instance that code runs for, as far as the host's own code uses it. */
export interface InstanceOwner {
  readonly host: string;
  readonly reloading: boolean | undefined;
  readonly usage: Usage;
  note: string | undefined;
  add(effect: Effect): Entry;
  advise(text: string): void;
  fault(step: string, error: unknown): void;
}

/** The evaluated code of a module: what instances are made from. */
export interface ModuleCode {
  readonly source: ModuleSource;
  readonly load: (module: Module, owner: InstanceOwner) => unknown;
  readonly options: OptionDeclarations;
  readonly depends: readonly string[];
  readonly global: boolean;
  /** It asks for a worker of its own. */
  readonly isolated?: boolean;
  /** One process runs it, of a server of several. */
  readonly shared?: boolean;
  /** Of a server of several processes, one answers all requests of a client. */
  readonly sticky?: StickyBy | undefined;
  /** For its author: names that mean nothing here, next to one that does. */
  readonly hints: readonly string[];
  /** What it consists of, where another thread has evaluated it. */
  readonly files?: readonly string[];
}

/** Files that are compiled once more to find which one cannot be. */
const MAX_COMPILED = 20;

/** A line of a module's own code. */
interface Place {
  readonly file: string;
  readonly line: number;
}

const remedy = "export a default function taking the module, or defineModule({ load })";

/**
 * Evaluates a module's file as it is now, for at most `loadTimeout` seconds. `files` gets the paths of all that it
 * consists of, as they are found: also later, by an `import()`.
 * @throws {ModhostError} MODULE_FAILED with file and line, MODULE_INVALID
 */
export async function readCode(
  source: ModuleSource,
  loadTimeout: number,
  files = new Set<string>(),
): Promise<ModuleCode> {
  const { file, name, definition } = source;
  if (file === undefined) return codeOf(source, definition ?? {});
  let exported: Record<string, unknown>;
  files.add(file);
  try {
    const imported = importFresh({ ...source, file }, (part) => files.add(part));
    exported = await new Deadline(loadTimeout).result(imported, "load_timeout");
  } catch (error) {
    const missing = missingFile(error);
    if (missing !== undefined) files.add(missing);
    throw failure(source, "being imported", error, placeIn(source, error) ?? (await syntaxPlace(files, error)));
  }
  const main = exported.default;
  // CommonJS gives module.exports as default; its named fields may be detected as exports beside it.
  if (typeof main === "object" && main !== null) return codeOf(source, main);
  if (typeof main === "function")
    return codeOf(source, { ...pick(main), ...pick(exported), load: main as ModuleFunction }, exported);
  const found = Object.keys(exported).join(", ") || "nothing";
  throw new ModhostError("MODULE_INVALID", { file, reason: `it exports ${found}: ${remedy}`, name });
}

/** The failure of one step of a module's life, with file and line where the error says them. */
export function failure(
  source: ModuleSource,
  step: string,
  error: unknown,
  place = placeIn(source, error),
): ModhostError {
  if (ModhostError.is(error) && error.code !== "OPTION_INVALID") return error;
  const reason = withoutVersions(reasonOf(error));
  const shown = place === undefined ? "" : `${relative(source.directory, place.file)}:${place.line}`;
  const text = reason.includes(shown) ? reason : `${reason} (${shown})`;
  const details = { name: source.name, step, reason: text, ...(place === undefined ? {} : { place }) };
  return new ModhostError("MODULE_FAILED", details, { cause: error });
}

function codeOf(source: ModuleSource, exported: object, written = exported): ModuleCode {
  const definition = exported as Partial<ModuleDefinition>;
  const {
    load,
    options = {},
    depends = [],
    global = false,
    isolated = false,
    shared = false,
    sticky = false,
  } = definition;
  const refuse = (reason: string) => {
    const file = source.file ?? source.name;
    return new ModhostError("MODULE_INVALID", { file, reason, name: source.name });
  };
  if (typeof load !== "function") throw refuse(`it has no function load: ${remedy}`);
  if (typeof options !== "object" || options === null) throw refuse("options must be an object of declarations");
  if (!Array.isArray(depends) || depends.some((name) => typeof name !== "string")) {
    throw refuse("depends must be a list of module names");
  }
  if (typeof sticky !== "boolean" && sticky !== "address" && sticky !== "cookie") {
    throw refuse('sticky must be true, "address" or "cookie"');
  }
  const hints = [...exportHints(written), ...declarationHints(options)];
  const asked = { options, depends, global: global === true, isolated: isolated === true, shared: shared === true };
  const by = sticky === true ? "address" : sticky || undefined;
  // Its function is given the module object and nothing else.
  return { source, load: (module) => load(module), ...asked, sticky: by, hints };
}

function pick(from: object): Partial<ModuleDefinition> {
  const { options, depends, global, isolated, shared, sticky } = from as Partial<ModuleDefinition>;
  return {
    ...(options === undefined ? {} : { options }),
    ...(depends === undefined ? {} : { depends }),
    ...(global === undefined ? {} : { global }),
    ...(isolated === undefined ? {} : { isolated }),
    ...(shared === undefined ? {} : { shared }),
    ...(sticky === undefined ? {} : { sticky }),
  };
}

/** The file and line that a line of a stack ends with. */
const framePlace = /(?:^|\(|\bat (?:async )?)((?:\/|[A-Z]:\\)[^()\n]*?):(\d+)(?::\d+)?\)?$/gm;

/** The places that the stack of an error names, the innermost first; none for whatever is no Error. */
export function framesOf(error: unknown): { readonly path: string; readonly line: string }[] {
  const stack = error instanceof Error ? withoutVersions(error.stack ?? "") : "";
  return Array.from(stack.matchAll(framePlace), ([, path = "", line = ""]) => ({ path, line }));
}

/** The line of the module that an error names: of its main file, else of the first file in its folder. */
function placeIn({ file, directory }: ModuleSource, error: unknown): Place | undefined {
  for (const { path, line } of framesOf(error)) {
    const inside = relative(directory, path);
    if (file !== undefined && !inside.startsWith("..") && !inside.startsWith("node_modules"))
      return { file: path, line: Number(line) };
  }
  return undefined;
}

/** The file that an import names, and that does not exist. */
function missingFile(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("url" in error) || typeof error.url !== "string") return undefined;
  return URL.canParse(error.url) && error.url.startsWith("file:") ? fileURLToPath(error.url) : undefined;
}

/** The stack of what cannot be parsed names no line of it: the latest file that was found is asked first. */
async function syntaxPlace(files: ReadonlySet<string>, error: unknown): Promise<Place | undefined> {
  if (!(error instanceof SyntaxError)) return undefined;
  for (const file of [...files].reverse().slice(0, MAX_COMPILED)) {
    const line = await syntaxErrorLine(file);
    if (line !== undefined) return { file, line: Number(line) };
  }
  return undefined;
}
