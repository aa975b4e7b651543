/**
 * Filters records and their addresses by `filter-addrs` and `filter-protocols` of a request
 * (IPIP-484).
 */
import { type PeerRecord, recordFilter } from "modhost/node";

/** Returns the record with the matching addresses; undefined if the record does not match. */
export type Filter = (record: PeerRecord) => PeerRecord | undefined;

export const filterOf = (query: URLSearchParams): Filter =>
  recordFilter({ addresses: namesOf(query, "filter-addrs"), protocols: namesOf(query, "filter-protocols") });

const namesOf = (query: URLSearchParams, parameter: string): readonly string[] =>
  query
    .getAll(parameter)
    .flatMap((list) => list.toLowerCase().split(","))
    .map((name) => name.trim())
    .filter((name) => name !== "");
