/** The work of a node before it is killed: each piece of work changes items of the model. */
import type { Query, RpcServer } from "#test/support/rpc_server.ts";
import { pinsAmong } from "./items.ts";
import type { Model } from "./model.ts";
import { namespaceWorks } from "./works/namespace.ts";
import { repoWorks } from "./works/repo.ts";
import { storageWorks, unpin } from "./works/storage.ts";

/** Rejects if the server has ended. */
export type PieceOfWork = (server: RpcServer) => Promise<unknown>;

/** Pieces of work with their relative frequencies. */
export type Weighted = readonly (readonly [weight: number, work: PieceOfWork])[];

export interface SentParts {
  readonly parts?: Readonly<Record<string, Uint8Array>>;
  /** Text that a successful response contains. */
  readonly text?: string;
  /** Whether a failure is not a fault of the server. */
  readonly mayFail?: boolean;
}

/** Above this number, pins are removed more often than added, so that a cycle stays short. */
const manyPins = 40;

export const pick = <T>(values: readonly T[]): T | undefined => values[Math.floor(Math.random() * values.length)];

/** Does work on a node, and records it in the model. */
export class CrashWorks {
  readonly model: Model;
  /** Folder of the server. It may contain files that the repo refers to. */
  readonly folder: string;
  /** Number of successful calls of each command. */
  readonly counts: Record<string, number> = {};
  readonly #all: Weighted;
  readonly #total: number;

  constructor(folder: string, model: Model) {
    this.folder = folder;
    this.model = model;
    this.#all = [...storageWorks(this), ...namespaceWorks(this), ...repoWorks(this)];
    this.#total = this.#all.reduce((sum, [weight]) => sum + weight, 0);
  }

  /** Does one piece of work. Rejects if the server has ended. */
  async any(server: RpcServer): Promise<void> {
    if (pinsAmong(this.model).length > manyPins && Math.random() < 0.4) return unpin(this, server);
    let left = Math.random() * this.#total;
    for (const [weight, work] of this.#all) {
      left -= weight;
      if (left >= 0) continue;
      await work(server);
      return;
    }
  }

  /**
   * Resolves to a complete, successful response. Any other is a fault of the server, unless it
   * `mayFail`.
   */
  async ask(server: RpcServer, command: string, query: Query, sent: SentParts = {}): Promise<string | undefined> {
    const { parts, text = "", mayFail = false } = sent;
    const response = await server.call(command, query, parts);
    return this.judge(command, response, { text, mayFail });
  }

  async judge(
    command: string,
    response: Response,
    { text = "", mayFail = false }: Pick<SentParts, "text" | "mayFail">,
  ): Promise<string | undefined> {
    const body = await response.text();
    if (response.ok && body.includes(text)) {
      this.counts[command] = (this.counts[command] ?? 0) + 1;
      return body;
    }
    if (!mayFail) this.model.faults.push(`${response.url} responded with ${response.status}: ${body.slice(-300)}`);
    return undefined;
  }

  /** Resolves to whether the call succeeded. */
  async does(...call: Parameters<CrashWorks["ask"]>): Promise<boolean> {
    return (await this.ask(...call)) !== undefined;
  }
}
