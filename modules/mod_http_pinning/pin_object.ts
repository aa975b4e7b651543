/** Parses the `Pin` object of the pinning service API from JSON. */
import { parseCid } from "modhost/node";
import { badRequest } from "./failure.ts";

export interface Wish {
  /** In the node's canonical notation. */
  readonly cid: string;
  readonly name?: string;
  /** Multiaddrs of peers that have the content, as sent. */
  readonly origins?: readonly string[];
  readonly meta?: Readonly<Record<string, string>>;
}

/** Limits: characters of the body, of a CID and of a name; number of origins; entries of `meta`. */
const MAX_BODY_LENGTH = 65_536;
const MAX_CID_LENGTH = 512;
export const MAX_NAME_LENGTH = 255;
const MAX_ORIGINS = 20;
const MAX_META_ENTRIES = 1000;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Unknown members are ignored. @throws ApiFailure BAD_REQUEST */
export function readWish(body: string): Wish {
  if (body.length > MAX_BODY_LENGTH) throw badRequest(`The body must not have more than ${MAX_BODY_LENGTH} characters`);
  const value = jsonOf(body, "The body");
  if (!isObject(value)) throw badRequest("The body must be an object");
  const { cid, name, origins, meta } = value;
  if (typeof cid !== "string" || cid.length > MAX_CID_LENGTH) {
    throw badRequest(`cid must be a text of at most ${MAX_CID_LENGTH} characters`);
  }
  if (name !== undefined && (typeof name !== "string" || name.length > MAX_NAME_LENGTH)) {
    throw badRequest(`name must be a text of at most ${MAX_NAME_LENGTH} characters`);
  }
  return {
    cid: readCid(cid).toString(),
    ...(name === undefined || name === "" ? {} : { name }),
    ...(origins === undefined ? {} : { origins: readOrigins(origins) }),
    ...(meta === undefined ? {} : { meta: readMeta(meta) }),
  };
}

function readOrigins(value: unknown): readonly string[] {
  const fits = Array.isArray(value) && value.length <= MAX_ORIGINS && value.every((each) => typeof each === "string");
  if (!fits) throw badRequest(`origins must be a list of at most ${MAX_ORIGINS} multiaddresses`);
  return [...new Set(value as string[])];
}

/** @throws ApiFailure BAD_REQUEST */
export function readMeta(value: unknown): Readonly<Record<string, string>> {
  const fits = isObject(value) && Object.values(value).every((each) => typeof each === "string");
  if (!fits || Object.keys(value).length > MAX_META_ENTRIES) {
    throw badRequest(`meta must be an object of at most ${MAX_META_ENTRIES} texts`);
  }
  return value as Readonly<Record<string, string>>;
}

/** @throws ApiFailure BAD_REQUEST */
export function readCid(text: string) {
  try {
    return parseCid(text);
  } catch (error) {
    throw badRequest(`${JSON.stringify(text)} is not a CID: ${(error as Error).message}`);
  }
}

/** @throws ApiFailure BAD_REQUEST */
export function jsonOf(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest(`${what} must be JSON`);
  }
}
