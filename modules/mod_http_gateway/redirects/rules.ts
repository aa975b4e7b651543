/** Parses and applies the rules of a file `_redirects`, by its public specification. */

/** Maximum size of the file. */
export const MAX_RULES_BYTES = 65_536;

/**
 * Maximum length of a target with its values inserted. A target can contain a value thousands of
 * times.
 */
const MAX_TARGET_LENGTH = 16_384;

const statuses = [200, 301, 302, 303, 307, 308, 404, 410, 451] as const;
export type RuleStatus = (typeof statuses)[number];

export interface Rule {
  readonly status: RuleStatus;
  /** A path of the website, or a URL; `:name` is replaced by the matching segment. */
  readonly to: string;
  /** Literal segments, and `:name`, which matches any one segment. */
  readonly segments: readonly string[];
  /**
   * Set if the rule ends in `*`: the part of the last segment before the star, which may be empty.
   */
  readonly open: string | undefined;
}

/** A matching rule with the values of its names. */
export interface RuleMatch {
  readonly rule: Rule;
  readonly values: ReadonlyMap<string, string>;
}

/** Describes an invalid file. */
export class RulesFault extends Error {}

const SPLAT = "splat";

/** @throws {RulesFault} */
export function parseRules(text: string): Rule[] {
  const rules: Rule[] = [];
  for (const [at, line] of text.split("\n").entries()) {
    const fields = line.split(/[ \t\r]+/).filter((field) => field !== "");
    const comment = fields.findIndex((field) => field.startsWith("#"));
    if (comment >= 0) fields.length = comment;
    if (fields.length > 0) rules.push(ruleOf(fields, at + 1));
  }
  return rules;
}

function ruleOf([from = "", to, status = "301", ...more]: readonly string[], line: number): Rule {
  const fault = (reason: string) => new RulesFault(`line ${line}: ${reason}`);
  if (to === undefined || more.length > 0) throw fault("a rule is `from to [status]`");
  if (!from.startsWith("/")) throw fault(`${JSON.stringify(from)} must begin with /`);
  const known = statuses.find((each) => String(each) === status);
  if (known === undefined) throw fault(`parsing status ${JSON.stringify(status)}: status code is not supported`);
  const isRedirect = known >= 300 && known < 400;
  if (!to.startsWith("/") && !(isRedirect && /^[a-z][a-z0-9+.-]*:\/\//i.test(to))) {
    throw fault(`${JSON.stringify(to)} must be a path${isRedirect ? ", or a URL with its scheme" : ""}`);
  }
  const star = from.indexOf("*");
  if (star >= 0 && star < from.length - 1) throw fault("* must be the last character");
  const segments = from.slice(1, star < 0 ? undefined : star).split("/");
  const open = star < 0 ? undefined : decoded(segments.pop() as string);
  // A slash at the end of a path is not part of it.
  if (star < 0 && segments.at(-1) === "") segments.pop();
  const names = segments.filter((segment) => segment.startsWith(":"));
  if (star >= 0) names.push(`:${SPLAT}`);
  if (names.includes(":") || new Set(names).size < names.length) throw fault("each placeholder needs a different name");
  return { status: known, to, segments: segments.map((each) => (each.startsWith(":") ? each : decoded(each))), open };
}

/** Returns the text unchanged if its escapes are invalid. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Returns the first rule that matches. Rules are compared segment by segment, so the length of the
 * file bounds the work.
 */
export function matchRules(rules: readonly Rule[], path: readonly string[]): RuleMatch | undefined {
  for (const rule of rules) {
    const values = match(rule, path);
    if (values !== undefined) return { rule, values };
  }
  return undefined;
}

function match({ segments, open }: Rule, path: readonly string[]): ReadonlyMap<string, string> | undefined {
  const count = segments.length;
  if (open === undefined ? path.length !== count : path.length <= count) return undefined;
  if (open !== undefined && path[count]?.startsWith(open) !== true) return undefined;
  if (!segments.every((segment, at) => segment.startsWith(":") || segment === path[at])) return undefined;
  const values = new Map<string, string>();
  for (const [at, segment] of segments.entries())
    if (segment.startsWith(":")) values.set(segment.slice(1), path[at] as string);
  if (open !== undefined) values.set(SPLAT, path.slice(count).join("/").slice(open.length));
  return values;
}

/**
 * Inserts the values into a text, each as `write` formats it. The longest matching name wins, so
 * `:code` does not match in `:codeOf`. @throws {RulesFault} for a result that is too long
 */
export function filled(text: string, values: RuleMatch["values"], write: (value: string) => string): string {
  const [first = "", ...parts] = text.split(":");
  // There may be thousands of names and uses, but only a few different name lengths.
  const lengths = [...new Set([...values.keys()].map((name) => name.length))].sort((one, other) => other - one);
  const written = new Map<string, string>();
  let whole = first;
  for (const part of parts) {
    const length = lengths.find((each) => each <= part.length && values.has(part.slice(0, each)));
    if (length === undefined) whole += `:${part}`;
    else {
      const name = part.slice(0, length);
      const value = written.get(name) ?? write(values.get(name) as string);
      written.set(name, value);
      whole += value + part.slice(length);
    }
    if (whole.length > MAX_TARGET_LENGTH) {
      throw new RulesFault(`a rule leads to an address of more than ${MAX_TARGET_LENGTH} characters`);
    }
  }
  return whole;
}
