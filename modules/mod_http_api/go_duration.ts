/** Durations as Go writes and reads them: the node needs them, too. */
export * from "./node/go/duration.ts";
