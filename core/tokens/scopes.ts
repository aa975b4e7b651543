/** Kinds of scopes: the host's own, and those that loaded modules declare. */
import type {
  AppNeed,
  DeclaredTokenScope,
  NamedTokenScopes,
  OwnedItem,
  TokenNeed,
  TokenScopeForm,
  TokenScopeItem,
  TokenScopeKind,
} from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { withoutSecrets } from "../util/secret_text.ts";
import { usageOf } from "../util/usage.ts";

/** A parsed scope. */
interface ReadScope {
  /** Undefined for the scope that grants everything. */
  readonly declared: Declared | undefined;
  readonly value: unknown;
}

interface Declared {
  readonly kind: TokenScopeKind;
  /** Undefined for the host's own kind. */
  readonly item: OwnedItem<TokenScopeItem> | undefined;
}

const everything: TokenScopeForm = { form: "*", help: "everything" };

const appPattern = /^app:(\*|[\w.-]+)$/;

const apps: TokenScopeKind<AppNeed, string> = {
  kind: "app",
  forms: [{ form: "app:NAME", help: "apps that require tokens by this name; app:* is for all of them" }],
  parse: (text) => appPattern.exec(text)?.[1],
  covers: (name, need) => name === "*" || name === need.name,
  describe: ({ name }) => `app:${name}`,
};

const kindPattern = /^[a-z][a-z0-9_-]{0,31}$/;
const namePattern = /^[a-z0-9][a-z0-9_-]{0,63}$/;
/** Characters that a challenge in WWW-Authenticate may contain (RFC 6750, 3). */
const challengePattern = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/**
 * Returns the kind of a scope, which may be undeclared; undefined for a text that cannot be a scope
 * of any kind.
 */
export function kindOfScope(text: string): string | undefined {
  if (text === "*") return text;
  const [kind = ""] = text.split(":", 1);
  return kindPattern.test(kind) ? kind : undefined;
}

/**
 * The declared kinds. Modules are loaded and unloaded, so scopes are parsed again after each
 * change.
 */
export class ScopeKinds {
  /**
   * Declarations by kind; the last one is in force. While a module is replaced, both of its
   * instances declare the same kind.
   */
  readonly #declared = new Map<string, readonly Declared[]>([[apps.kind, [{ kind: apps, item: undefined }]]]);
  #version = 0;

  /** Changes with each change of the declarations. */
  get version(): number {
    return this.#version;
  }

  /**
   * Adds a declaration. @throws {TypeError} for a declaration that is not valid. @throws
   * {ModhostError} TOKEN_SCOPE_TAKEN
   */
  add(item: OwnedItem<TokenScopeItem>): void {
    const kind = checkedKind(item.item);
    const others = this.#declared.get(kind.kind) ?? [];
    const taken = others.find((other) => other.item?.owner.name !== item.owner.name || other.item.owner === item.owner);
    if (taken !== undefined) {
      const by = taken.item === undefined ? "the host itself" : `the module ${taken.item.owner.name}`;
      throw new ModhostError("TOKEN_SCOPE_TAKEN", { kind: kind.kind, by });
    }
    this.#declared.set(kind.kind, [...others, { kind, item }]);
    this.#version += 1;
  }

  remove(item: OwnedItem<TokenScopeItem>): void {
    const { kind } = item.item;
    const left = (this.#declared.get(kind) ?? []).filter((declared) => declared.item !== item);
    if (left.length === 0) this.#declared.delete(kind);
    else this.#declared.set(kind, left);
    this.#version += 1;
  }

  /** Returns every form that a scope of a new token can have. */
  forms(): DeclaredTokenScope[] {
    const declared = [...this.#declared.values()].flatMap((all) => all.at(-1) ?? []);
    return [
      ...declared.flatMap(({ kind, item }) => kind.forms.map((form) => ({ ...form, module: item?.owner.name }))),
      { ...everything, module: undefined },
    ];
  }

  /**
   * Parses a scope. Returns undefined for a scope that grants nothing, because no loaded module
   * declares it.
   */
  read(text: string): ReadScope | undefined {
    if (text === everything.form) return { declared: undefined, value: undefined };
    const declared = this.#kind(kindOfScope(text));
    const value = declared && guarded(declared, () => declared.kind.parse(text));
    return value === undefined ? undefined : { declared, value };
  }

  covers({ declared, value }: ReadScope, need: TokenNeed): boolean {
    if (declared === undefined) return true;
    // If a module returns a promise by mistake, it grants nothing.
    return declared.kind.kind === need.kind && guarded(declared, () => declared.kind.covers(value, need)) === true;
  }

  /** Returns the scopes of a list that grant nothing. */
  undeclared(scopes: readonly string[]): string[] {
    return scopes.filter((text) => this.read(text) === undefined);
  }

  /** Checks the scopes of a new token. @throws {ModhostError} TOKEN_INVALID */
  assertDeclared(scopes: readonly string[]): void {
    for (const text of scopes) {
      const scope = this.read(text);
      const allowed = scope === undefined ? this.#allowedFor(text) : this.#check(scope);
      if (allowed === undefined) continue;
      const value = withoutSecrets(JSON.stringify(text)).slice(0, 100);
      throw new ModhostError("TOKEN_INVALID", { field: "scopes", value, allowed });
    }
  }

  /** Returns a scope that would grant the need. */
  scopeFor(need: TokenNeed): string {
    const declared = this.#kind(need.kind);
    const scope = declared && guarded(declared, () => declared.kind.describe(need));
    return typeof scope === "string" && challengePattern.test(scope) ? scope : need.kind;
  }

  /** Returns the sentence for a caller whose token does not grant the need. */
  refusalFor(need: TokenNeed, token: { readonly name: string }): string {
    const declared = this.#kind(need.kind);
    const own = declared && guarded(declared, () => declared.kind.refusal?.(need, { name: token.name }));
    return typeof own === "string" ? own : `The token ${token.name} lacks the scope ${this.scopeFor(need)}`;
  }

  #kind(kind: string | undefined): Declared | undefined {
    return kind === undefined ? undefined : this.#declared.get(kind)?.at(-1);
  }

  #check({ declared, value }: ReadScope): string | undefined {
    return declared && guarded(declared, () => declared.kind.check?.(value));
  }

  /** Returns the allowed forms: of the same kind if that is known, else of all kinds. */
  #allowedFor(text: string): string {
    const declared = this.#kind(kindOfScope(text));
    const forms = declared?.kind.forms ?? this.forms();
    return `one of ${forms.map(({ form }) => form).join(", ")}`;
  }
}

/** The scopes of one token. */
export class TokenScopes {
  readonly #texts: readonly string[];
  readonly #kinds: ScopeKinds;
  #version = -1;
  #read: readonly ReadScope[] = [];

  constructor(texts: readonly string[], kinds: ScopeKinds) {
    this.#texts = texts;
    this.#kinds = kinds;
  }

  allow(need: TokenNeed): boolean {
    if (this.#version !== this.#kinds.version) {
      this.#version = this.#kinds.version;
      this.#read = this.#texts.map((text) => this.#kinds.read(text)).filter((scope) => scope !== undefined);
    }
    return this.#read.some((scope) => this.#kinds.covers(scope, need));
  }
}

/**
 * Runs code of the module that declares a kind. If it throws, this counts as the module's failure,
 * and grants nothing.
 */
function guarded<R>({ item }: Declared, code: () => R): R | undefined {
  if (item === undefined) return code();
  const usage = usageOf(item.owner);
  const outer = usage.enter();
  const begun = performance.now();
  try {
    return usage.run(code);
  } catch (error) {
    usage.fault("reading token scopes", error);
    return undefined;
  } finally {
    usage.leave(outer, begun);
  }
}

function checkedKind(item: TokenScopeItem): TokenScopeKind {
  const { kind } = item;
  if (typeof kind !== "string" || !kindPattern.test(kind))
    throw new TypeError('The kind of token scopes must be a word of lower case letters, digits, "_" and "-"');
  if (!("parse" in item)) return fromNames(item);
  for (const method of ["parse", "covers", "describe"] as const)
    if (typeof item[method] !== "function") throw new TypeError(`The token scopes ${kind} need a function ${method}`);
  if (!Array.isArray(item.forms) || !item.forms.every(isForm))
    throw new TypeError(`The token scopes ${kind} need a list of forms: [{ form: "${kind}:NAME", help: "..." }]`);
  return item;
}

const isForm = (value: unknown): boolean => {
  const { form, help } = (value ?? {}) as Partial<TokenScopeForm>;
  return typeof form === "string" && typeof help === "string";
};

/** The need for a scope with a name, which is its access. */
interface NamedNeed extends TokenNeed {
  readonly access?: string;
}

function fromNames({ kind, help, accesses = {} }: NamedTokenScopes): TokenScopeKind<NamedNeed, string> {
  const names = Object.entries(accesses);
  if (typeof help !== "string" || !names.every(([name, opens]) => namePattern.test(name) && typeof opens === "string"))
    throw new TypeError(`The token scopes ${kind} need a text "help", and in "accesses" a text for each name`);
  const known = new Map(names.map(([name]) => [`${kind}:${name}`, name]));
  const all = "";
  return {
    kind,
    forms: [{ form: kind, help }, ...names.map(([name, opens]) => ({ form: `${kind}:${name}`, help: opens }))],
    parse: (text) => (text === kind ? all : known.get(text)),
    covers: (name, { access }) => name === all || name === access,
    describe: ({ access = "" }) => (known.has(`${kind}:${access}`) ? `${kind}:${access}` : kind),
  };
}
