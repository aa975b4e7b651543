/**
 * What a node is put through before it is killed: each piece of work changes places of the model.
 */
import type { Query, RpcServer } from "#test/support/rpc_server.ts";
import type { Model } from "./model.ts";
import { pinsAmong } from "./places.ts";
import { namespaceWorks } from "./works/namespace.ts";
import { repoWorks } from "./works/repo.ts";
import { storageWorks, unpin } from "./works/storage.ts";

/** Rejects when the server is gone. */
export type Work = (server: RpcServer) => Promise<unknown>;

/** Pieces of work, and how often they come beside others. */
export type Weighted = readonly (readonly [weight: number, work: Work])[];

export interface Sent {
  readonly parts?: Readonly<Record<string, Uint8Array>>;
  /** What a success has in its answer. */
  readonly text?: string;
  /** A failure is none of the server's. */
  readonly mayFail?: boolean;
}

/** Pins above this number are rather removed than added: a cycle stays short. */
const manyPins = 40;

export const pick = <T>(values: readonly T[]): T | undefined => values[Math.floor(Math.random() * values.length)];

/** The node under work, by what was promised. */
export class Works {
  readonly model: Model;
  /** Of the server: files that are referred to may stand in it. */
  readonly folder: string;
  /** How often each command was answered with success. */
  readonly counts: Record<string, number> = {};
  readonly #all: Weighted;
  readonly #total: number;

  constructor(folder: string, model: Model) {
    this.folder = folder;
    this.model = model;
    this.#all = [...storageWorks(this), ...namespaceWorks(this), ...repoWorks(this)];
    this.#total = this.#all.reduce((sum, [weight]) => sum + weight, 0);
  }

  /** One piece of work. Rejects when the server is gone. */
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
   * The answer, when it is one of success and whole; any other is a fault of the server unless it
   * `mayFail`.
   */
  async ask(server: RpcServer, command: string, query: Query, sent: Sent = {}): Promise<string | undefined> {
    const { parts, text = "", mayFail = false } = sent;
    const answer = await server.call(command, query, parts);
    return this.judge(command, answer, { text, mayFail });
  }

  async judge(
    command: string,
    answer: Response,
    { text = "", mayFail = false }: Pick<Sent, "text" | "mayFail">,
  ): Promise<string | undefined> {
    const body = await answer.text();
    if (answer.ok && body.includes(text)) {
      this.counts[command] = (this.counts[command] ?? 0) + 1;
      return body;
    }
    if (!mayFail) this.model.faults.push(`${answer.url} answered ${answer.status}: ${body.slice(-300)}`);
    return undefined;
  }

  /** Whether it was answered with success. */
  async does(...asked: Parameters<Works["ask"]>): Promise<boolean> {
    return (await this.ask(...asked)) !== undefined;
  }
}
