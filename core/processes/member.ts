/** One process of a server of several, as it sees itself and the others. */
import type { FollowStep, Host } from "../host.ts";
import type { ListeningHandle } from "../ports/lent.ts";
import { reasonOf } from "../util/errors.ts";
import { FirstMember } from "./first_member.ts";
import { type FarEnd, Link } from "./link.ts";
import { type Begin, type KnownDoor, type Shared, WORKER } from "./messages.ts";
import { OtherMember } from "./other_member.ts";
import type { Role } from "./role.ts";

/** The program around the host, as far as the supervisor asks for what it does. */
export interface MemberProgram {
  host(): Host;
  /** Applies the configuration, and tells what came of it. */
  reload(): Promise<void>;
  reopen(): Promise<void>;
  /** Ends the process; `signal` is the one that stops the server. */
  stop(signal?: string): void;
}

/** This process, where a supervisor has started it. */
export function memberOf(env: NodeJS.ProcessEnv): Member | undefined {
  const number = Number(env[WORKER]);
  if (env[WORKER] === undefined || process.send === undefined) return undefined;
  delete env[WORKER];
  return new Member(number);
}

/** Milliseconds. */
const LOOK_MS = 1000;

export class Member {
  readonly number: number;
  readonly link: Link;
  readonly #begun = Promise.withResolvers<Begin>();
  #role: Role | undefined;
  #program: MemberProgram | undefined;
  #begin: Begin | undefined;
  readonly #looking: NodeJS.Timeout;
  #isLeft = false;
  /** What came after the beginning. */
  #shared: Shared | undefined;
  #doors: readonly KnownDoor[] | undefined;

  constructor(number: number) {
    this.number = number;
    const role =
      (name: string) =>
      (...values: unknown[]) => {
        return (this.#role?.handlers[name] as ((...values: unknown[]) => unknown) | undefined)?.(...values);
      };
    const handlers = {
      begin: (begin: Begin) => this.#begun.resolve(begin),
      shared: (shared: Shared) => {
        this.#shared = shared;
        role("shared")(shared);
      },
      doors: (doors: readonly KnownDoor[]) => {
        this.#doors = doors;
        role("doors")(doors);
      },
      stop: (signal: string | undefined) => this.#program?.stop(signal),
      reload: () => this.#program?.reload(),
      reopen: () => this.#program?.reopen(),
      step: (step: FollowStep) => this.#make(step),
      log: (line: string, from: number | undefined) => this.#program?.host().shared.relayLog(line, from),
      ...Object.fromEntries(["ports", "sibling", "left", "figures"].map((name) => [name, role(name)])),
    };
    this.link = new Link(process as unknown as FarEnd, handlers, (handle, head, to) =>
      this.#role?.passed(handle, head, to),
    );
    process.on("disconnect", () => this.#left());
    // Where a connection was being handed over, Node does not tell.
    this.#looking = setInterval(() => {
      if (!process.connected) this.#left();
    }, LOOK_MS).unref();
    this.#begun.promise.catch(() => undefined);
    this.link.channel.tell("up");
  }

  /** Without the supervisor nobody looks after this process. */
  #left(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    clearInterval(this.#looking);
    const error = new Error("the supervisor has gone");
    this.link.channel.end(error);
    this.#begun.reject(error);
    this.#program?.stop();
  }

  get isFirst(): boolean {
    return this.number === 1;
  }

  /** Waits for what this process begins with. @throws {Error} when the supervisor has gone */
  async begin(): Promise<Pick<Role, "siblings" | "module"> & { readonly sockets: readonly HeldSocket[] }> {
    const begin = await this.#begun.promise;
    this.#begin = begin;
    const deps = {
      link: this.link,
      begin: { ...begin, shared: this.#shared ?? begin.shared, doors: this.#doors ?? begin.doors },
      host: () => this.#program?.host(),
    };
    this.#role = this.isFirst ? new FirstMember(deps) : new OtherMember(deps);
    const sockets = begin.held.flatMap((facts) => {
      const handle = this.link.take(facts.key);
      return handle === undefined ? [] : [{ ...facts, handle }];
    });
    return { siblings: this.#role.siblings, module: this.#role.module, sockets };
  }

  /** Who answers the supervisor from now on. */
  attach(program: MemberProgram): void {
    this.#program = program;
    if (!process.connected) program.stop();
  }

  /** The host serves: brings it to where the others are. */
  async running(): Promise<void> {
    for (const step of this.#begin?.steps ?? []) {
      await this.#make(step).catch((error: unknown) => {
        this.#program?.host().log.warn("What was done before this process began is not done here: %s", reasonOf(error));
      });
    }
    await this.#role?.running();
    this.link.channel.tell("running");
  }

  close(): void {
    this.#role?.close();
  }

  /** Does here what was done in the first process. */
  async #make(step: FollowStep): Promise<void> {
    const host = this.#program?.host();
    if (host === undefined) return;
    if (step.kind === "apply" || step.kind === "reopen") {
      await (step.kind === "apply" ? host.apply({ by: FIRST }) : host.reopenLogs(FIRST));
      return;
    }
    const { kind, name, host: at } = step as Extract<FollowStep, { name: string }>;
    if (this.#role?.siblings.isElsewhere?.(name) === true) return;
    await host[kind](name, at).catch((error: unknown) => {
      if (!isDone(kind, error)) throw error;
    });
  }
}

/** Who asks for what the others do, for their logs. */
const FIRST = "process 1";

/** A port of a process before this one. */
export interface HeldSocket {
  readonly name: string;
  readonly asked: { readonly address: string; readonly port: number; readonly isEndpoint: boolean } | undefined;
  readonly handle: ListeningHandle;
}

/** It is as the step would have it: somebody, or quarantine, was earlier. */
function isDone(kind: FollowStep["kind"], error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return (kind === "load" && code === "MODULE_ALREADY_LOADED") || (kind === "unload" && code === "MODULE_NOT_LOADED");
}
