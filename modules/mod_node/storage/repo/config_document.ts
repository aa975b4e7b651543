/**
 * Documents of the configuration: reads them from text, returns and changes values, and checks that
 * the node can start with them.
 */
import { failure } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import { readPlainText } from "../plain_file.ts";
import { readIdentity } from "./identity.ts";
import { isOfKubo } from "./ignored_keys.ts";
import { type ConfigRules, getAt, isObject, type JsonObject, joined, parseJson, setAt, sorted } from "./json.ts";
import { applyChange, type JsonTree, parseTree, plainOf, setIn, settle } from "./json_tree.ts";
import { configKeys, type Document, decodeConfig, valueAt } from "./schema.ts";
import { privateKeyPath, withoutSecrets } from "./secrets.ts";

/** JSON text of a value whose formatting is preserved. */
export class JsonText {
  readonly tree: JsonTree;

  /** @throws NodeError whose message is only the reason */
  constructor(text: string) {
    this.tree = parseTree(text);
  }
}

/**
 * A document in three forms: as formatted in the file, as plain values, and with known keys only.
 */
export interface Current {
  readonly tree: JsonTree;
  readonly document: JsonObject;
  readonly typed: Document;
}

export async function readCurrent(path: string): Promise<Current> {
  return readConfig(await readPlainText(path));
}

/**
 * Decodes a configuration.
 * @throws NodeError when the text is not a configuration
 */
export function readConfig(text: string): Current {
  const document = parseDocument(text);
  return { tree: parseTree(text), document, typed: decodeConfig(document) };
}

/** Returns the document with other values of its known keys. Everything else stays unchanged. */
export function changedTo({ tree, typed: before }: Pick<Current, "tree" | "typed">, typed: Document): Current {
  const changed = applyChange(tree, before, typed);
  return { tree: changed, document: plainOf(changed) as JsonObject, typed };
}

export const identityOf = (typed: Document) => ({
  PeerID: valueAt(typed, "Identity.PeerID"),
  PrivKey: valueAt(typed, privateKeyPath) ?? "",
});

/**
 * Parses the text of a configuration.
 * @throws NodeError when it is not JSON
 */
function parseDocument(text: string): JsonObject {
  let document: unknown;
  try {
    document = parseJson(text);
  } catch (error) {
    const reason = text.trim() === "" ? "EOF" : (error as Error).message;
    throw failure("CONFIG_INVALID", { reason: `failure to decode config: ${reason}` }, error);
  }
  // The decoder refuses other values with the text of go-ipfs.
  return isObject(document) ? document : decodeConfig(document);
}

export function shownAt(document: JsonObject, path: string, rules?: ConfigRules): unknown {
  try {
    return sorted(getAt(document, path, rules));
  } catch (error) {
    throw failure("CONFIG_KEY_NOT_FOUND", { reason: `failed to get config value: ${quote((error as Error).message)}` });
  }
}

export function changedAt(current: Current, path: string, value: JsonTree, rules?: ConfigRules): Current {
  const { document, tree } = current;
  let typed: Document;
  try {
    // This refuses paths through values that are not objects.
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

/**
 * With the rules of 0.43, only known keys may be set.
 * @throws NodeError that names the first unknown part of the path
 */
function requireKey(path: string): void {
  const names = path.split(".");
  const parts = names.map((_, at) => names.slice(0, at + 1).join("."));
  const none = parts.find((part) => !isOfKubo(part) && !isKnown(part));
  if (none !== undefined) throw notSet(`${none} not found`);
}

/**
 * Whether a path is a key, an object with keys, or a part of the value of a key. The decoder checks
 * whether that value has parts.
 */
const isKnown = (path: string): boolean =>
  Object.keys(configKeys).some((each) => each === path || each.startsWith(`${path}.`) || path.startsWith(`${each}.`));

const notSet = (reason: string) =>
  failure("CONFIG_INVALID", { reason: `failed to set config value: ${reason} (maybe use --json?)` });

/**
 * Refuses to create unknown keys in known sections. Existing unknown keys may be changed.
 *
 * @throws NodeError with the text of go-ipfs, which drops such a key and then does not find it
 */
function requireKnown(document: JsonObject, typed: Document, path: string): void {
  const names = path.split(".");
  let here: unknown = document;
  let known: unknown = typed;
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
    throw failure("CONFIG_INVALID", { reason: "failed to decode file as config" }, error);
  }
}

/**
 * Returns the document in `text`, with the identity of `document` if it has none.
 * @throws NodeError
 */
export function withIdentityOf({ Identity = {} }: JsonObject, text: string): string {
  const { tree } = decodeReplacement(text);
  // Secrets are left out here, because the caller preserves those of the document anyway.
  return JSON.stringify(joined(withoutSecrets({ Identity }), plainOf(tree)));
}

/** @throws NodeError when the private key belongs to another peer */
export function requireOwnId(typed: Document): void {
  try {
    readIdentity(identityOf(typed));
  } catch (error) {
    throw failure(
      "CONFIG_CHANGE_REFUSED",
      {
        reason:
          "cannot set Identity.PeerID to a value that does not match the node's private key; use 'ipfs key rotate' to change the node identity",
      },
      error,
    );
  }
}

/**
 * Checks that the node can start with a document.
 * @throws NodeError that names the problem
 */
export function requireStart(before: Document, after: Document): void {
  const refuse = (reason: string) =>
    failure("CONFIG_CHANGE_REFUSED", {
      reason:
        `this config was refused, because the node would not start with it: ${reason}. ` +
        "Edit the output of config/show instead",
    });
  try {
    readIdentity(identityOf(after));
  } catch (error) {
    // An identity that cannot be read now, either, does not become worse.
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
