/** One database connection that reconnects when it is lost. */
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type postgres from "postgres";
import { settledWithin, within } from "../../../util/async/within.ts";
import { failure, NodeError } from "../../../util/errors.ts";
import { describeAddresses, type SqlAddress, type SqlSettings } from "./settings.ts";
import { tlsOptions } from "./tls.ts";

export type Sql = postgres.Sql;

const CONNECT_MS = 3000;
/** Milliseconds for ending a client. Ending it immediately takes one tick. */
const END_MS = 1000;
/**
 * Maximum delay between attempts. It grows from the first value to the last, and the actual delay
 * is random.
 */
const MIN_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 2000;
/** Timeouts of the server, so that a host that stalls does not block others. */
const STATEMENT_MS = 10_000;
const LOCK_MS = 5000;

/** Counts of the use of the database. */
export class SqlCounts {
  connects = 0;
  /** Connections that were lost or could not be opened. */
  faults = 0;
  roundTrips = 0;
  /** Commits that waited for the turn of another host. */
  turns = 0;
}

export interface SqlConnectionOptions {
  readonly name: string;
  readonly counts: SqlCounts;
  /** Called with each new connection before it is used. */
  readonly onConnect?: (sql: Sql) => Promise<void>;
  readonly onNotice?: (text: string) => void;
}

interface Connection {
  readonly sql: Sql;
  readonly socket: Socket;
}

export class SqlConnection {
  readonly #settings: SqlSettings;
  readonly #options: SqlConnectionOptions;
  #connection: Connection | undefined;
  #connecting: Promise<Connection> | undefined;
  /** Index of the address that was used last. */
  #at = 0;
  #closed = false;

  constructor(settings: SqlSettings, options: SqlConnectionOptions) {
    this.#settings = settings;
    this.#options = options;
  }

  get isConnected(): boolean {
    return this.#connection !== undefined;
  }

  /**
   * Calls `use`, and repeats it while the database is unreachable, so `use` must be safe to repeat.
   * Permanent errors of the database are thrown immediately.
   *
   * @throws NodeError STORE_UNAVAILABLE, STORE_READ_ONLY after `withinMs`; the text contains
   * `mayHaveRun` when a response was lost
   */
  async run<T>(use: (sql: Sql) => Promise<T>, withinMs: number, mayHaveRun = ""): Promise<T> {
    const end = performance.now() + withinMs;
    let isResponseLost = false;
    for (let attempt = 0; ; attempt += 1) {
      let current: Connection | undefined;
      try {
        current = await within(end - performance.now(), this.#connected());
        this.#options.counts.roundTrips += 1;
        return await within(end - performance.now(), use(current.sql));
      } catch (error) {
        if (NodeError.is(error)) throw error;
        const refused = isRefusal(error);
        if (refused && current !== undefined && !mayPass(error)) throw error;
        const isFull = refused && error.code === DISK_FULL;
        const isRefusedWrite = isFull || (refused && isReadOnly(error));
        isResponseLost ||= current !== undefined && !isRefusedWrite;
        if (current !== undefined && !(refused && keepsConnection(error))) this.#drop(current);
        // Another address may belong to a server that accepts writes.
        if (isRefusedWrite && !isFull) this.#at += 1;
        const pause = Math.random() * Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** attempt);
        // A full disk is not fixed within seconds.
        if (this.#closed || isFull || performance.now() + pause > end) {
          const code = isRefusedWrite ? "STORE_READ_ONLY" : "STORE_UNAVAILABLE";
          const remedy = isFull ? FULL_REMEDY : isRefusedWrite ? READ_ONLY_REMEDY : "";
          const what = `the database at ${describeAddresses(this.#settings)}: ${reasonOf(error as Error)}`;
          const fault = failure(code, { reason: what + remedy }, error);
          throw isResponseLost && mayHaveRun !== ""
            ? failure(code, { reason: what + mayHaveRun + remedy }, fault)
            : fault;
        }
        await sleep(pause);
      }
    }
  }

  /** Closes the connection. Running statements fail. */
  close(): void {
    this.#closed = true;
    if (this.#connection !== undefined) this.#drop(this.#connection, false);
  }

  async #connected(): Promise<Connection> {
    if (this.#closed) throw failure("STORE_CLOSED");
    if (this.#connection !== undefined) return this.#connection;
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return await this.#connecting;
  }

  async #connect(): Promise<Connection> {
    const { addresses } = this.#settings;
    let fault: unknown;
    for (let tried = 0; tried < addresses.length; tried += 1) {
      const address = addresses[this.#at % addresses.length] as SqlAddress;
      try {
        const connection = await this.#connectTo(address);
        this.#connection = connection;
        this.#options.counts.connects += 1;
        if (this.#closed) this.#drop(connection, false);
        return connection;
      } catch (error) {
        fault = error;
        this.#options.counts.faults += 1;
        this.#at += 1;
      }
    }
    throw fault;
  }

  async #connectTo(address: SqlAddress): Promise<Connection> {
    // The client is loaded on demand, because most nodes have no database.
    const { default: connectTo } = await import("postgres");
    // Unix sockets need no TLS.
    const ssl = await tlsOptions(address.path === undefined ? this.#settings.tls : undefined, address.host);
    const socket = await openSocket(address);
    let isTaken = false;
    const sql = connectTo(this.#settings.url, {
      host: address.host,
      port: address.port,
      ssl,
      max: 1,
      fetch_types: false,
      max_lifetime: null,
      idle_timeout: 0,
      connect_timeout: CONNECT_MS / 1000,
      onnotice: () => {},
      onnotify: (_channel: string, text: string) => this.#options.onNotice?.(text),
      connection: {
        application_name: `modhost ${this.#options.name}`,
        statement_timeout: STATEMENT_MS,
        lock_timeout: LOCK_MS,
        idle_in_transaction_session_timeout: LOCK_MS,
      },
      socket: () => {
        if (isTaken || socket.destroyed) throw new Error("the connection was closed");
        isTaken = true;
        return socket;
      },
    } as postgres.Options<Record<string, never>> & {
      socket: () => Socket;
      onnotify: (channel: string, text: string) => void;
    }) as unknown as Sql;
    const connection = { sql, socket };
    try {
      const [state] = await within(CONNECT_MS, sql`select pg_is_in_recovery() as standby`);
      if (state?.standby === true)
        throw new Error(`${address.host} accepts no writes: it is a standby${STANDBY_REMEDY}`);
      await within(CONNECT_MS, this.#options.onConnect?.(sql) ?? Promise.resolve());
    } catch (error) {
      this.#drop(connection);
      throw error;
    }
    socket.once("close", () => {
      if (this.#connection === connection) this.#connection = undefined;
    });
    return connection;
  }

  #drop(connection: Connection, isFault = true): void {
    if (isFault) this.#options.counts.faults += 1;
    if (this.#connection === connection) this.#connection = undefined;
    // The client sends a termination message. Over TLS, that write fails without a listener on a
    // socket that is already destroyed.
    settledWithin(END_MS, connection.sql.end({ timeout: 0 })).then(() => connection.socket.destroy());
  }
}

async function openSocket({ host, port, path }: SqlAddress): Promise<Socket> {
  const socket = path === undefined ? connect({ host, port, noDelay: true, keepAlive: true }) : connect({ path });
  // The client reads the host name for the certificate check from here.
  Object.assign(socket, { host });
  // The client listens for errors only part of the time; `close` follows in any case.
  socket.on("error", () => {});
  const open = Promise.withResolvers<void>();
  socket.once("connect", open.resolve);
  socket.once("error", open.reject);
  try {
    await within(CONNECT_MS, open.promise);
    socket.off("error", open.reject);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/**
 * Classes of temporary server errors: connections, resources, the operator, conflicts. A standby
 * refuses writes.
 */
const passing = /^(08|53|57|40|55P03|25006|58)/;
/** Whether the database itself returned the error. */
const isRefusal = (error: unknown): error is postgres.PostgresError =>
  error instanceof Error && error.name === "PostgresError";

/** Whether the statement failed because the server is read-only. It had no effect. */
const isReadOnly = ({ code }: postgres.PostgresError): boolean => code === "25006";
const DISK_FULL = "53100";
const FULL_REMEDY = ". Remedy: free space on the disk of the database";
const READ_ONLY_REMEDY =
  ". Remedy: set default_transaction_read_only to off there, or name the server that accepts writes in sql of node_store";
const STANDBY_REMEDY = ". Promote it, or name the server that accepts writes in sql of node_store";

const mayPass = ({ code }: postgres.PostgresError): boolean => passing.test(code);
/**
 * Whether the connection is still usable: the statement was too slow or conflicted with another
 * one.
 */
const keepsConnection = ({ code }: postgres.PostgresError): boolean => /^(40|53100|55P03|57014)/.test(code);

const reasonOf = (error: Error): string => {
  const { message, code, errors } = error as Error & { code?: string; errors?: readonly Error[] };
  return message || errors?.[0]?.message || code || "no reason is known";
};
