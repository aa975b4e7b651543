/** Parses the query of `GET /pins` into a filter. */
import { badRequest } from "./failure.ts";
import { jsonOf, MAX_NAME_LENGTH, readCid, readMeta } from "./pin_object.ts";
import { type PinRequest, statuses } from "./pin_request.ts";

export interface Filter {
  /** Milliseconds since 1970, both exclusive. */
  readonly before: number | undefined;
  readonly after: number | undefined;
  readonly limit: number;
  fits(request: PinRequest): boolean;
}

const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 1000;
const MAX_CIDS = 10;

const matchers: Readonly<Record<string, (name: string, wanted: string) => boolean>> = {
  exact: (name, wanted) => name === wanted,
  iexact: (name, wanted) => name.toLowerCase() === wanted.toLowerCase(),
  partial: (name, wanted) => name.includes(wanted),
  ipartial: (name, wanted) => name.toLowerCase().includes(wanted.toLowerCase()),
};

/** Parses the query into a filter. @throws ApiFailure BAD_REQUEST */
export function readFilter(query: string): Filter {
  const given = new URLSearchParams(query);
  const tests = [cidTest(listOf(given, "cid")), nameTest(given), statusTest(listOf(given, "status")), metaTest(given)];
  return {
    before: momentOf(given, "before"),
    after: momentOf(given, "after"),
    limit: limitOf(given.get("limit")),
    fits: (request) => tests.every((test) => test(request)),
  };
}

type Test = (request: PinRequest) => boolean;

/** Lists may be separated by commas, repeated, or both. */
const listOf = (given: URLSearchParams, name: string): readonly string[] =>
  given.getAll(name).flatMap((value) => value.split(","));

/** Normalizes to CIDv1 for comparison, since both versions refer to the same block. */
const formless = (cid: string): string => readCid(cid).toV1().toString();

function cidTest(cids: readonly string[]): Test {
  if (cids.length === 0) return () => true;
  if (cids.length > MAX_CIDS) throw badRequest(`cid takes at most ${MAX_CIDS} CIDs`);
  const wanted = new Set(cids.map(formless));
  return ({ wish }) => wanted.has(formless(wish.cid));
}

function nameTest(given: URLSearchParams): Test {
  const wanted = given.get("name");
  const match = given.get("match") ?? "exact";
  const matches = Object.hasOwn(matchers, match) ? matchers[match] : undefined;
  if (matches === undefined) throw badRequest(`match must be one of ${Object.keys(matchers).join(", ")}`);
  if (wanted === null) return () => true;
  if (wanted.length > MAX_NAME_LENGTH) throw badRequest(`name takes at most ${MAX_NAME_LENGTH} characters`);
  return ({ wish }) => matches(wish.name ?? "", wanted);
}

function statusTest(given: readonly string[]): Test {
  const wanted = new Set<string>(given.length === 0 ? ["pinned"] : given);
  for (const word of wanted) {
    if (!(statuses as readonly string[]).includes(word))
      throw badRequest(`status must be one of ${statuses.join(", ")}`);
  }
  return ({ status }) => wanted.has(status);
}

function metaTest(given: URLSearchParams): Test {
  const text = given.get("meta");
  if (text === null) return () => true;
  const wanted = Object.entries(readMeta(jsonOf(text, "meta")));
  return ({ wish: { meta = {} } }) => wanted.every(([key, value]) => Object.hasOwn(meta, key) && meta[key] === value);
}

function limitOf(text: string | null): number {
  if (text === null) return DEFAULT_LIMIT;
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > MAX_LIMIT) throw badRequest(`limit must be from 1 to ${MAX_LIMIT}`);
  return limit;
}

const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

function momentOf(given: URLSearchParams, name: string): number | undefined {
  const text = given.get(name);
  if (text === null) return undefined;
  const moment = dateTime.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(moment)) throw badRequest(`${name} must be a time such as 2026-01-31T12:00:00Z`);
  return moment;
}
