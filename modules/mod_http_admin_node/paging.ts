/** Checks the offset and limit of list requests. */
import { HttpError } from "../../core/index.ts";

const MAX_PAGE = 1000;

export const pageFields = {
  offset: { type: "number", describe: "Number of entries to skip; default 0" },
  limit: { type: "number", describe: `Number of entries to return, at most ${MAX_PAGE}` },
} as const;

export interface Page {
  readonly offset: number;
  readonly limit: number;
}

/** @throws {HttpError} 400 */
export function pageOf(requested: { offset: number | undefined; limit: number | undefined }, usual: number): Page {
  const { offset = 0, limit = usual } = requested;
  const isRight = Number.isSafeInteger(offset) && offset >= 0 && Number.isInteger(limit) && limit >= 1;
  if (!isRight || limit > MAX_PAGE)
    throw new HttpError(400, `offset must be an integer from 0, and limit an integer from 1 to ${MAX_PAGE}`);
  return { offset, limit };
}
