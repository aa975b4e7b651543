/** The configuration file: read anew for every call, written atomically, one change at a time. */
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { NodeError } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import { uniqueName, writeAtomically } from "./atomic_file.ts";
import { requireSendableHeaders } from "./header_fault.ts";
import { type IdentityConfig, readIdentity } from "./identity.ts";
import { getAt, isObject, type JsonObject, parseJson, setAt, sorted } from "./json.ts";
import {
  applyChange,
  type JsonTree,
  parseTree,
  plainOf,
  printTree,
  setIn,
  settle,
  takeUnknown,
  treeOf,
} from "./json_tree.ts";
import { type LaterSettings, laterSettings } from "./later_keys.ts";
import { applyProfile, profileNamed } from "./profiles.ts";
import { type ConfigPath, type ConfigValue, type Document, decodeConfig, valueAt } from "./schema.ts";
import { keepSecrets, privateKeyPath, requireShown, withoutSecrets } from "./secrets.ts";

const fileMode = 0o600;
/** Of the names of files with the document as it was before a change. */
export const copyPrefix = "config-pre-";

/** Whole documents before and after, without secrets. */
export interface ConfigChange {
  readonly before: JsonObject;
  readonly after: JsonObject;
}

/** Values that replace those of the file. */
export type ConfigOverrides = { readonly [P in ConfigPath]?: ConfigValue<P> };

export class ConfigFile {
  readonly path: string;
  /** What the config said at the start of choices that version 0.9 leaves to whoever starts the node. */
  readonly switches: Omit<LaterSettings, "overrides">;
  readonly #folder: string;
  readonly #overrides: ConfigOverrides;
  #typed: Document;
  /** Ends when the last change has ended. */
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(
    folder: string,
    path: string,
    typed: Document,
    overrides: ConfigOverrides,
    switches: ConfigFile["switches"],
  ) {
    this.switches = switches;
    this.#folder = folder;
    this.path = path;
    this.#typed = typed;
    this.#overrides = overrides;
  }

  /** @throws NodeError that names the file, when it is not a configuration */
  static async open(folder: string, overrides: ConfigOverrides = {}): Promise<ConfigFile> {
    const path = join(folder, "config");
    try {
      const { document, typed } = await readCurrent(path);
      const { overrides: later, ...switches } = laterSettings(document);
      return new ConfigFile(folder, path, typed, { ...later, ...overrides }, switches);
    } catch (error) {
      if (!(error instanceof NodeError)) throw error;
      throw new NodeError(`${error.message}: mend ${path}, or put back a copy of it`, { cause: error });
    }
  }

  /** Writes the document of a new repo. */
  static create(folder: string, tree: JsonTree): Promise<void> {
    return writeAtomically(join(folder, "config"), printTree(tree), fileMode);
  }

  /** A value as this process has last read or written it. Most values are read only when the node starts. */
  value<P extends ConfigPath>(path: P): ConfigValue<P> {
    const { [path]: override } = this.#overrides;
    return override === undefined ? valueAt(this.#typed, path) : override;
  }

  /** The value of the file at a dotted path. @throws NodeError as the command `config` */
  async get(path: string): Promise<unknown> {
    requireShown(path);
    return shownAt((await this.#read()).document, path);
  }

  /**
   * Writes a value and returns what is there afterwards. `value` is called only if the path may be written; it gives the
   * value, or its JSON, which is kept in that form.
   *
   * @throws NodeError as the command `config`
   */
  async set(path: string, value: () => unknown | JsonText): Promise<unknown> {
    requireShown(path);
    const given = value();
    return this.#change(async (current) => {
      const wanted = given instanceof JsonText ? given.tree : treeOf(given);
      const changed = changedAt(current, path, wanted);
      await this.#write(changed);
      return shownAt(changed.document, path);
    });
  }

  /** Changes one known key on behalf of the node; it may touch keys that the API does not show. */
  update<P extends ConfigPath>(path: P, change: (before: ConfigValue<P>) => ConfigValue<P>): Promise<void> {
    return this.#change(async (current) => {
      const { typed } = current;
      await this.#write(changedTo(current, setAt(typed, path, change(valueAt(typed, path)))));
    });
  }

  /** Replaces the identity; `make` is given the present one. */
  replaceIdentity(make: (before: IdentityConfig) => Promise<IdentityConfig>): Promise<void> {
    return this.#change(async (current) => {
      const { PeerID, PrivKey } = await make(identityOf(current.typed));
      const typed = setAt(setAt(current.typed, "Identity.PeerID", PeerID), privateKeyPath, PrivKey);
      await this.#write(changedTo(current, typed));
    });
  }

  /** The whole file without secrets, with sorted keys. */
  async show(): Promise<JsonObject> {
    return sorted(withoutSecrets((await this.#read()).document)) as JsonObject;
  }

  /**
   * Replaces the whole document, given as text. Secrets stay, and keys that this node does not know, where the new
   * document says nothing of them. The file as it was is kept beside, once.
   *
   * @throws NodeError also for a document with which the node would not start again
   */
  replace(text: string): Promise<void> {
    return this.#change(async (current) => {
      const { tree, typed: given } = decodeReplacement(text);
      const typed = keepSecrets(given, current.document);
      requireStart(current.typed, typed);
      const changed = changedTo(current, typed);
      const whole = takeUnknown(changed.tree, tree, typed);
      await this.#keepCopy(`${copyPrefix}replace`);
      await this.#write({ tree: whole, document: plainOf(whole) as JsonObject, typed });
    });
  }

  /** Applies a profile; `dryRun` only tells what it would do. The file as it was is kept beside. @throws NodeError */
  async applyProfile(name: string, { dryRun = false } = {}): Promise<ConfigChange> {
    const profile = profileNamed(name);
    return this.#change(async (current) => {
      const { typed: before } = current;
      const typed = decodeConfig(await applyProfile(before, profile));
      if (!dryRun) {
        await this.#keepCopy(uniqueName(`${copyPrefix}${name}-`));
        await this.#write(changedTo(current, typed));
      }
      const shown = (whole: Document) => sorted(withoutSecrets(whole)) as JsonObject;
      return { before: shown(before), after: shown(typed) };
    });
  }

  /**
   * Takes over what somebody makes of a copy of the file, secrets and all.
   *
   * @throws NodeError when it is no configuration then, or the file was changed by others meanwhile
   */
  async edit(change: (file: string) => Promise<void>): Promise<void> {
    await this.#queue;
    const before = await readFile(this.path, "utf8");
    const copy = join(this.#folder, uniqueName("config-edit-"));
    try {
      await writeFile(copy, before, { mode: fileMode });
      await change(copy);
      const edited = await readCurrent(copy);
      readIdentity(identityOf(edited.typed));
      await this.#change(async () => {
        if ((await readFile(this.path, "utf8")) !== before) {
          throw new NodeError("the config was changed while it was edited: edit it again");
        }
        await this.#write(edited);
      });
    } finally {
      await rm(copy, { force: true });
    }
  }

  async #read(): Promise<Current> {
    await this.#queue;
    return readCurrent(this.path);
  }

  async #keepCopy(name: string): Promise<void> {
    await writeAtomically(join(this.#folder, name), await readFile(this.path), fileMode);
  }

  async #write({ tree, typed }: Current): Promise<void> {
    requireSendableHeaders(typed, this.#typed);
    await writeAtomically(this.path, printTree(tree), fileMode);
    this.#typed = typed;
  }

  #change<T>(change: (current: Current) => Promise<T>): Promise<T> {
    const done = this.#queue.then(async () => change(await readCurrent(this.path)));
    this.#queue = done.catch(() => undefined);
    return done;
  }
}

/** JSON as text, for a value that is kept in that form. */
export class JsonText {
  readonly tree: JsonTree;

  /** @throws NodeError whose message is the bare reason */
  constructor(text: string) {
    this.tree = parseTree(text);
  }
}

/** A document: as it stands in the file, as plain values, and its known keys. */
export interface Current {
  readonly tree: JsonTree;
  readonly document: JsonObject;
  readonly typed: Document;
}

async function readCurrent(path: string): Promise<Current> {
  return readConfig(await readFile(path, "utf8"));
}

/** @throws NodeError when the text is no configuration */
export function readConfig(text: string): Current {
  const document = parseDocument(text);
  return { tree: parseTree(text), document, typed: decodeConfig(document) };
}

/** The same document with other known values: all else in it stays as it is. */
export function changedTo({ tree, typed: before }: Current, typed: Document): Current {
  const changed = applyChange(tree, before, typed);
  return { tree: changed, document: plainOf(changed) as JsonObject, typed };
}

const identityOf = (typed: Document) => ({
  PeerID: valueAt(typed, "Identity.PeerID"),
  PrivKey: valueAt(typed, privateKeyPath) ?? "",
});

/** The text of a configuration. @throws NodeError when it is none */
function parseDocument(text: string): JsonObject {
  let document: unknown;
  try {
    document = parseJson(text);
  } catch (error) {
    const reason = text.trim() === "" ? "EOF" : (error as Error).message;
    throw new NodeError(`failure to decode config: ${reason}`, { cause: error });
  }
  // What is not an object is refused with the text of the decoder.
  return isObject(document) ? document : decodeConfig(document);
}

function shownAt(document: JsonObject, path: string): unknown {
  try {
    return sorted(getAt(document, path));
  } catch (error) {
    throw new NodeError(`failed to get config value: ${quote((error as Error).message)}`);
  }
}

function changedAt(current: Current, path: string, value: JsonTree): Current {
  const { document, tree } = current;
  let typed: Document;
  try {
    // What is no object on the way is refused here.
    typed = decodeConfig(setAt(document, path, plainOf(value)));
  } catch (error) {
    throw new NodeError(`failed to set config value: ${(error as Error).message} (maybe use --json?)`);
  }
  requireKnown(document, typed, path);
  const names = path.split(".");
  const known = names.reduce<unknown>(
    (found, name) => (isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined),
    typed,
  );
  const changed = setIn(tree, names, known === undefined ? value : settle(value, known));
  return { tree: changed, document: plainOf(changed) as JsonObject, typed };
}

/**
 * In a section that this node knows, it makes no keys that it does not know; those that are there may be changed.
 *
 * @throws NodeError as the reference, which drops such a key and then does not find it
 */
function requireKnown(document: JsonObject, typed: Document, path: string): void {
  const names = path.split(".");
  let [here, known]: unknown[] = [document, typed];
  for (const [at, name] of names.entries()) {
    if (!isObject(known)) return;
    const isThere = isObject(here) && Object.hasOwn(here, name);
    if (!Object.hasOwn(known, name)) {
      if (at > 0 && !isThere) shownAt(typed, path);
      return;
    }
    here = isThere ? (here as JsonObject)[name] : undefined;
    known = known[name];
  }
}

function decodeReplacement(text: string): { tree: JsonTree; typed: Document } {
  try {
    const tree = parseTree(text);
    return { tree, typed: decodeConfig(plainOf(tree)) };
  } catch (error) {
    throw new NodeError("failed to decode file as config", { cause: error });
  }
}

/** @throws NodeError that names what is missing */
function requireStart(before: Document, after: Document): void {
  const refuse = (reason: string) =>
    new NodeError(
      `this config was not taken, as the node would not start with it: ${reason}. ` +
        "Take the output of config/show, and change that",
    );
  try {
    readIdentity(identityOf(after));
  } catch (error) {
    // One that cannot be read now, either, is not made worse.
    if (valueAt(after, "Identity.PeerID") !== valueAt(before, "Identity.PeerID"))
      throw refuse((error as Error).message);
  }
  const spec = valueAt(after, "Datastore.Spec");
  if (JSON.stringify(sorted(spec)) !== JSON.stringify(sorted(valueAt(before, "Datastore.Spec")))) {
    throw refuse(
      spec === null
        ? "Datastore.Spec is missing"
        : "another Datastore.Spec needs another repo: see `modhost node migrate`",
    );
  }
}
