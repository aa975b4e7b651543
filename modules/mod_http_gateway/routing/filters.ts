/** Which records, and which of their addresses, a request asks for: `filter-addrs` and `filter-protocols` (IPIP-484). */
import { type PeerRecord, recordFilter } from "modhost/node";

/** The record with the addresses that are wanted; undefined where it is not wanted. */
export type Filter = (record: PeerRecord) => PeerRecord | undefined;

export const filterOf = (query: URLSearchParams): Filter =>
  recordFilter({ addresses: namesOf(query, "filter-addrs"), protocols: namesOf(query, "filter-protocols") });

const namesOf = (query: URLSearchParams, parameter: string): readonly string[] =>
  query
    .getAll(parameter)
    .flatMap((list) => list.toLowerCase().split(","))
    .map((name) => name.trim())
    .filter((name) => name !== "");
