/** Documents of the configuration: read from text, looked at, changed; and which of them a node starts with. */
import { readFile } from "node:fs/promises";
import { NodeError } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import { readIdentity } from "./identity.ts";
import { type ConfigRules, getAt, isObject, type JsonObject, joined, parseJson, setAt, sorted } from "./json.ts";
import { applyChange, type JsonTree, parseTree, plainOf, setIn, settle } from "./json_tree.ts";
import { isOfKubo } from "./kept_keys.ts";
import { configKeys, type Document, decodeConfig, valueAt } from "./schema.ts";
import { privateKeyPath, withoutSecrets } from "./secrets.ts";

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

export async function readCurrent(path: string): Promise<Current> {
  return readConfig(await readFile(path, "utf8"));
}

/** @throws NodeError when the text is no configuration */
export function readConfig(text: string): Current {
  const document = parseDocument(text);
  return { tree: parseTree(text), document, typed: decodeConfig(document) };
}

/** The same document with other known values: all else in it stays as it is. */
export function changedTo({ tree, typed: before }: Pick<Current, "tree" | "typed">, typed: Document): Current {
  const changed = applyChange(tree, before, typed);
  return { tree: changed, document: plainOf(changed) as JsonObject, typed };
}

export const identityOf = (typed: Document) => ({
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

export function shownAt(document: JsonObject, path: string, rules?: ConfigRules): unknown {
  try {
    return sorted(getAt(document, path, rules));
  } catch (error) {
    throw new NodeError(`failed to get config value: ${quote((error as Error).message)}`);
  }
}

export function changedAt(current: Current, path: string, value: JsonTree, rules?: ConfigRules): Current {
  const { document, tree } = current;
  let typed: Document;
  try {
    // What is no object on the way is refused here.
    typed = decodeConfig(setAt(document, path, plainOf(value)));
  } catch (error) {
    throw notSet((error as Error).message);
  }
  if (rules === "0.43") requireKey(path);
  else if (!isOfKubo(path)) requireKnown(document, typed, path);
  const names = path.split(".");
  const known = names.reduce<unknown>(
    (found, name) => (isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined),
    typed,
  );
  const changed = setIn(tree, names, known === undefined ? value : settle(value, known));
  return { tree: changed, document: plainOf(changed) as JsonObject, typed };
}

/** By the rules of 0.43: no keys but those that there are. @throws NodeError that names the first part of the path that is none */
function requireKey(path: string): void {
  const names = path.split(".");
  const parts = names.map((_, at) => names.slice(0, at + 1).join("."));
  const none = parts.find((part) => !isOfKubo(part) && !isKnown(part));
  if (none !== undefined) throw notSet(`${none} not found`);
}

/** A key, an object with keys, or something in the value of a key: whether that has parts is seen when it is decoded. */
const isKnown = (path: string): boolean =>
  Object.keys(configKeys).some((each) => each === path || each.startsWith(`${path}.`) || path.startsWith(`${each}.`));

const notSet = (reason: string) => new NodeError(`failed to set config value: ${reason} (maybe use --json?)`);

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

export function decodeReplacement(text: string): { tree: JsonTree; typed: Document } {
  try {
    const tree = parseTree(text);
    return { tree, typed: decodeConfig(plainOf(tree)) };
  } catch (error) {
    throw new NodeError("failed to decode file as config", { cause: error });
  }
}

/** The text of a document that has all of `document` that the one in `text` does not replace. @throws NodeError */
export function joinedWith(document: JsonObject, text: string): string {
  const { tree } = decodeReplacement(text);
  // Secrets are not said twice: those of the document stay by themselves.
  return JSON.stringify(joined(withoutSecrets(document), plainOf(tree)));
}

/** @throws NodeError when the private key is that of another peer */
export function requireOwnId(typed: Document): void {
  try {
    readIdentity(identityOf(typed));
  } catch (error) {
    throw new NodeError(
      "cannot set Identity.PeerID to a value that does not match the node's private key; use 'ipfs key rotate' to change the node identity",
      { cause: error },
    );
  }
}

/** @throws NodeError that names what is missing */
export function requireStart(before: Document, after: Document): void {
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
