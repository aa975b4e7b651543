/** A process that takes memory when it is told to, and keeps it or not. */
import { holding, type Leak } from "./plant.ts";

export interface Take {
  readonly leak: Leak;
  readonly pieces: number;
  /** Bytes of each. */
  readonly bytes: number;
  readonly keeps: boolean;
}

const kept: unknown[] = [];

process.on("message", ({ leak, pieces, bytes, keeps }: Take) => {
  const taken = Array.from({ length: pieces }, () => holding[leak](bytes));
  if (keeps) kept.push(taken);
  process.send?.(taken.length);
});
