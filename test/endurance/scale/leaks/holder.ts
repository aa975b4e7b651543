/** A process that allocates memory when requested, and retains it or not. */
import { holding, type Leak } from "./plant.ts";

export interface Take {
  readonly leak: Leak;
  readonly pieces: number;
  /** Bytes of each piece. */
  readonly bytes: number;
  readonly keeps: boolean;
}

const retained: unknown[] = [];

process.on("message", ({ leak, pieces, bytes, keeps }: Take) => {
  const taken = Array.from({ length: pieces }, () => holding[leak](bytes));
  if (keeps) retained.push(taken);
  process.send?.(taken.length);
});
