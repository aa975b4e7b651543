import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import type {
  Module,
  ModuleDefinition,
  ModuleFunction,
  ModulePermissions,
  OptionDeclarations,
  SandboxLayerState,
  StickyBy,
} from "../types.ts";
import { unwrapped } from "../util/default_export.ts";
import { ModhostError, readableThrown, reasonOf } from "../util/errors.ts";
import { explainMissing } from "../util/missing_package.ts";
import { linesOf, withoutVersions } from "../util/stack.ts";
import { syntaxFault } from "../util/syntax.ts";
import { Usage } from "../util/usage.ts";
import { Deadline } from "./deadline.ts";
import { declaredPermissions } from "./declared.ts";
import { importFresh } from "./fresh_import.ts";
import { declarationHints, exportHints } from "./hints.ts";
import type { Incident } from "./incidents.ts";
import type { Effect, EffectHandle } from "./ledger.ts";
import type { ModuleSource } from "./locate.ts";
import type { ModuleRights } from "./rights.ts";

/** The instance that code runs for, with the members that the host's own code uses. */
export interface InstanceOwner {
  readonly host: string;
  readonly reloading: boolean | undefined;
  readonly usage: Usage;
  note: string | undefined;
  /** The reason why it was restarted, or what is wrong with it now. */
  incident: Incident | undefined;
  /** The layers of its sandbox, if it is sandboxed. */
  sandbox: readonly SandboxLayerState[] | undefined;
  /** Returns whether a process is ready to take over; set if the operator wants one. */
  hasSpare: (() => boolean) | undefined;
  add(effect: Effect): EffectHandle;
  advise(text: string): void;
  fault(step: string, error: unknown): void;
}

/** The evaluated code of a module; instances are created from it. */
export interface ModuleCode {
  readonly source: ModuleSource;
  readonly load: (module: Module, owner: InstanceOwner) => unknown;
  readonly options: OptionDeclarations;
  readonly depends: readonly string[];
  readonly global: boolean;
  /** Whether it requests a worker of its own. */
  readonly isolated?: boolean;
  /** Whether only one process of a server runs it. */
  readonly shared?: boolean;
  /**
   * Whether one process of a server handles all requests of a client, and how clients are
   * identified.
   */
  readonly sticky?: StickyBy | undefined;
  /** The permissions that it declares. */
  readonly permissions: ModulePermissions;
  /** How it runs and what it may do. The catalog sets this. */
  readonly rights?: ModuleRights;
  /** Hints for the author about names that the host does not know and that resemble known ones. */
  readonly hints: readonly string[];
  /**
   * The account of the evaluation. Failures of work that the evaluation started count for every
   * instance of this code.
   */
  readonly evaluated?: Usage;
  /** Files of the code, if another thread has evaluated it. */
  readonly files?: readonly string[];
}

/** Maximum number of files that are compiled again to find the one with the syntax error. */
const MAX_COMPILED = 20;

/** A line of a module's own code. */
interface SourceLine {
  readonly file: string;
  readonly line: number;
}

const remedy = "export a default function taking the module, or defineModule({ load })";

/**
 * Evaluates a module's current file, for at most `loadTimeout` seconds. `files` receives the paths
 * of all its files as they are found, including later ones from an `import()`.
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
  const evaluated = new Usage(name);
  files.add(file);
  try {
    const imported = evaluated.run(() => importFresh({ ...source, file }, (part) => files.add(part)));
    exported = unwrapped(await new Deadline(loadTimeout).result(imported, "load_timeout"));
  } catch (thrown) {
    const error = explainMissing(readableThrown(thrown), name, file);
    const missing = missingFile(error);
    if (missing !== undefined) files.add(missing);
    const known = lineIn(source, error);
    const { line = known, what } = known === undefined ? await syntaxErrorLine(files, error) : {};
    const cause = what === undefined ? error : new SyntaxError(what, { cause: error });
    throw failure(source, "being imported", cause, line);
  }
  const main = exported.default;
  // CommonJS gives module.exports as default; its named fields may be detected as exports, too.
  if (typeof main === "object" && main !== null) return { ...codeOf(source, main), evaluated };
  if (typeof main === "function") {
    const fields = { ...pick(main), ...pick(exported), load: main as ModuleFunction };
    return { ...codeOf(source, fields, exported), evaluated };
  }
  const found = Object.keys(exported).join(", ") || "nothing";
  throw new ModhostError("MODULE_INVALID", { file, reason: `it exports ${found}: ${remedy}`, name });
}

/**
 * Returns the error for a failed step of a module's life, with file and line if the error names
 * them.
 */
export function failure(source: ModuleSource, step: string, thrown: unknown, known?: SourceLine): ModhostError {
  const error = readableThrown(thrown);
  if (ModhostError.is(error) && error.code !== "OPTION_INVALID") return error;
  const position = known ?? lineIn(source, error);
  const reason = withoutVersions(reasonOf(error));
  const shown = position === undefined ? "" : `${relative(source.directory, position.file)}:${position.line}`;
  const text = reason.includes(shown) ? reason : `${reason} (${shown})`;
  const details = { name: source.name, step, reason: text, ...(position === undefined ? {} : { place: position }) };
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
  const permissions = declaredPermissions(source, definition.permissions);
  const hints = [...exportHints(written), ...declarationHints(options)];
  const declared = { options, depends, global: global === true, isolated: isolated === true, shared: shared === true };
  const by = sticky === true ? "address" : sticky || undefined;
  // The function of a module receives the module object and nothing else.
  return { source, load: (module) => load(module), ...declared, permissions, sticky: by, hints };
}

function pick(from: object): Partial<ModuleDefinition> {
  const { options, depends, global, isolated, shared, sticky, permissions } = from as Partial<ModuleDefinition>;
  return {
    ...(options === undefined ? {} : { options }),
    ...(depends === undefined ? {} : { depends }),
    ...(global === undefined ? {} : { global }),
    ...(isolated === undefined ? {} : { isolated }),
    ...(shared === undefined ? {} : { shared }),
    ...(sticky === undefined ? {} : { sticky }),
    ...(permissions === undefined ? {} : { permissions }),
  };
}

/** Matches the file and line at the end of a stack frame. */
const framePattern = /(?:^|\(|\bat (?:async )?)((?:\/|[A-Z]:\\)[^()\n]*?):(\d+)(?::\d+)?\)?$/gm;

/**
 * Returns the positions that the stack of an error names, the innermost first; none for a value
 * that is not an Error.
 */
export function framesOf(error: unknown): { readonly path: string; readonly line: string }[] {
  const stack = linesOf(error).join("\n");
  return Array.from(stack.matchAll(framePattern), ([, path = "", line = ""]) => ({ path, line }));
}

/**
 * Returns the line of the module that an error names: in its main file, or else in the first file
 * of its folder.
 */
function lineIn({ file, directory }: ModuleSource, error: unknown): SourceLine | undefined {
  for (const { path, line } of framesOf(error)) {
    const inside = relative(directory, path);
    if (file !== undefined && !inside.startsWith("..") && !inside.startsWith("node_modules"))
      return { file: path, line: Number(line) };
  }
  return undefined;
}

/** Returns the missing file that a failed import names. */
function missingFile(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("url" in error) || typeof error.url !== "string") return undefined;
  return URL.canParse(error.url) && error.url.startsWith("file:") ? fileURLToPath(error.url) : undefined;
}

/**
 * Finds the file that cannot be parsed, since the stack of a syntax error names no line of it. The
 * file that was found last is checked first.
 */
async function syntaxErrorLine(
  files: ReadonlySet<string>,
  error: unknown,
): Promise<{ readonly line?: SourceLine; readonly what?: string | undefined }> {
  if (!(error instanceof SyntaxError)) return {};
  for (const file of [...files].reverse().slice(0, MAX_COMPILED)) {
    const fault = await syntaxFault(file);
    if (fault !== undefined) return { line: { file, line: Number(fault.line) }, what: fault.what };
  }
  return {};
}
